"""Encoders without a transformer of this package in the rest of the house: files, search, cards, meta-embeddings."""

import dataclasses

import numpy
import pytest
import spacy
from pipelines import OTHERS, WHOLE_DOCS

from spacy_sbert import encode_file, export_folder
from spacy_sbert.hub.cards import describe
from spacy_sbert.models.fingerprint import pipeline_digest
from spacy_sbert.pipeline.listeners import find_transformer
from spacy_sbert.search import identify

TEXTS = ["A man is eating food.", "", "He can't go.", "  ", "The cat sat on the mat."]


def identity(nlp):
    return identify(nlp.get_pipe("sbert"))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    return path


@pytest.mark.parametrize("encoder", OTHERS)
def test_resume_needs_the_same_encoder(make_nlp, encoder, corpus, tmp_path, monkeypatch):
    nlp, calls = make_nlp(encoder), []
    kind = type(nlp.get_pipe("sbert").text_encoder())
    encode = kind.encode

    def fail_at_third(self, texts, *moved):
        calls.append(texts)
        if len(calls) == 3:  # the first is of one text, to see the width
            raise KeyboardInterrupt
        return encode(self, texts, *moved)

    monkeypatch.setattr(kind, "encode", fail_at_third)
    with pytest.raises(KeyboardInterrupt):
        encode_file(nlp.get_pipe("sbert"), corpus, tmp_path / "out.npy", window=2)
    monkeypatch.undo()
    other = make_nlp(encoder, model={"pooling": "max"})
    with pytest.raises(ValueError, match="interrupted"):
        encode_file(other.get_pipe("sbert"), corpus, tmp_path / "out.npy", window=2)
    report = encode_file(nlp.get_pipe("sbert"), corpus, tmp_path / "out.npy", window=2)
    assert (report.resumed, report.rows, report.width, report.cut) == (2, 5, 16, 0)
    assert numpy.array_equal(numpy.load(tmp_path / "out.npy"), nlp.get_pipe("sbert").encode(TEXTS, window=2))


@pytest.mark.parametrize("encoder", OTHERS)
def test_identity(make_nlp, examples, encoder, tmp_path):
    nlp = make_nlp(encoder)
    first, whole = identity(nlp), pipeline_digest(nlp)
    nlp(TEXTS[0])
    nlp.to_disk(tmp_path)
    assert identity(spacy.load(tmp_path)) == first and pipeline_digest(spacy.load(tmp_path)) == whole
    others = [identity(make_nlp(encoder, model=model)) for model in ({"pooling": "max"}, {"normalize": True})]
    other = make_nlp(encoder)
    other.tokenizer.add_special_case("eating", [{"ORTH": "eat"}, {"ORTH": "ing"}])
    assert (identity(other) == first) == (encoder not in WHOLE_DOCS), "a table reads no tokens"
    others += [identity(other)] * (encoder in WHOLE_DOCS)
    nlp.update(examples(nlp), sgd=False)
    for _, pipe in nlp.pipeline:  # after all have called back: spaCy's own tok2vec does not wait for its listeners
        pipe.finish_update(nlp.create_optimizer())
    others.append(identity(nlp))
    assert len({first.digest, *(one.digest for one in others)}) == 1 + len(others)
    assert dataclasses.replace(others[0], digest=first.digest) == first


@pytest.mark.parametrize("encoder", OTHERS)
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
