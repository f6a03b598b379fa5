"""Encoders without a transformer of this package in the rest of the house: digests, cards and export."""

import dataclasses

import pytest
import spacy
from pipelines import OTHERS, WHOLE_DOCS

from spacy_sbert import export_folder, find_sbert
from spacy_sbert.hub.cards import describe
from spacy_sbert.models.fingerprint import pipeline_digest
from spacy_sbert.pipeline.listeners import find_transformer
from spacy_sbert.search import identify

ENCODERS = ["tokens", *(pytest.param(one, marks=pytest.mark.slow) for one in OTHERS if one != "tokens")]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_identity(make_nlp, examples, encoder, tmp_path):
    nlp = make_nlp(encoder)
    first, whole = identify(find_sbert(nlp)), pipeline_digest(nlp)
    nlp("A man is eating food.")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert identify(find_sbert(loaded)) == first and pipeline_digest(loaded) == whole
    changed = [make_nlp(encoder, model=model) for model in ({"pooling": "max"}, {"normalize": True}, {})]
    changed[-1].tokenizer.add_special_case("eating", [{"ORTH": "eat"}, {"ORTH": "ing"}])
    others = [identify(find_sbert(other)) for other in changed]
    if encoder not in WHOLE_DOCS:
        assert others.pop() == first, "a table reads no tokens"
    nlp.update(examples(nlp), sgd=False)
    for _, pipe in nlp.pipeline:  # after all have called back: spaCy's own tok2vec does not wait for its listeners
        pipe.finish_update(nlp.create_optimizer())
    others.append(identify(find_sbert(nlp)))
    assert len({first.digest, *(one.digest for one in others)}) == 1 + len(others)
    assert dataclasses.replace(others[0], digest=first.digest) == first


@pytest.mark.parametrize("encoder", ENCODERS)
def test_cards_and_what_needs_a_transformer(make_nlp, encoder, tmp_path):
    nlp = make_nlp(encoder)
    nlp.to_disk(tmp_path / "nlp")
    facts = describe(nlp, folder=tmp_path / "nlp")
    (found,) = facts.encoders
    expected = {"tokens": "spacy.HashEmbedCNN.v2", "listening": "spacy.Tok2VecListener.v1"}
    expected |= {"curated": "spacy-curated-transformers.BertTransformer.v1", "static": "bert"}
    assert (found.base_model, found.width, found.max_length, found.is_on_hub) == (expected[encoder], 16, None, False)
    kinds = {"curated": "a curated_transformer", "static": "a table of wordpieces"}
    kind = kinds.get(encoder, "a token-to-vector model of spaCy")
    with pytest.raises(ValueError, match=f"is {kind}, and this works with transformers"):
        find_transformer("sbert", nlp.get_pipe("sbert").model)
    if encoder in WHOLE_DOCS:
        with pytest.raises(ValueError, match=f"is {kind}, and this works with transformers"):
            export_folder(nlp, tmp_path / "folder")
    encoder = nlp.get_pipe("sbert").text_encoder()
    encoder.set_precision("auto", [])
    with pytest.raises(ValueError, match="Cannot encode in precision = 'bfloat16' with a token-to-vector model"):
        encoder.set_precision("bfloat16", [])
