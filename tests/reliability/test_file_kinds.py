"""What is no file is refused by name before a byte is read of it, and nothing is written through a
link.
"""

import os
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers import writers
from helpers.counted_cases import parts
from helpers.made_data import write_benchmark
from helpers.writers import WRITERS, in_time, run_suite
from protocols.argument_corpora import read_arguments

from spacy_sbert.bulk import encode_file
from spacy_sbert.evaluation import evaluate
from spacy_sbert.evaluation.results import read_results
from spacy_sbert.files.serialization import read_arrays
from spacy_sbert.files.tables import read_texts
from spacy_sbert.files.text_lines import read_counts, read_lines
from spacy_sbert.meta.fit import read_sentences
from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.search import BinaryVectors, Int8Vectors
from spacy_sbert.search.corpus_search import cluster_texts, mine_texts, search_texts

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="no FIFOs, and links are not for everyone"
)
NOT_FILES = (
    "input that is not a file (folder, pipe, socket, device) is refused by name, nothing hangs"
)
THROUGH_LINKS = "through a link that stands where we write nothing is written: refused, or replaced"


def make_socket(path):
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        # Paths of sockets are short
        bound.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def make_device(path):
    path.symlink_to("/dev/zero")


KINDS = {
    "a named pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": make_socket,
    "a device": make_device,
}
LINES = ("a.txt", "a.jsonl", "a.csv", "a.tsv", "a.txt.gz", "a.csv.gz", "a.parquet")
TABLES = ("a.jsonl", "a.csv", "a.tsv", "a.csv.gz", "a.parquet")


def readers(nlp, folder):
    """Each way in which a file is read: its names, and from a path what reads it."""
    sbert = nlp.get_pipe("sbert")
    yield "encode", LINES, lambda path: encode_file(sbert, path, folder / "out.npy")
    yield "convert", TABLES, lambda path: convert(path, folder / "out.spacy", members=["text"])
    yield "convert", ("a.txt",), lambda path: convert(path, folder / "out.spacy", format="text")
    yield "evaluate", ("a.tsv", "a.csv", "a.spacy"), lambda path: evaluate(nlp, path)
    for layout in ("sts", "nli", "sick", "wikisection", "quora", "text"):
        yield (
            layout,
            ("a.tsv",),
            lambda path, layout=layout: next(PairCorpus(path, format=layout)(nlp)),
        )
    yield "train", ("a.spacy",), lambda path: next(PairCorpus(path)(nlp))
    yield (
        "search",
        LINES[:-1],
        lambda path: search_texts(sbert, path, ["a"], index=folder / "index", kind="flat"),
    )
    yield "mine", LINES, lambda path: mine_texts(sbert, path)
    yield "cluster", LINES, lambda path: cluster_texts(sbert, path)
    yield "visualize", LINES, lambda path: read_texts(path)
    yield "visualize --sentences", ("a.txt",), lambda path: list(read_lines(path))
    yield "fit-meta", ("a.txt", "a.jsonl"), lambda path: next(read_sentences(path))
    yield "word counts", ("a.txt",), read_counts
    yield "arguments", ("ArgPairs_GC.csv",), lambda path: read_arguments(path, "afs")
    yield "compare", ("a.json",), read_results
    yield "int8", ("a.npz",), Int8Vectors.load
    yield "binary", ("a.npz",), BinaryVectors.load
    yield "kept vectors", ("a.npz",), lambda path: read_arrays(path, {"keys": ("uint8", 2)})


@pytest.mark.parametrize("number", parts(len(KINDS)))
def test_read_only_regular_files(counted, nlp, tmp_path, number):
    kind, make = list(KINDS.items())[number]
    named = []
    works = []
    for place, (command, names, work) in enumerate(readers(nlp, tmp_path)):
        for name in names:
            if (kind, command) in {("a folder", "search"), ("a folder", "arguments")}:
                # Which take folders
                continue
            path = tmp_path / str(place) / name
            path.parent.mkdir(exist_ok=True)
            make(path)
            named.append((command, path))
            works.append(partial(work, path))
    assert len(works) > 50
    with counted(NOT_FILES) as cases:
        for (command, path), said in zip(named, in_time(*works), strict=True):
            cases.check_message(
                said, f"{command} of {path.name}", "ValueError", f"{path} is {kind}"
            )
    assert not list(tmp_path.glob("out*"))


