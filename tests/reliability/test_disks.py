"""Disks that are full or read-only, input that changes between two runs, and two processes that
write the same.
"""

import errno
import os
import sys
import time
from functools import cache
from itertools import count
from tempfile import gettempdir

import numpy
import pytest
from helpers import writers
from helpers.counted_cases import parts
from helpers.killing import EVENTS, watch
from helpers.made_data import write_benchmark
from helpers.writers import TEXTS, WRITERS, in_time, member_vectors, run_suite, together

from spacy_sbert.bulk import encode_file
from spacy_sbert.search.corpus_search import search_texts

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="no fork, no limit of a file's size"
)
# Through all writers, each round in some parts
N_ROUNDS = 16
# Those that replace a file that is there; the others keep what they have done, and go on.
REPLACING = [
    writers.convert_table,
    writers.save_index,
    writers.save_vectors,
    writers.write_card,
    writers.write_rows,
]
REPLACING += [writers.write_results, writers.write_page]


@pytest.fixture(scope="module")
def expected(nlp, tmp_path_factory):
    """From a writer to its result with nothing in its way."""

    @cache
    def find(make):
        writer = make(nlp, tmp_path_factory.mktemp(make.__name__))
        writer.work()
        return writer.result()

    return find


def fail(number, name=None):
    raise OSError(number, os.strerror(number), name)


def refuse(folder, number, changes, after=0):
    """Let the system refuse changes of files in a folder, from one of them on: in this process, for
    ever.
    """
    seen = count()

    def see(event, path):
        if event in ("open", *changes) and next(seen) >= after:
            fail(number, path)

    watch(folder, see)


def full_by_size(folder, random):
    """The system refuses to write beyond so many bytes of a file, in the middle of a write."""
    import resource

    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    limit = int(random.integers(1, max([*sizes, 1500])))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def full_by_event(folder, random):
    """From some change on the disk has no room for names; those that are there can be removed."""
    refuse(folder, errno.ENOSPC, EVENTS - {"os.remove", "os.rmdir"}, int(random.integers(12)))


def full_at_sync(folder, random):
    """What was written does not reach the disk."""
    os.fsync = lambda descriptor: fail(errno.ENOSPC)


def read_only(folder, random):
    """For root permissions are no hindrance."""
    refuse(folder, errno.EROFS, EVENTS)


DISKS = [full_by_size, full_by_event, full_at_sync, read_only]
SAID = ("File too large", "No space left", "Read-only file system")


@pytest.mark.parametrize("part", parts(3 * N_ROUNDS))
def test_full_and_read_only(counted, nlp, expected, tmp_path, part):
    promise = (
        "a full or read-only disk: an error that names the file, what was there stays, and with "
        "room it goes on"
    )
    round_, share = divmod(part, 3)
    with counted(promise) as cases:
        # Each with another disk
        for number, make in list(enumerate(WRITERS))[share::3]:
            disk = DISKS[(round_ + number) % len(DISKS)]
            folder = tmp_path / make.__name__
            folder.mkdir()
            writer = make(nlp, folder)
            if make in REPLACING:
                writer.work()
            before = contents(folder)
            random = numpy.random.default_rng([round_, number])
            (said,) = in_time(lambda d=disk, w=writer, f=folder, r=random: (d(f, r), w.work())[1])
            case = f"{make.__name__}, {disk.__name__}, part {part}: {said}"
            # It needed no more than there was
            if said is None:
                cases.check(disk in (full_by_size, full_by_event), f"{case}: it wrote")
            elif any(place in said for place in (str(folder), gettempdir())) and any(
                words in said for words in SAID
            ):
                cases.refused()
            else:
                cases.wrong(f"{case}: it names no file, or no cause")
            if said is not None and (make in REPLACING or disk is read_only):
                cases.check(contents(folder) == before, f"{case}: what was there did not stay")
            writer.work()
            cases.check(
                writer.result() == expected(make), f"{case}: another result when there is room"
            )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("part", parts(4 * N_ROUNDS))
