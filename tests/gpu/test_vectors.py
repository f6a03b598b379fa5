"""Vectors of a GPU: those of the CPU, in every precision and pooling, by Docs, without, and on
several GPUs.
"""

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import MINILM, TRANSFORMERS
from thinc.api import CupyOps

pytestmark = pytest.mark.gpu
TEXTS = [
    "A man is eating food.",
    "Someone is having a meal.",
    "",
    "The cat",
    "He cannot go. The dog ran fast. " * 20,
]
TEXTS += ["A man is eating food."]
# Between two vectors of about unit length, in any number
FLOAT32 = 2e-5


def cosines(given, expected):
    u, v = (vectors[expected.any(axis=1)].astype("float64") for vectors in (given, expected))
    return (u * v).sum(axis=1) / numpy.linalg.norm(u, axis=1) / numpy.linalg.norm(v, axis=1)


def by_docs(nlp):
    return numpy.stack([doc.vector for doc in nlp.pipe(TEXTS)])


@pytest.mark.parametrize("pooling", ["mean", "max", "weightedmean", "lasttoken", "cls+mean"])
@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_docs_are_those_of_the_cpu(make_nlp, use_gpu, gpu_id, encoder, pooling):
    settings = {"model": {"pooling": pooling, "normalize": True}}
    expected = by_docs(make_nlp(encoder, **settings))
    use_gpu()
    nlp = make_nlp(encoder, **settings)
    given = by_docs(nlp)
    assert isinstance(nlp.get_pipe("sbert").model.ops, CupyOps) == (gpu_id >= 0)
    assert type(given) is numpy.ndarray
    assert given.dtype == numpy.float32
    assert abs(given - expected).max() < FLOAT32
    assert not given[2].any()
    assert nlp(TEXTS[0]).similarity(nlp(TEXTS[5])) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("precision", "lowest"),
    [("float32", 1 - 1e-6), ("bfloat16", 0.999), ("float16", 0.9999), ("reference", 1 - 1e-6)],
)
def test_encode_is_that_of_the_cpu(use_gpu, precision, lowest):
    """On all-MiniLM-L6-v2."""

    def encode(precision):
        nlp = spacy.blank("en")
        return nlp.add_pipe(
            "sbert", config={"model": {"name": MINILM, "precision": precision}}
        ).encode(TEXTS)

    expected = encode("float32")
    use_gpu()
    given = encode(precision)
    assert given.shape == (len(TEXTS), 384)
    assert given.dtype == numpy.float32
    assert cosines(given, expected).min() > lowest
    if precision in ("float32", "reference"):
        assert abs(given - expected).max() < FLOAT32


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "kind", ["BertModel", "RobertaModel", "MPNetModel", "DistilBertModel", "ElectraModel"]
)
def test_packed_rows_are_those_of_the_cpu(use_gpu, gpu_id, kind, precision):
    """Of each family, by the very passes that are rehearsed on meta tensors."""
    from gpu_rehearsal.test_meta_encoder import TRAINED, N, make_wordpieces

    from spacy_sbert.models.engine.backend import encode_windows
    from spacy_sbert.models.engine.packed_bert import PackedBert

    def states(device, precision):
        engine = PackedBert(model.to(device), getattr(torch, precision))
        found = numpy.zeros((N, 16), dtype="float32")
        for part in encode_windows(engine, wordpieces):
            places = numpy.concatenate(
                [numpy.arange(N)[starts[i] :][: wordpieces.lengths[i]] for i in part.windows]
            )
            found[places] = (
                part.values if isinstance(part.values, numpy.ndarray) else part.values.get()
            )
        return found

    (network, config, sizes) = next(
        found for found in TRAINED.values() if found[0].__name__ == kind
    )
    torch.manual_seed(0)
    model = network(config(**sizes)).eval()
    wordpieces = make_wordpieces()
    starts = wordpieces.starts
    expected = states("cpu", "float32")
    use_gpu()
    given = states("cpu" if gpu_id < 0 else f"cuda:{gpu_id}", precision)
    assert (
        abs(given - expected).max()
        < {"float32": 1e-5, "float16": 2e-2, "bfloat16": 1e-1}[precision]
    )


def test_a_saved_pipeline_goes_from_the_gpu_to_the_cpu(make_nlp, use_gpu, gpu_id, tmp_path):
    expected = by_docs(make_nlp())
    use_gpu()
    auto = make_nlp(model={"precision": "auto"})
    assert auto(TEXTS[0]).has_vector
    assert gpu_id < 0 or "16 on cuda:" in repr(auto.get_pipe("sbert"))
    nlp = make_nlp()
    by_docs(nlp)
    nlp.to_disk(tmp_path)
    spacy.require_cpu()
    assert abs(by_docs(spacy.load(tmp_path)) - expected).max() < FLOAT32


@pytest.mark.parametrize("n_gpus", [1, 2])
def test_encode_on_several_gpus(make_nlp, gpu_id, n_gpus):
    """A process for each, of a pipeline that itself is on the CPU."""
    sbert = make_nlp().get_pipe("sbert")
    texts = TEXTS * 3
    expected = sbert.encode(texts)
    if gpu_id >= 0 and 0 < torch.cuda.device_count() < n_gpus:
        pytest.skip(f"needs {n_gpus} GPUs")
    where = {"gpu_ids": list(range(n_gpus))} if gpu_id >= 0 else {"n_process": n_gpus}
    given = sbert.encode(texts, window=4, **where)
    assert abs(given - expected).max() < FLOAT32


def test_the_command_that_encodes(make_nlp, gpu_id, spacy_command, tmp_path):
    make_nlp().to_disk(tmp_path / "nlp")
    (tmp_path / "texts.txt").write_text("A man.\nThe cat sat.\n", encoding="utf8")
    expected = make_nlp().get_pipe("sbert").encode(["A man.", "The cat sat."])
    where = ["--gpu-ids", gpu_id] if gpu_id >= 0 else []
    spacy_command(
        "sbert", "encode", "texts.txt", "out.npy", "--pipeline", "nlp", *where, folder=tmp_path
    )
    assert abs(numpy.load(tmp_path / "out.npy") - expected).max() < FLOAT32
