"""A pooling of somebody else: one registration, and it is there for Docs, Spans, texts and training."""

import numpy
import pytest
import spacy
from helpers.pipelines import scored_pairs

from spacy_sbert.hub.sentence_transformers import export_folder
from spacy_sbert.models.poolings import POOLING, register_pooling


@pytest.fixture
def registered():
    """The pooling "twice_first": the first state of each sequence, times 2."""

    @register_pooling("twice_first", of_text="mean")
    def twice_first(ops, x, n, n_lead):
        y, starts_ends = ops.reduce_first(x, ops.asarray1i(n))
        return 2 * y, lambda d_y: ops.backprop_reduce_first(2 * d_y, starts_ends)

    yield
    del POOLING["twice_first"]


@pytest.fixture
def nlp(registered, make_nlp):
    return make_nlp(model={"pooling": "twice_first+max", "normalize": False})


def test_vectors_of_docs_spans_and_texts(nlp, make_nlp):
    known = make_nlp(model={"pooling": "cls+max", "normalize": False})
    doc, expected = nlp("a cat sat"), known("a cat sat")
    factors = numpy.repeat([2, 1], 16)
    assert numpy.allclose(doc.vector, expected.vector * factors)
    # A part of a text has no special token
    assert numpy.array_equal(doc[1:].vector, expected[1:].vector)
    assert numpy.array_equal(nlp.get_pipe("sbert").encode("a cat sat"), doc.vector)


def test_training_and_saving(nlp, tmp_path):
    pairs = scored_pairs(nlp)
    nlp.update(pairs, sgd=nlp.initialize(lambda: pairs))
    nlp.to_disk(tmp_path)
    assert numpy.array_equal(spacy.load(tmp_path)("a dog").vector, nlp("a dog").vector)


def test_export_names_the_pooling_that_is_unknown_there(nlp, tmp_path):
    with pytest.raises(ValueError, match="sentence-transformers has no 'twice_first'"):
        export_folder(nlp, tmp_path / "folder")


@pytest.mark.parametrize("name", ["mean", "a+b"])
def test_names_that_are_taken_or_joined(name):
    with pytest.raises(
        ValueError, match=f"Cannot register the pooling '{name}'".replace("+", r"\+")
    ):
        register_pooling(name)
