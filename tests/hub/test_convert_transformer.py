"""Pipelines over spacy-transformers, converted: the same annotations without it."""

import json

import numpy
import pytest
import spacy
from invoking import invoke, said
from pipelines import MINILM, STOCK, STOCK_LISTENER, blank, no_warnings, slow
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_sbert.hub.convert_transformer import convert_transformer

OURS = "spacy-sbert.TransformerModel.v1"
GETTERS = {
    "doc": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    "sent": {"@span_getters": "spacy-transformers.sent_spans.v1"},
    "strided": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 6, "stride": 4},
    "ours": {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc"},
}
TRAINING = [
    ("a man is eating food on the mat .", [(2, 5, "PERSON"), (16, 20, "FOOD")], {"x": 1.0, "y": 0.0}),
    ("the dog ran fast . he can not go .", [(4, 7, "ANIMAL")], {"x": 0.0, "y": 1.0}),
    ("someone is having a meal .", [(0, 7, "PERSON"), (20, 24, "FOOD")], {"x": 1.0, "y": 0.0}),
]
TEXTS = [text for text, _, _ in TRAINING] + ["The cat sat on the mat.  He can't go! ", "  \n", "a man " * 40]


def listener(**settings):
    return {**STOCK_LISTENER, **settings}


def add_components(nlp, tok2vec=None):
    tok2vec = tok2vec or listener()
    nlp.add_pipe("sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}})
    nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec}})
    nlp.add_pipe("textcat", config={"model": {"@architectures": "spacy.TextCatEnsemble.v2", "tok2vec": tok2vec}})


def make(folder, getter="strided", architecture=STOCK, train=True, **model):
    """A pipeline of ner, textcat and sbert over a `transformer`, trained for a few steps."""
    fix_random_seed(0)
    nlp = blank("en")
    nlp.add_pipe("sentencizer")
    settings = {"@architectures": architecture, "name": str(folder), "get_spans": GETTERS[getter], **model}
    nlp.add_pipe("transformer", config={"model": settings})
    add_components(nlp)
    if train:
        fit(nlp)
    return nlp


def examples_of(nlp):
    return [
        Example.from_dict(nlp.make_doc(text), {"entities": entities, "cats": cats}) for text, entities, cats in TRAINING
    ]


def fit(nlp, steps=8):
    examples = examples_of(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update([Example(nlp(eg.reference.text), eg.reference) for eg in examples], sgd=optimizer, exclude=["sbert"])
    return nlp


def annotations(nlp, texts=TEXTS):
    docs = list(nlp.pipe(texts))
    labels = [(doc.to_json().get("ents"), doc.to_json()["tokens"], sorted(doc.cats)) for doc in docs]
    cats = [list(doc.cats.values()) for doc in docs]
    vectors = [nlp.get_pipe("sbert").vector(doc) for doc in docs] if "sbert" in nlp.pipe_names else []
    return labels, numpy.array(cats), numpy.array(vectors)


def check_same(nlp, folder, texts=TEXTS, tolerance=1e-6):
    expected = annotations(nlp, texts)
    nlp.to_disk(folder / "old")
    convert_transformer(folder / "old", folder / "new")
    converted = spacy.load(folder / "new")
    found = annotations(converted, texts)
    assert "spacy-transformers" not in converted.config.to_str()
    assert converted.pipe_names == nlp.pipe_names
    assert found[0] == expected[0]
    for new, old in zip(found[1:], expected[1:], strict=True):
        numpy.testing.assert_allclose(new, old, rtol=0, atol=tolerance * max(1, numpy.abs(old).max(initial=0)))
    return converted


pytestmark = pytest.mark.spacy_transformers


@pytest.mark.parametrize("getter", GETTERS)
@pytest.mark.parametrize("architecture", [STOCK, OURS])
def test_annotates_as_before(tiny_bert, tmp_path, getter, architecture):
    converted = check_same(make(tiny_bert, getter, architecture), tmp_path)
    assert converted.get_pipe_meta("transformer").factory == "sbert_transformer"
    assert {doc.ents for doc in converted.pipe(TEXTS)} != {()}
