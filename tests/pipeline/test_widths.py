"""Every Doc of a pipeline has a vector of the same width: empty Docs too, whether they come first, later or alone."""

import pytest
from pipelines import OTHERS, TRANSFORMERS

TEXTS = ["", "A man is eating food.", "   ", "The cat sat."]
ENCODERS = [*TRANSFORMERS, *(pytest.param(one, marks=pytest.mark.slow) for one in OTHERS)]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 12}
MODELS = {
    "plain": ({}, 16),
    "concatenated": ({"pooling": "cls+mean"}, 32),
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
        for truncate_dim, expected in ((3, 3), (None, width)):
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
