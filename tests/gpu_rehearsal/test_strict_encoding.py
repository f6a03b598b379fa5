"""`sbert` in use on strict arrays: vectors are those of NumPy, and a batch waits for its states and
its vectors.
"""

import numpy
import pytest
import spacy
from gpu_rehearsal.both_ways import both_ways, check_same, looks_of
from gpu_rehearsal.strict_arrays import StrictArray
from gpu_rehearsal.strict_ops import strict_device
from helpers.objectives import make, step
from helpers.pipelines import ENCODERS, reloaded

pytestmark = pytest.mark.filterwarnings("ignore:.*sbert-")
TEXTS = [
    "A man is eating food.",
    "",
    "The cat sat on the mat. He can go.",
    "A dog ran fast. " * 6,
    "dog",
    "dog",
]
# Modules that wait for values of the device: for the states of wordpieces, for the lengths of
# wordpieces, which curated-transformers leaves there, for vectors, and for weights
STATES = "spacy_sbert.models.pooling"
LENGTHS = "spacy_sbert.models.shared_encoder"
VECTORS = "spacy_sbert.pipeline.records"
WEIGHTS = "spacy_sbert.models.fingerprint"
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 8}


def upstream(nlp, texts):
    """The Docs, and what stands before the pipe has left on them."""
    docs = [nlp.make_doc(text) for text in texts]
    for name, pipe in nlp.pipeline:
        docs = docs if name == "sbert" else list(pipe.pipe(docs))
    return docs


STOCK_STRIDED = {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 8, "stride": 6}
STRIDED = {**STOCK_STRIDED, "@span_getters": "spacy-sbert.strided_spans.v1"}
STOCK = {"@architectures": "spacy-transformers.TransformerModel.v3"}
WINDOWS = {"overflow": "windows"}
SETTINGS = [
    *((encoder, {"unit": "doc+sent"}) for encoder in ENCODERS),
    ("own", {"unit": "sent", "model": {"pooling": "cls+mean", "normalize": True, **WINDOWS}}),
    ("own", {"model": {"dense": DENSE, "normalize": True, "truncate_dim": 4}}),
    ("shared", {"transformer": WINDOWS, "model": {"pooling": "max"}}),
    ("shared", {"transformer": {"get_spans": STRIDED}, "model": {"pooling": "mean"}}),
    (
        "spacy-transformers",
        {"transformer": {"get_spans": STOCK_STRIDED}, "model": {"pooling": "mean"}},
    ),
    ("spacy-transformers", {"transformer": STOCK, "model": {"pooling": "cls"}}),
]


@pytest.mark.parametrize(("encoder", "config"), SETTINGS)
def test_docs_spans_and_tokens(make_nlp, encoder, config):
    """They get the same vectors, which are NumPy's. Each pooling, and other layers, are in
    test_strict_layers.py.
    """

    def work():
        nlp = make_nlp(encoder, **config)
        if "@architectures" in config.get("transformer", {}):
            nlp.initialize()
        pipe = nlp.get_pipe("sbert")
        if "dense" in config.get("model", {}):
            numpy.random.seed(0)
            pipe.model.initialize()
        found = [[pipe.vector(part) for part in (doc, doc[:2], *doc)] for doc in nlp.pipe(TEXTS)]
        assert {type(vector) for of_doc in found for vector in of_doc} == {numpy.ndarray}
        return found

    check_same(*both_ways(work))


def test_saved_and_loaded(make_nlp, tmp_path):
    """Pipelines that were trained on one device, saved and loaded."""

    def work():
        nlp, batch = make(make_nlp, "own", "SoftmaxLoss")
        step(nlp, batch)
        docs = [loaded(batch[0].predicted.copy()) for loaded in (nlp, reloaded(nlp, tmp_path))]
        labels = nlp.get_pipe("sbert").classify(*docs[0].spans["sbert"])
        return [(doc.vector, doc.spans["sbert"].attrs["sbert_label"], labels) for doc in docs]

    expected, found = both_ways(work)
    check_same(expected, found)
    assert (found[0][0] == found[1][0]).all()
    # Saved there
    here = spacy.load(tmp_path)("A dog ran.").vector
    with strict_device():
        assert numpy.allclose(spacy.load(tmp_path)("A dog ran.").vector, here, atol=1e-6)


@pytest.mark.parametrize(
    ("encoder", "token_vectors"), [*((encoder, True) for encoder in ENCODERS), ("own", False)]
)
def test_a_batch_waits_twice(strict, make_nlp, encoder, token_vectors):
    nlp = make_nlp(encoder, model={"normalize": True}, token_vectors=token_vectors)
    nlp("What is done once: the fingerprint of the encoder.")
    pipe = nlp.get_pipe("sbert")
    docs = upstream(nlp, TEXTS)
    scores = []
    in_predict = looks_of(lambda: scores.extend(pipe.predict(docs)))
    assert all(type(encoded.vectors) is StrictArray for encoded in scores)
    assert {look.how for look in in_predict} <= {"get"}
    expected = [LENGTHS] if encoder == "curated" else []
    if token_vectors:
        expected.append(STATES)
    assert [look.module for look in in_predict] == expected
    in_annotations = looks_of(lambda: pipe.set_annotations(docs, scores))
    assert {look.how for look in in_annotations} == {"get"}
    # Weights that another component changes in place
    expected = [WEIGHTS, VECTORS] if encoder == "listening" else [VECTORS]
    assert [look.module for look in in_annotations] == expected


@pytest.mark.parametrize("encoder", ["own", "curated", "static"])
def test_texts_without_docs(make_nlp, encoder):
    """A window waits once for states, and once for vectors."""
    looks = []

    def work():
        pipe = make_nlp(encoder, model={"normalize": True}).get_pipe("sbert")
        looks[:] = looks_of(lambda: pipe.encode(TEXTS, window=4))
        return pipe.encode(TEXTS)

    check_same(*both_ways(work))
    assert [how for how, *_ in looks] == ["get", "get"] * (2 if encoder == "curated" else 1)