def test_named_pipes_in_folders_of_data_and_caches(counted, tmp_path):
    """A task whose file is not a regular file fails by name, the others run; what is not a kept
    result is computed.
    """
    for split in ("dev", "test"):
        write_benchmark(tmp_path, split)
    cache = tmp_path / "cache"

    def run():
        found = run_suite(tmp_path, cache)
        return str({**found["failed"], "run": sorted(found["tasks"])})

    with counted(NOT_FILES) as cases:
        assert "'run': ['STSb-dev', 'STSb-test']" in run()
        for file in [next(tmp_path.rglob("sts-dev.csv")), next(cache.glob("STSb-test-*.json"))]:
            file.unlink()
            os.mkfifo(file)
            (said,) = in_time(run)
            cases.check_message(said, file.name, f"{file} is a named pipe")


PARTIAL = ("lock", "run.json", "window-00000000.npz", "new", "new.json")
# Names under which a link may stand beside those of the files that a run leaves
PLANTED = {
    writers.encode: [f"out.npy.partial/{name}" for name in PARTIAL],
    writers.resume: [f"out.npy.partial/{name}" for name in PARTIAL],
    writers.encode_parquet: [f"out.parquet.partial/{name}" for name in PARTIAL],
    writers.save_index: ["index/lock"],
    writers.write_card: ["README.md.tmp"],
    writers.write_results: ["out.{pid}"],
}
N_SHARES = 3
LINKS = {"a symbolic link": os.symlink, "a hard link": os.link}


def names_of(make, nlp, folder):
    """The files that a run leaves, and a name that a killed one may leave beside each."""
    folder.mkdir()
    writer = make(nlp, folder)
    before = set(folder.rglob("*"))
    writer.work()
    made = [
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path not in before and path.is_file()
    ]
    return [
        name for path in made for name in (str(path), str(path.with_name(f".{path.name}.{{pid}}")))
    ]


@pytest.mark.parametrize("part", parts(len(LINKS) * N_SHARES))
def test_links_are_not_followed(counted, nlp, tmp_path, part):
    kind, link = list(LINKS.items())[part // N_SHARES]
    with counted(THROUGH_LINKS) as cases:
        for make in WRITERS[part % N_SHARES :: N_SHARES]:
            left = names_of(make, nlp, tmp_path / f"{make.__name__}-names")
            for at, name in enumerate([*left, *PLANTED.get(make, ())]):
                folder = tmp_path / f"{make.__name__}-{at}"
                folder.mkdir()
                (folder / "target").write_bytes(b"of somebody else")
                path = folder / name.format(pid=os.getpid())
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = make(nlp, folder)
                path.unlink(missing_ok=True)
                link(folder / "target", path)
                case = f"{make.__name__}, {kind} {name}"
                try:
                    writer.work()
                except (OSError, ValueError, RuntimeError) as error:
                    cases.check_message(error, case, str(path))
                else:
                    cases.right()
                if (folder / "target").read_bytes() != b"of somebody else":
                    cases.wrong(f"{case}: the target was written")


FOLDERS = [
    pytest.param(make, marks=pytest.mark.slow if make is writers.keep_member_vectors else ())
    for make in (writers.encode, writers.evaluate, writers.keep_member_vectors)
]


@pytest.mark.parametrize("make", FOLDERS)
def test_folder_that_is_a_link(counted, make, nlp, tmp_path):
    """Folders that people name may be links, as to a larger disk; those that we name may not."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "made").mkdir()
    work = make(nlp, tmp_path / "made").work
    path = tmp_path / "made" / "out.npy.partial"
    if make is not writers.encode:
        work()
        path = next(path for path in (tmp_path / "made" / "cache").iterdir() if path.is_dir())
        for file in (tmp_path / "made" / "cache").rglob("*.*"):
            file.unlink()
        path.rmdir()
    path.symlink_to(tmp_path / "elsewhere")
    with counted(THROUGH_LINKS) as cases:
        with cases.refuses(make.__name__, str(path), "a symbolic link"):
            work()
        assert not list((tmp_path / "elsewhere").iterdir())
