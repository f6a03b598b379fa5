"""Encoders without a transformer of this package: their cards, and what is refused."""

import pytest
from helpers.pipelines import OTHERS, WHOLE_DOCS, slow

from spacy_sbert import export_folder
from spacy_sbert.hub.cards import describe
from spacy_sbert.pipeline.sentence_model import find_transformer

ENCODERS = ["tokens", *slow(*(one for one in OTHERS if one != "tokens"))]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_cards_and_what_needs_a_transformer(make_nlp, encoder, tmp_path):
    nlp = make_nlp(encoder)
    nlp.to_disk(tmp_path / "nlp")
    facts = describe(nlp, folder=tmp_path / "nlp")
    (found,) = facts.encoders
    expected = {"tokens": "spacy.HashEmbedCNN.v2", "listening": "spacy.Tok2VecListener.v1"}
    expected |= {"curated": "spacy-curated-transformers.BertTransformer.v1", "static": "bert"}
    assert (found.base_model, found.width, found.max_length, found.is_on_hub) == (
        expected[encoder],
        16,
        None,
        False,
    )
    kinds = {"curated": "a curated_transformer", "static": "a table of wordpieces"}
    kind = kinds.get(encoder, "a token-to-vector model of spaCy")
    with pytest.raises(ValueError, match=f"is {kind}, and this works with transformers"):
        find_transformer("sbert", nlp.get_pipe("sbert").model)
    if encoder in WHOLE_DOCS:
        with pytest.raises(ValueError, match=f"is {kind}, and this works with transformers"):
            export_folder(nlp, tmp_path / "folder")
    encoder = nlp.get_pipe("sbert").text_encoder()
    encoder.set_precision("auto", [])
    with pytest.raises(ValueError, match="precision = 'bfloat16'"):
        encoder.set_precision("bfloat16", [])