def test_two_writers(counted, nlp, expected, tmp_path, part):
    random = numpy.random.default_rng(part)
    with counted(
        "two processes that write the same: one is refused by name, or both are right"
    ) as cases:
        for make in WRITERS[part % 4 :: 4]:
            folder = tmp_path / make.__name__
            folder.mkdir()
            writer = make(nlp, folder)
            wait = float(random.random() * 0.1)
            said = together(
                writer.work, lambda work=writer.work, wait=wait: (time.sleep(wait), work())
            )
            case = f"{make.__name__}, the second after {wait:.3f} s: {said}"
            refused = [one for one in said if one is not None]
            if not all(
                one.startswith("RuntimeError: Another process") and str(folder) in one
                for one in refused
            ):
                cases.wrong(case)
            elif len(refused) == len(said):
                cases.wrong(f"{case}: nobody wrote")
            else:
                cases.refused(len(refused))
                cases.check(writer.result() == expected(make), f"{case}: another result")
                left = [
                    path.name
                    for path in folder.rglob("*")
                    if path.name.startswith(".") or "partial" in path.name
                ]
                cases.check(not left, f"{case}: it left {left}")


def replace_word(lines):
    return "".join(lines).replace("cat", "dog", 1).splitlines(keepends=True)


CHANGES_OF_INPUT = {
    "a word, of the same size and time": replace_word,
    "a word": replace_word,
    "a line more": lambda lines: [*lines, lines[0]],
    "a line less": lambda lines: lines[:-1],
    "lines swapped": lambda lines: [lines[1], lines[0], *lines[2:]],
}


def of_encode(cases, nlp, folder, change):
    sbert = nlp.get_pipe("sbert")
    output = folder / "out.npy"
    writer = writers.resume(nlp, folder)
    change(folder / "in.txt")
    with cases.refuses("encode", "input (SHA-256)", f"{output}.partial"):
        writer.work()
    cases.check(
        list((folder / "out.npy.partial").glob("window-*.npz")) != [], "what was done is gone"
    )
    encode_file(sbert, folder / "in.txt", folder / "fresh.npy", window=4)
    encode_file(sbert, folder / "in.txt", output, window=4, restart=True)
    cases.check(output.read_bytes() == (folder / "fresh.npy").read_bytes(), "encode anew")


def of_search(cases, nlp, folder, change):
    corpus = write_corpus(folder)
    sbert = nlp.get_pipe("sbert")
    search_texts(sbert, corpus, ["a"], index=folder / "index", kind="flat")
    change(corpus)
    with cases.refuses("search", str(folder / "index"), str(corpus)):
        search_texts(sbert, corpus, ["a"], index=folder / "index", kind="flat")


def of_evaluate(cases, nlp, folder, change):
    path = write_benchmark(folder / "data")

    def predictions(cache=folder / "cache"):
        return {
            name: task["predictions"]
            for name, task in run_suite(folder / "data", cache)["tasks"].items()
        }

    path.write_text(path.read_text().replace("first 0", "a cat"))
    found = predictions()
    change(path)
    again = predictions()
    cases.check(again == predictions(None) and again != found, "evaluate")


def of_fit_meta(cases, nlp, folder, change):
    corpus = write_corpus(folder)

    def vectors(cache):
        return member_vectors(nlp, corpus.read_text().splitlines(), folder / cache)

    views = vectors("vectors")
    change(corpus)
    again = vectors("vectors")
    cases.check(again == vectors("others") != views, "fit-meta")


def write_corpus(folder):
    path = folder / "corpus.txt"
    path.write_text("\n".join(filter(None, TEXTS)) + "\n")
    return path


COMMANDS = [of_encode, of_search, of_evaluate, of_fit_meta]


@pytest.mark.parametrize("part", parts(len(CHANGES_OF_INPUT) * len(COMMANDS), quick=2))
def test_input_that_changes_between_two_runs(counted, nlp, tmp_path, part):
    name, rewrite = list(CHANGES_OF_INPUT.items())[part // len(COMMANDS)]

    def change(path):
        state = path.stat()
        path.write_text("".join(rewrite(path.read_text().splitlines(keepends=True))))
        if "same size" in name:
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    with counted(
        "input that changed since: refused by name, or the same as from the beginning"
    ) as cases:
        COMMANDS[part % len(COMMANDS)](cases, nlp, tmp_path, change)
