"""Disks that are full or read-only, input that changes between two runs, and two processes that write the same."""

import errno
import os
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import gettempdir

import numpy
import pytest
import spacy
import writers
from counting import parts
from made_data import HashedSource, write_benchmark
from writers import TEXTS, WRITERS, in_time

from spacy_sbert.bulk import encode_file
from spacy_sbert.evaluation import Settings, evaluate_suites
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.search.corpus_search import _open_index, read_corpus

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, no limit of a file's size")
N_PARTS = 16
CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}
# Those that replace a file that is there; the others keep what they have done, and go on.
REPLACING = [writers.convert_table, writers.save_index, writers.save_vectors, writers.write_card, writers.write_rows]
REPLACING += [writers.write_results, writers.write_page]


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    nlp.get_pipe("sbert").encode(["a"])
    return nlp


@pytest.fixture(scope="module")
def expected(nlp, tmp_path_factory):
    """What each writer's result is with nothing in its way."""
    found = {}
    for make in WRITERS:
        writer = make(nlp, tmp_path_factory.mktemp(make.__name__))
        writer.work()
        found[make] = writer.result()
    return found


def full_by_size(work, folder, random):
    """The system refuses to write beyond so many bytes of a file, in the middle of a write."""
    import resource

    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    limit = int(random.integers(1, max([*sizes, 1500])))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    return work()


def full_by_event(work, folder, random):
    """From some change on the disk has no room for names; those that are there can be removed."""
    return refuse(work, folder, errno.ENOSPC, int(random.integers(12)), CHANGES - {"os.remove", "os.rmdir"})


