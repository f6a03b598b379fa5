"""A full disk: each writer's error names a file, and what the system said. Counted: writers."""

import os
import re
import signal

import numpy
import pytest
from helpers.made_views import SENTENCES
from helpers.pipelines import make_example

from spacy_sbert import encode_file
from spacy_sbert.bulk import encode_dataset
from spacy_sbert.distributed.checkpoint import TrainingState, save_checkpoint
from spacy_sbert.distributed.torch_distributed import TorchDistributed
from spacy_sbert.evaluation.suite import write_json
from spacy_sbert.files.tables import write_table
from spacy_sbert.hub.sentence_transformers import export_folder
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.readers import convert
from spacy_sbert.search import BinaryVectors, Int8Vectors, VectorIndex

resource = pytest.importorskip("resource")
X = numpy.random.default_rng(0).standard_normal((400, 16), dtype="float32")
TEXTS = [f"The cat sat {i}." for i in range(60)]


def _meta(make_nlp, tiny_bert):
    nlp = make_nlp(model={"normalize": False})
    spans = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"}
    nlp.add_pipe(
        "sbert",
        name="max",
        config={"model": {"name": str(tiny_bert), "pooling": "max", "get_spans": spans}},
    )
    nlp.add_pipe("sbert_meta", config={"method": "svd", "size": 6})
    fit_meta(nlp, "sbert_meta", lambda: SENTENCES)
    return nlp


@pytest.fixture(scope="module")
def nlp(make_nlp):
    made = make_nlp()
    made("a cat")
    return made


# A component to save by itself
PIPES = {
    "sbert": lambda make_nlp, bert: make_nlp().get_pipe("sbert"),
    "static": lambda make_nlp, bert: make_nlp("static").get_pipe("sbert"),
    "sbert_meta": lambda make_nlp, bert: _meta(make_nlp, bert).get_pipe("sbert_meta"),
    "shared": lambda make_nlp, bert: make_nlp("shared").get_pipe("transformer"),
}


def _checkpoint(nlp, path):
    pairs = [make_example(nlp, *SENTENCES[:2], score=0.5)]
    optimizer = nlp.initialize(lambda: pairs)
    save_checkpoint(path, nlp, optimizer, TrainingState(), TorchDistributed(), {})


def _texts(path, name):
    (path / "texts").mkdir(exist_ok=True)
    if not (path / "texts" / name).exists():
        (path / "texts" / name).write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    return path / "texts"


def _pairs(path):
    file = path / "pairs.tsv"
    if not file.exists():
        file.write_text("".join(f"a cat\ta dog {i}\t0.5\n" for i in range(9)), encoding="utf8")
    return file


def _write_dataset(nlp, path):
    pipeline = path.parent / "nlp"
    if not pipeline.exists():
        nlp.to_disk(pipeline)
    report = encode_dataset(_texts(path.parent, "a.txt"), path / "out", pipeline=pipeline)
    # Which is told for each file
    for message in report.failed.values():
        raise OSError(27, message)


WRITERS = {
    **{
        f"index, {kind}": lambda nlp, path, kind=kind: VectorIndex.build(X, kind=kind).save(path)
        for kind in ("flat", "hnsw", "ivf")
    },
    "index, texts": lambda nlp, path: VectorIndex.build(X[:3], texts=["a" * 999] * 3).save(path),
    "index, copies": lambda nlp, path: VectorIndex.build(
        numpy.repeat(X[:1], 900, 0), kind="hnsw"
    ).save(path),
    "int8": lambda nlp, path: Int8Vectors.fit(X).apply(X).save(path / "int8.npz"),
    "binary": lambda nlp, path: BinaryVectors.of(X).save(path / "binary.npz"),
    "vectors.npy": lambda nlp, path: encode_file(
        nlp.get_pipe("sbert"), _texts(path, "a.txt") / "a.txt", path / "a.npy"
    ),
    "vectors.parquet": lambda nlp, path: encode_file(
        nlp.get_pipe("sbert"), _texts(path, "a.txt") / "a.txt", path / "a.parquet"
    ),
    "data set": _write_dataset,
    "table": lambda nlp, path: write_table(
        path / "found.tsv", ("text",), [(text,) for text in TEXTS]
    ),
    "results": lambda nlp, path: write_json(path / "results.json", {"texts": TEXTS}),
    "pairs": lambda nlp, path: convert(
        _pairs(path.parent), path / "pairs.spacy", members=["0", "1"], score="2", header=False
    ),
    "exported": lambda nlp, path: export_folder(nlp, path / "exported"),
    "checkpoint": _checkpoint,
}


def _limited(act, path, size):
    """The error of an act that may write files of so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with pytest.raises((OSError, ValueError)) as raised:
            act(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    return raised.value


def _check_named(act, folder):
    (folder / "first").mkdir()
    act(folder / "first")
    sizes = sorted(
        {file.stat().st_size for file in (folder / "first").rglob("*") if file.is_file()}
    )
    assert sizes
    for number, size in enumerate(sizes[-2:]):
        (folder / f"limited{number}").mkdir()
        error = _limited(act, folder / f"limited{number}", size - 1)
        assert str(folder) in str(error) and "File too large" in str(error), error
        # A pipeline is loaded through files of its own
        assert re.search("Cannot (write|load)", str(error))


@pytest.mark.parametrize("writer", WRITERS)
def test_the_error_names_the_file(nlp, writer, tmp_path):
    _check_named(lambda path: WRITERS[writer](nlp, path), tmp_path)


@pytest.mark.parametrize("encoder", PIPES)
def test_a_component_that_cannot_be_saved(make_nlp, tiny_bert, encoder, tmp_path):
    """And the model that was there before stays."""
    pipe = PIPES[encoder](make_nlp, tiny_bert)
    pipe.to_disk(tmp_path / "first")
    largest = tmp_path / "first" / ("estimator" if encoder == "sbert_meta" else "model")
    before = largest.read_bytes()
    error = _limited(lambda path: pipe.to_disk(path), tmp_path / "first", len(before) - 1)
    assert error.errno == 27
    assert f"Cannot write {largest.parent}" in str(error)
    assert largest.read_bytes() == before
    assert not [name for name in os.listdir(tmp_path / "first") if name[0] == "."]
