"""What is no file is refused by name before a byte is read of it, and nothing is written through a link."""

import os
import socket
import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
import spacy
from made_data import HashedSource, write_benchmark

from spacy_sbert.arrays import read_arrays
from spacy_sbert.bulk_files import encode_file
from spacy_sbert.bulk_files.vectors import VectorFile
from spacy_sbert.cards import write_readme
from spacy_sbert.evaluation import Settings, evaluate, evaluate_suites
from spacy_sbert.evaluation.results import read_results
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.meta.corpus import read_sentences
from spacy_sbert.meta.fitting import fit_meta
from spacy_sbert.readers import PairCorpus, convert
from spacy_sbert.readers.arguments import read_arguments
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex
from spacy_sbert.search.texts import cluster_texts, mine_texts, search_texts, write_table
from spacy_sbert.static_vectors import read_counts
from spacy_sbert.visual.files import read_document, read_texts
from spacy_sbert.whole import whole_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, and links are not for everyone")
SECONDS = 20  # that a refusal may take on a busy machine; what hangs takes for ever
TARGET = b"of somebody else"


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    nlp.get_pipe("sbert").encode(["a"])
    return nlp


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{folder}/{path.name}")  # paths of sockets are short
    os.close(folder)


def make_device(path):
    path.symlink_to("/dev/zero")


