"""Every Doc of a pipeline has a vector of the same width: empty Docs too, whether they come first, later or alone."""

import pytest
from pipelines import EVERY_ENCODER

TEXTS = ["", "A man is eating food.", "   ", "The cat sat."]
DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 12}
MODELS = {16: {}, 32: {"pooling": "cls+mean"}, 7: {"dense": DENSE, "truncate_dim": 7}}


@pytest.mark.parametrize("width", MODELS)
@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_empty_docs_are_as_wide_as_others_and_a_call_leaves_no_trace(make_nlp, encoder, width):
    def truncated(n):
        return {"component_cfg": {"sbert": {"truncate_dim": n}}}  # in which nlp.pipe puts more

    for first in ("", "A man."):
        nlp = make_nlp(encoder, model=MODELS[width])  # so that the first Doc is the first of all
        if width == 7 and encoder == "shared":
            nlp.get_pipe("sbert").model.get_ref("pooling").dense.initialize()
        elif width == 7:
            nlp.initialize()
        for settings, expected in ((truncated(3), 3), ({}, width)):
            docs = [nlp(first, **settings), *nlp.pipe(TEXTS, **settings)]
            assert {doc.vector.shape[0] for doc in docs} | {doc._.sbert_vector.shape[0] for doc in docs} == {expected}
            assert not any(doc.has_vector or doc.vector.any() for doc in docs if not doc.text.strip())
        before = nlp.get_pipe("sbert").to_bytes()
        nlp("", **truncated(3))
        for text in ("", "A man."):
            with pytest.raises(ValueError, match="33 dimensions: they have"):
                nlp(text, **truncated(33))
        assert nlp.get_pipe("sbert").to_bytes() == before and nlp("").vector.shape == (width,)
