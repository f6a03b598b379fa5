"""Bits, bytes and ends of every file that we write, damaged: it is refused by name, or what comes of it is the same."""

import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from counting import parts
from damaging import damages, judge
from made_data import HashedSource, write_benchmark
from made_stored import Stored
from made_views import make_views

from spacy_sbert.bulk import encode_file
from spacy_sbert.bulk.file_encoding import _PartialRun
from spacy_sbert.evaluation import Settings, evaluate_suites
from spacy_sbert.evaluation.results import read_results
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.files.serialization import checksummed_json
from spacy_sbert.files.tables import read_table
from spacy_sbert.meta.component import SentenceMeta
from spacy_sbert.meta.fit import _VectorCache
from spacy_sbert.meta.members import PipeMember
from spacy_sbert.meta.methods import make_estimator
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex, build_ivfpq, identify

PROMISE = "what we saved and was damaged since is refused by name, or gives the same; nothing in it is executed"
N_PARTS, N_CASES = 20, 2  # cases of each file in each part
TEXTS = ["A man is eating food.", "The cat sat on the mat.", "", "He cannot go.", "The dog ran fast.", "A meal."]


@dataclass
class Artefact:
    """folder: holds it. read: what comes of it, arrays and plain values, from another folder that holds the same."""

    folder: Path
    read: Callable[[Path], Any]


def is_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):  # with more keys it says the same
        return all(key in found and is_same(found[key], value) for key, value in expected.items())
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(expected, numpy.ndarray):
        return numpy.array_equal(found, expected)
    return found == expected


@pytest.fixture(scope="module")
def sbert(tiny_bert):
    return spacy.blank("en").add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})


def make_index(kind):
    def make(folder, sbert):
        vectors = numpy.random.default_rng(0).normal(size=(300, 16)).astype("float32")
        encoder, texts = identify(sbert), [f"text {i}" for i in range(300)]
        VectorIndex.build(vectors, kind=kind, encoder=encoder, texts=texts).save(folder)

        def read(folder):
            index = VectorIndex.load(folder, encoder=encoder)
            return [*index.search(vectors[:5], k=3), index.rows, index.kind]

        return Artefact(folder, read)

    return make


def make_index_of_stored(folder, sbert):
    vectors = Stored(numpy.random.default_rng(0).normal(size=(10_000, 4)).astype("float32"))
    encoder = build_ivfpq(vectors, folder, n_lists=4).encoder

    def read(folder):
        index = VectorIndex.load(folder, encoder=encoder)
        try:
            return index.search(vectors[:5], k=3, vectors=vectors)
        except ValueError as error:  # which names the folder of the vectors
            raise ValueError(f"{folder}: {error}") from error

    return Artefact(folder, read)


def make_quantized(kind):
    def make(folder, sbert):
        vectors = numpy.random.default_rng(0).normal(size=(50, 16))
        made = Int8Vectors.fit(vectors).apply(vectors) if kind is Int8Vectors else BinaryVectors.of(vectors)
        made.save(folder / "vectors.npz")
        return Artefact(folder, lambda folder: kind.load(folder / "vectors.npz").search(vectors[:5], k=3))

    return make


def make_meta(method):
    def make(folder, sbert):
        views = make_views(100)
        members = [PipeMember(name) for name in "abc"]
        options = {"size": 3} if method == "svd" else {"size": 3, "epochs": 1} if method == "ae" else {}

        def pipe():
            return SentenceMeta(spacy.blank("en").vocab, members, make_estimator(method, **options))

        made = pipe()
        made.estimator.fit(views, list("abc"))
        made.to_disk(folder)
        return Artefact(folder, lambda folder: pipe().from_disk(folder).estimator.transform(views))

    return make


def make_member_vectors(folder, sbert):
    blocks = [[numpy.float32(view[:40]), numpy.float32(view[40:])] for view in make_views(80)]
    cache = _VectorCache(folder, "a" * 64, ["a", "b", "c"])
    expected = [numpy.array(view) for view in cache.write(zip(*blocks, strict=True))]

    def read(folder):
        found = _VectorCache(folder, "a" * 64, ["a", "b", "c"]).read()
        return expected if found is None else found  # they are made anew

    return Artefact(folder, read)