KINDS = {
    "a named pipe": make_fifo,
    "a socket": make_socket,
    "a device": make_device,
    "a folder": Path.mkdir,
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
        yield layout, ("a.tsv",), lambda path, layout=layout: next(PairCorpus(path, format=layout)(nlp))
    yield "train", ("a.spacy",), lambda path: next(PairCorpus(path)(nlp))
    yield "search", LINES[:-1], lambda path: search_texts(sbert, path, ["a"], index=folder / "index", kind="flat")
    yield "mine", LINES, lambda path: mine_texts(sbert, path)
    yield "cluster", LINES, lambda path: cluster_texts(sbert, path)
    yield "visualize", LINES, lambda path: read_texts(path)
    yield "visualize --sentences", ("a.txt",), read_document
    yield "fit-meta", ("a.txt", "a.jsonl"), lambda path: next(read_sentences(path))
    yield "word counts", ("a.txt",), read_counts
    yield "arguments", ("ArgPairs_GC.csv",), lambda path: read_arguments(path, "afs")
    yield "evaluate --compare", ("a.json",), read_results
    yield "int8", ("a.npz",), Int8Vectors.load
    yield "binary", ("a.npz",), BinaryVectors.load
    yield "kept vectors", ("a.npz",), lambda path: read_arrays(path, {"keys": ("uint8", 2)})


def in_time(*works):
    """What calls say, one after the other in a process of their own, so that what hangs ends; None that accept."""
    ours, theirs = get_context("fork").Pipe()
    pid = os.fork()
    if not pid:
        for work in works:
            try:
                theirs.send(work())
            except BaseException as error:
                theirs.send(f"{type(error).__name__}: {error}")
        os._exit(0)
    try:
        for _ in works:
            yield ours.recv() if ours.poll(SECONDS) else "it hangs"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_what_is_no_file_is_refused_before_it_is_read(counted, nlp, tmp_path):
    with counted("input that is no file (folder, pipe, socket, device) is refused by name, and nothing hangs") as cases:
        for kind, make in KINDS.items():
            named, works = [], []
            for number, (command, names, work) in enumerate(readers(nlp, tmp_path)):
                for name in names:
                    if (kind, command) in {("a folder", "search"), ("a folder", "arguments")}:
                        continue  # which take folders
                    path = tmp_path / f"{kind}-{number}" / name
                    path.parent.mkdir(exist_ok=True)
                    make(path)
                    named.append((command, path))
                    works.append(partial(work, path))
            assert len(works) > 50
            for (command, path), said in zip(named, in_time(*works), strict=True):
                if said is not None and said.startswith("ValueError") and f"{path} is {kind}" in said:
                    cases.refused()
                else:
                    cases.wrong(f"{command} of {path.name}: {said}")
    assert not list(tmp_path.glob("out*"))


def test_pipes_in_folders_of_data_and_caches(counted, tmp_path):
    """A task whose file is none fails by name, and the others run; a kept result that is none is made anew."""
    write_benchmark(tmp_path, "dev")
    write_benchmark(tmp_path, "test")
    cache, settings = tmp_path / "cache", Settings(any_count=True, bootstrap=0)

    def run(root):
        found = evaluate_suites(HashedSource(), root, ["sts"], settings=settings, cache=cache, progress_bar=False)
        raise ValueError(str({**found["failed"], "run": sorted(found["tasks"])}))

    with counted("input that is no file (folder, pipe, socket, device) is refused by name, and nothing hangs") as cases:
        (said,) = in_time(partial(run, tmp_path))
        assert "'run': ['STSb-dev', 'STSb-test']" in said
        for file in [next(tmp_path.rglob("sts-dev.csv")), next(cache.glob("STSb-test-*.json"))]:
            file.unlink()
            os.mkfifo(file)
            (said,) = in_time(partial(run, tmp_path))
            cases.check(f"{file} is a named pipe" in said, f"{file.name}: {said}")


def work_of_encode(nlp, folder):
    """From a name of a file that a run has, what it is to be afterwards."""
    (folder / "in.txt").write_text("A man is eating.\nThe cat sat.\n")
    return lambda: encode_file(nlp.get_pipe("sbert"), folder / "in.txt", folder / "out.npy", overwrite=True)


def work_of_resumed(nlp, folder):
    """A run that was broken off: what it kept is there, and one of its files is replaced by a link."""
    work, whole = work_of_encode(nlp, folder), VectorFile.finish
    VectorFile.finish = lambda self: 1 / 0
    try:
        with pytest.raises(ZeroDivisionError):
            work()
    finally:
        VectorFile.finish = whole
    return work


def work_of_parquet(nlp, folder):
    (folder / "in.txt").write_text("A man is eating.\nThe cat sat.\n")
    return lambda: encode_file(nlp.get_pipe("sbert"), folder / "in.txt", folder / "out.parquet", overwrite=True)


def work_of_convert(nlp, folder):
    (folder / "in.tsv").write_text("text\nA man is eating.\n")
    return lambda: convert(folder / "in.tsv", folder / "out.spacy", members=["text"])


def work_of_index(nlp, folder):
    index = VectorIndex.build(nlp.get_pipe("sbert").encode(["A man.", "The cat."]), texts=["A man.", "The cat."])
    return lambda: index.save(folder / "index")


def work_of_vectors(nlp, folder):
    return lambda: BinaryVectors.of(nlp.get_pipe("sbert").encode(["A man."])).save(folder / "out.npz")


def work_of_evaluate(nlp, folder):
    write_benchmark(folder / "data")
    settings = Settings(any_count=True, bootstrap=0)

    def work():
        source, cache = HashedSource(), folder / "cache"
        found = evaluate_suites(source, folder / "data", ["sts"], settings=settings, cache=cache, progress_bar=False)
        if found["failed"]:
            raise ValueError(str(found["failed"]))

    return work


def work_of_fit_meta(nlp, folder):
    def work():
        meta = spacy.blank("en")
        for name in ("one", "two"):
            meta.add_pipe("sbert", name=name, config={"model": nlp.config["components"]["sbert"]["model"]})
        meta.add_pipe("sbert_meta")
        fit_meta(meta, "sbert_meta", lambda: ["A man is eating.", "The cat sat."], cache=folder / "cache")

    return work


def work_of_card(nlp, folder):
    return lambda: write_readme(folder, "# A card", force=True)


def work_of_table(nlp, folder):
    return lambda: write_table(folder / "out.tsv", ("a",), [("1",)])


def work_of_json(nlp, folder):
    return lambda: write_json(folder / "out.json", {"a": 1})


def work_of_page(nlp, folder):
    def work():
        with whole_file(folder / "out.html") as file:
            file.write(b"<html>")

    return work


PARTIAL = ("lock", "run.json", "run.json.new", "vectors.npy", "windows.jsonl", "windows.jsonl.new", "assembled")
PLANTED = {  # what writes, and the names under which a link may stand; {pid} is in the names of some of them
    work_of_encode: ["out.npy", *(f"out.npy.partial/{name}" for name in PARTIAL)],
    work_of_resumed: ["out.npy", *(f"out.npy.partial/{name}" for name in PARTIAL)],
    work_of_parquet: ["out.parquet", *(f"out.parquet.partial/{name}" for name in PARTIAL)],
    work_of_convert: ["out.spacy", ".out.spacy.{pid}"],
    work_of_index: ["index/index.json", "index/.index.json.{pid}"],
    work_of_vectors: ["out.npz", ".out.npz.{pid}"],
    work_of_card: ["README.md", "README.md.tmp", ".README.md.{pid}"],
    work_of_table: ["out.tsv", ".out.tsv.{pid}"],
    work_of_json: ["out.json", "out.{pid}", ".out.json.{pid}"],
    work_of_page: ["out.html", ".out.html.{pid}"],
    work_of_evaluate: None,  # the names of a run, which have digests in them
    work_of_fit_meta: None,
}
LINKS = {"a symbolic link": os.symlink, "a hard link": os.link}


def names_of(make, nlp, folder):
    """The files that a run leaves, and a name that a killed one may leave beside each."""
    folder.mkdir()
    work = make(nlp, folder)
    before = set(folder.rglob("*"))
    work()
    made = [path.relative_to(folder) for path in folder.rglob("*") if path not in before and path.is_file()]
    return [name for path in made for name in (str(path), str(path.with_name(f".{path.name}.{{pid}}")))]


def test_nothing_is_written_through_a_link(counted, nlp, tmp_path):
    with counted("through a link that stands where we write nothing is written: refused, or replaced") as cases:
        for number, (make, names) in enumerate(PLANTED.items()):
            for at, name in enumerate(names or names_of(make, nlp, tmp_path / f"{number}-names")):
                for kind, link in LINKS.items():
                    folder = tmp_path / f"{number}-{at}-{kind.split()[1]}"
                    folder.mkdir()
                    (folder / "target").write_bytes(TARGET)
                    path = folder / name.format(pid=os.getpid())
                    path.parent.mkdir(parents=True, exist_ok=True)
                    work = make(nlp, folder)
                    path.unlink(missing_ok=True)
                    link(folder / "target", path)
                    case = f"{make.__name__}, {kind} {name}"
                    try:
                        work()
                    except (OSError, ValueError, RuntimeError) as error:
                        cases.refused() if str(path) in str(error) else cases.wrong(f"{case}: {error}")
                    else:
                        cases.right()
                    if (folder / "target").read_bytes() != TARGET:
                        cases.wrong(f"{case}: the target was written")


@pytest.mark.parametrize("make", [work_of_encode, work_of_evaluate, work_of_fit_meta])
def test_a_folder_of_ours_that_is_a_link(counted, make, nlp, tmp_path):
    """Folders that people name may be links, as to a larger disk; those that we name may not."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "made").mkdir()
    work = make(nlp, tmp_path / "made")
    path = tmp_path / "made" / "out.npy.partial"
    if make is not work_of_encode:
        work()
        path = next(path for path in (tmp_path / "made" / "cache").iterdir() if path.is_dir())
        for file in (tmp_path / "made" / "cache").rglob("*.*"):
            file.unlink()
        path.rmdir()
    path.symlink_to(tmp_path / "elsewhere")
    with counted("through a link that stands where we write nothing is written: refused, or replaced") as cases:
        with cases.refuses(make.__name__, str(path), "a symbolic link"):
            work()
        assert not list((tmp_path / "elsewhere").iterdir())