def full_at_sync(work, folder, random):
    """What was written does not reach the disk."""

    def sync(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.fsync = sync
    return work()


def read_only(work, folder, random):
    """As on a disk that is mounted so: for root permissions are no hindrance, so whatever would change a file of the
    folder is refused with EROFS before the system sees it."""
    return refuse(work, folder, errno.EROFS, 0, CHANGES)


def refuse(work, folder, number, after, changes):
    inside, left = str(folder) + os.sep, [after]

    def hook(event, arguments):
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if (event == "open" or event in changes) and any(str(given).startswith(inside) for given in arguments[:2]):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(number, os.strerror(number), str(arguments[0]))

    sys.addaudithook(hook)  # for ever: this is a process of its own
    return work()


DISKS = [full_by_size, full_by_event, full_at_sync, read_only]
SAID = ("File too large", "No space left", "Read-only file system")


@pytest.mark.parametrize("part", parts(N_PARTS))
def test_full_and_read_only(counted, nlp, expected, tmp_path, part):
    promise = "a full or read-only disk: an error that names the file, what was there stays, and with room it goes on"
    with counted(promise) as cases:
        for number, make in enumerate(WRITERS):
            disk = DISKS[(part + number) % len(DISKS)]
            folder = tmp_path / make.__name__
            folder.mkdir()
            writer = make(nlp, folder)
            if make in REPLACING:
                writer.work()
            before = contents(folder)
            (said,) = in_time(partial(disk, writer.work, folder, numpy.random.default_rng([part, number])))
            case = f"{make.__name__}, {disk.__name__}, part {part}: {said}"
            if said is None:  # it needed no more than there was
                cases.check(disk in (full_by_size, full_by_event), f"{case}: it wrote")
            elif any(place in said for place in (str(folder), gettempdir())) and any(words in said for words in SAID):
                cases.refused()
            else:
                cases.wrong(f"{case}: it names no file, or no cause")
            if said is not None and (make in REPLACING or disk is read_only):
                cases.check(contents(folder) == before, f"{case}: what was there did not stay")
            writer.work()
            cases.check(writer.result() == expected[make], f"{case}: another result when there is room")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def together(*works):
    """What works say that begin at the same time in processes of their own."""
    context = get_context("fork")
    barrier, found = context.Barrier(len(works)), []
    for work in works:
        ours, theirs = context.Pipe()
        pid = os.fork()
        if not pid:
            try:
                barrier.wait(writers.SECONDS)
                work()
                theirs.send(None)
            except BaseException as error:
                theirs.send(f"{type(error).__name__}: {error}")
            os._exit(0)
        found.append((pid, ours))
    said = [ours.recv() if ours.poll(writers.SECONDS) else "it hangs" for _, ours in found]
    for pid, _ in found:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return said


@pytest.mark.parametrize("part", parts(N_PARTS))
def test_two_writers(counted, nlp, expected, tmp_path, part):
    random = numpy.random.default_rng(part)
    with counted("two processes that write the same: one is refused by name, or both are right") as cases:
        for make in WRITERS:
            folder = tmp_path / make.__name__
            folder.mkdir()
            writer = make(nlp, folder)
            wait = float(random.random() * 0.1)
            said = together(writer.work, lambda work=writer.work, wait=wait: (time.sleep(wait), work()))
            case = f"{make.__name__}, the second after {wait:.3f} s: {said}"
            refused = [one for one in said if one is not None]
            if not all(one.startswith("RuntimeError: Another process") and str(folder) in one for one in refused):
                cases.wrong(case)
            elif len(refused) == len(said):
                cases.wrong(f"{case}: nobody wrote")
            else:
                cases.refused(len(refused))
                cases.check(writer.result() == expected[make], f"{case}: another result")
                left = [path.name for path in folder.rglob("*") if path.name.startswith(".") or "partial" in path.name]
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


@pytest.mark.parametrize("part", parts(len(CHANGES_OF_INPUT)))
def test_input_that_changes_between_two_runs(counted, nlp, tmp_path, part):
    name = list(CHANGES_OF_INPUT)[part]
    sbert = nlp.get_pipe("sbert")

    def change(path):
        state = path.stat()
        path.write_text("".join(CHANGES_OF_INPUT[name](path.read_text().splitlines(keepends=True))))
        if "same size" in name:
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    with counted("input that changed since: refused by name, or the same as from the beginning") as cases:
        writer = writers.resume(nlp, tmp_path)
        change(tmp_path / "in.txt")
        with cases.refuses(f"encode, {name}", "input (SHA-256)", str(tmp_path / "out.npy.partial")):
            writer.work()
        cases.check(list((tmp_path / "out.npy.partial").glob("window-*.npz")) != [], "what was done is gone")
        encode_file(sbert, tmp_path / "in.txt", tmp_path / "fresh.npy", window=4)
        encode_file(sbert, tmp_path / "in.txt", tmp_path / "out.npy", window=4, restart=True)
        same = (tmp_path / "out.npy").read_bytes() == (tmp_path / "fresh.npy").read_bytes()
        cases.check(same, f"encode anew, {name}")

        corpus = tmp_path / "corpus.txt"
        corpus.write_text("\n".join(filter(None, TEXTS)) + "\n")
        _open_index(sbert, corpus, tmp_path / "index", read_corpus(corpus), kind="flat")
        change(corpus)
        with cases.refuses(f"search, {name}", str(tmp_path / "index"), str(corpus)):
            _open_index(sbert, corpus, tmp_path / "index", read_corpus(corpus), kind="flat")

        found = scores(tmp_path, tmp_path / "cache")
        path = next((tmp_path / "data").rglob("sts-dev.csv"))
        path.write_text(path.read_text().replace("first 0", "a cat"))
        scores(tmp_path, tmp_path / "cache")
        change(path)
        again = scores(tmp_path, tmp_path / "cache")
        cases.check(again == scores(tmp_path, None) and again != found, f"evaluate, {name}")

        views = member_vectors(nlp, corpus, tmp_path / "vectors")
        change(corpus)
        again = member_vectors(nlp, corpus, tmp_path / "vectors")
        cases.check(again == member_vectors(nlp, corpus, tmp_path / "others") != views, f"fit-meta, {name}")


def scores(folder, cache):
    if not (folder / "data").exists():
        write_benchmark(folder / "data")
    settings = Settings(any_count=True, bootstrap=0)
    found = evaluate_suites(HashedSource(), folder / "data", settings=settings, cache=cache, progress_bar=False)
    return {name: task["predictions"] for name, task in found["tasks"].items()}


def member_vectors(nlp, corpus: Path, cache):
    meta = spacy.blank("en")
    for name in ("one", "two"):
        meta.add_pipe("sbert", name=name, config={"model": nlp.config["components"]["sbert"]["model"]})
    meta.add_pipe("sbert_meta")
    lines = corpus.read_text().splitlines()
    return [view.tolist() for view in fit_meta(meta, "sbert_meta", lambda: lines, cache=cache)]
