"""Every Doc of a pipeline has a vector of the same width: empty Docs too, whether they come first, later or alone."""

import numpy
import pytest
from pipelines import ENCODERS

TEXTS = ["", "A man is eating food.", "   ", "The cat sat."]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 12}
MODELS = {
    "plain": ({}, 16),
    "concatenated": ({"pooling": "cls+mean"}, 32),
    "truncated": ({"truncate_dim": 5}, 5),
    "dense, truncated": ({"dense": DENSE, "truncate_dim": 7}, 7),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_empty_docs_are_as_wide_as_others(make_nlp, encoder, model):
    config, width = MODELS[model]
    for first in ("", "A man."):
        nlp = make_nlp(encoder, model=config)  # so that the first Doc is the first of all
        if "dense" in config and encoder == "shared":
            nlp.get_pipe("sbert").model.get_ref("pooling").dense.initialize()
        elif "dense" in config:
            nlp.initialize()
        for truncate_dim, expected in ((3, 3), (None, width), (3, 3)):
            settings = {} if truncate_dim is None else {"component_cfg": {"sbert": {"truncate_dim": truncate_dim}}}
            docs = [nlp(first, **settings), *nlp.pipe(TEXTS, **settings)]
            assert {doc.vector.shape[0] for doc in docs} | {doc._.sbert_vector.shape[0] for doc in docs} == {expected}
            assert not any(doc.has_vector or doc.vector.any() for doc in docs if not doc.text.strip())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_call_leaves_no_trace(make_nlp, encoder):
    nlp = make_nlp(encoder)
    for text in ("", "A man."):
        with pytest.raises(ValueError, match="17 dimensions: they have 16"):
            nlp(text, component_cfg={"sbert": {"truncate_dim": 17}})
    nlp("A man.")
    before = nlp.get_pipe("sbert").to_bytes()
    nlp("", component_cfg={"sbert": {"truncate_dim": 3}})
    assert nlp.get_pipe("sbert").to_bytes() == before
    assert nlp("").vector.shape == (16,)


def test_encode_without_texts(make_nlp):
    pipe = make_nlp().get_pipe("sbert")
    assert pipe.encode([], truncate_dim=3).shape == (0, 3)
    with pytest.raises(ValueError, match="17 dimensions: they have 16"):
        pipe.encode([], truncate_dim=17)


def test_a_meta_embedding_of_an_empty_doc(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="cut", config={"model": {"name": str(tiny_bert), "truncate_dim": 4}})
    nlp.add_pipe("sbert_meta")
    docs = [nlp(""), nlp("A man."), nlp("")]
    assert [doc.vector.shape for doc in docs] == [(20,)] * 3
    assert not docs[0].has_vector and not numpy.any(docs[0].vector)