def make_kept_evaluation(folder, sbert):
    data = folder.with_name("data")
    write_benchmark(data)
    settings = Settings(any_count=True, bootstrap=0)

    def read(folder):
        source = HashedSource()
        found = evaluate_suites(source, data, ["sts"], settings=settings, cache=folder, progress_bar=False)
        if found["failed"]:
            raise ValueError(str(found["failed"]))
        return {name: {**task, "reused": None} for name, task in found["tasks"].items()}

    read(folder)
    return Artefact(folder, read)


def make_results(folder, sbert):
    data = folder.with_name("results-data")
    write_benchmark(data)
    found = evaluate_suites(HashedSource(), data, ["sts"], settings=Settings(any_count=True), progress_bar=False)
    write_json(folder / "results.json", checksummed_json(found))
    return Artefact(folder, lambda folder: read_results(folder / "results.json"))


def make_run(suffix):
    def make(folder, sbert):
        """Broken off before its end, with all that a run keeps."""
        given = folder.with_name(f"in{suffix}.txt")
        given.write_text("\n".join(TEXTS * 4) + "\n")
        folder.mkdir(parents=True, exist_ok=True)
        whole = _PartialRun.write

        def write(self, number, window):
            if number == 4:
                raise KeyboardInterrupt
            return whole(self, number, window)

        _PartialRun.write = write
        try:
            encode_file(sbert, given, folder / f"out{suffix}", window=4)
        except KeyboardInterrupt:
            pass
        finally:
            _PartialRun.write = whole

        def read(folder):
            report = encode_file(sbert, given, folder / f"out{suffix}", window=4)
            return [(folder / f"out{suffix}").read_bytes(), report.rows, report.zero, report.cut]

        return Artefact(folder, read)

    return make


def make_parquet(folder, sbert):
    pytest.importorskip("pyarrow")
    given = folder.with_name("in.txt")
    given.write_text("\n".join(TEXTS) + "\n")
    encode_file(sbert, given, folder / "out.parquet", window=4, with_text=True)
    names = ["row", "text", "vector"]
    return Artefact(folder, lambda folder: list(read_table(folder / "out.parquet", names)))


ARTEFACTS = {
    "index, flat": make_index("flat"),
    "index, hnsw": make_index("hnsw"),
    "index, ivf": make_index("ivf"),
    "index, ivfpq": make_index_of_stored,
    "int8": make_quantized(Int8Vectors),
    "binary": make_quantized(BinaryVectors),
    "estimator, svd": make_meta("svd"),
    "estimator, gcca": make_meta("gcca"),
    "estimator, ae": make_meta("ae"),
    "estimator, conc": make_meta("conc"),
    "members' vectors": make_member_vectors,
    "kept evaluation": make_kept_evaluation,
    "results": make_results,
    "run, .npy": make_run(".npy"),
    "run, .parquet": make_run(".parquet"),
    ".parquet": make_parquet,
}


@pytest.mark.skipif(sys.platform == "win32", reason="no alarm")
@pytest.mark.parametrize("part", parts(N_PARTS))
@pytest.mark.filterwarnings("ignore")
def test_damaged_artefacts(counted, sbert, tmp_path, part):
    rng = random.Random(part)
    with counted(PROMISE) as cases:
        for name, make in ARTEFACTS.items():
            folder, kept = tmp_path / name / "made", tmp_path / name / "kept"
            folder.mkdir(parents=True)
            made = make(folder, sbert)
            shutil.copytree(folder, kept)
            expected = made.read(folder)
            files = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
            assert files, name
            for file in files:
                for what, damaged in damages((kept / file).read_bytes(), rng, N_CASES):
                    shutil.rmtree(folder)
                    shutil.copytree(kept, folder)
                    (folder / file).write_bytes(damaged)
                    case = f"{name}, part {part}, {file}, {what}"
                    use, check = partial(made.read, folder), partial(is_same, expected=expected)
                    judge(cases, case, use, check, str(folder))
