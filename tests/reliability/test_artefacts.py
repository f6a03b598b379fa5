"""Bits, bytes and ends of every file that we write, damaged: it is refused by name, or what comes
of it is the same.
"""

import random
import shutil
import sys
from functools import partial
from typing import Any

import numpy
import pytest
import spacy
from helpers import writers
from helpers.counted_cases import damages, judge, parts
from helpers.made_data import write_benchmark
from helpers.made_stored import Stored
from helpers.made_views import make_views
from helpers.writers import TEXTS, run_suite

from spacy_sbert.bulk import encode_file
from spacy_sbert.evaluation.results import read_results
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.files.checksum import checksummed_json
from spacy_sbert.files.tables import read_table
from spacy_sbert.meta.component import SentenceMeta
from spacy_sbert.meta.fit import _VectorCache
from spacy_sbert.meta.members import PipeMember
from spacy_sbert.meta.methods import make_estimator
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex, build_ivfpq, identify

PROMISE = (
    "what we saved and was damaged since is refused by name, or gives the same; nothing in it is "
    "executed"
)
# Rounds through all files, each in so many parts; cases of each file in a round
N_ROUNDS = 20
N_SHARES = 4
N_CASES = 2
MEMBERS = ["a", "b", "c"]


def is_same(found: Any, expected: Any) -> bool:
    # With more keys it says the same
    if isinstance(expected, dict):
        return all(key in found and is_same(found[key], value) for key, value in expected.items())
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(expected, numpy.ndarray):
        return numpy.array_equal(found, expected)
    return found == expected


# Each writes to a folder and returns what reads it from there, as arrays and plain values


def make_index(folder, nlp, kind):
    vectors = numpy.random.default_rng(0).normal(size=(300, 16)).astype("float32")
    encoder = identify(nlp.get_pipe("sbert"))
    texts = [f"text {i}" for i in range(300)]
    VectorIndex.build(vectors, kind=kind, encoder=encoder, texts=texts).save(folder)

    def read():
        index = VectorIndex.load(folder, encoder=encoder)
        return [*index.search(vectors[:5], k=3), index.rows, index.kind]

    return read


def make_index_of_stored(folder, nlp):
    vectors = Stored(numpy.random.default_rng(0).normal(size=(10_000, 4)).astype("float32"))
    encoder = build_ivfpq(vectors, folder, n_lists=4).encoder

    def read():
        index = VectorIndex.load(folder, encoder=encoder)
        try:
            return index.search(vectors[:5], k=3, vectors=vectors)
        except ValueError as error:
            # Which names the folder of the vectors
            raise ValueError(f"{folder}: {error}") from error

    return read


def make_quantized(folder, nlp, kind):
    vectors = numpy.random.default_rng(0).normal(size=(50, 16))
    made = (
        Int8Vectors.fit(vectors).apply(vectors)
        if kind is Int8Vectors
        else BinaryVectors.of(vectors)
    )
    made.save(folder / "vectors.npz")
    return lambda: kind.load(folder / "vectors.npz").search(vectors[:5], k=3)


def make_meta(folder, nlp, method, **options):
    views = make_views(100)

    def pipe():
        return SentenceMeta(
            spacy.blank("xx").vocab, [*map(PipeMember, MEMBERS)], make_estimator(method, **options)
        )

    made = pipe()
    made.estimator.fit(views, MEMBERS)
    made.to_disk(folder)
    return lambda: pipe().from_disk(folder).estimator.transform(views)


def make_member_vectors(folder, nlp):
    blocks = [[numpy.float32(view[:40]), numpy.float32(view[40:])] for view in make_views(80)]
    cache = _VectorCache(folder, "a" * 64, MEMBERS)
    expected = [numpy.array(view) for view in cache.write(zip(*blocks, strict=True))]

    def read():
        found = _VectorCache(folder, "a" * 64, MEMBERS).read()
        # They are made anew
        return expected if found is None else found

    return read


def make_kept_evaluation(folder, nlp):
    data = folder.with_name("data")
    write_benchmark(data)

    def read():
        found = run_suite(data, folder)
        if found["failed"]:
            raise ValueError(str(found["failed"]))
        return {name: {**task, "reused": None} for name, task in found["tasks"].items()}

    read()
    return read


def make_results(folder, nlp):
    data = folder.with_name("results-data")
    write_benchmark(data)
    write_json(folder / "results.json", checksummed_json(run_suite(data, None)))
    return lambda: read_results(folder / "results.json")


def make_run(folder, nlp, suffix):
    """Broken off before its end, with all that a run keeps."""
    writer = writers.resume(nlp, folder, suffix)

    def read():
        report = writer.work()
        return [writer.result(), report.rows, report.zero, report.cut]

    return read


def make_parquet(folder, nlp):
    pytest.importorskip("pyarrow")
    given = folder.with_name("in.txt")
    given.write_text("\n".join(TEXTS[:6]) + "\n")
    encode_file(nlp.get_pipe("sbert"), given, folder / "out.parquet", window=4, with_text=True)
    return lambda: list(read_table(folder / "out.parquet", ["row", "text", "vector"]))


# Every fourth is in the quick part
ARTEFACTS = {
    "index, flat": partial(make_index, kind="flat"),
    "index, hnsw": partial(make_index, kind="hnsw"),
    "index, ivf": partial(make_index, kind="ivf"),
    "index, ivfpq": make_index_of_stored,
    "int8": partial(make_quantized, kind=Int8Vectors),
    "binary": partial(make_quantized, kind=BinaryVectors),
    "estimator, gcca": partial(make_meta, method="gcca"),
    "estimator, ae": partial(make_meta, method="ae", size=3, epochs=1),
    "estimator, svd": partial(make_meta, method="svd", size=3),
    "estimator, conc": partial(make_meta, method="conc"),
    "members' vectors": make_member_vectors,
    "kept evaluation": make_kept_evaluation,
    "run, .npy": partial(make_run, suffix=".npy"),
    "run, .parquet": partial(make_run, suffix=".parquet"),
    ".parquet": make_parquet,
    "results": make_results,
}


@pytest.mark.skipif(sys.platform == "win32", reason="no alarm")
@pytest.mark.parametrize("part", parts(N_ROUNDS * N_SHARES))
@pytest.mark.filterwarnings("ignore")
def test_damaged_artefacts(counted, nlp, tmp_path, part):
    rng = random.Random(part)
    with counted(PROMISE) as cases:
        for name, make in list(ARTEFACTS.items())[part % N_SHARES :: N_SHARES]:
            folder = tmp_path / name / "made"
            kept = tmp_path / name / "kept"
            folder.mkdir(parents=True)
            read = make(folder, nlp)
            shutil.copytree(folder, kept)
            check = partial(is_same, expected=read())
            files = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
            assert files, name
            for file in files:
                for what, damaged in damages((kept / file).read_bytes(), rng, N_CASES):
                    shutil.rmtree(folder)
                    shutil.copytree(kept, folder)
                    (folder / file).write_bytes(damaged)
                    judge(cases, f"{name}, part {part}, {file}, {what}", read, check, str(folder))
