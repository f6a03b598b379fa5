"""Texts are encoded without what the pipeline does to its Docs, which a warning tells."""

import numpy
import pytest
import spacy
from helpers.pipelines import no_warnings
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_words_and_spaces

from spacy_sbert import find_sbert


@pytest.fixture
def with_pipes(make_nlp):
    def make(encoder, *pipes):
        nlp = make_nlp(encoder)
        for pipe in pipes:
            nlp.add_pipe(pipe, first=True)
        nlp.initialize()
        return nlp

    return make


def keep(doc):
    return doc


Language.component("token_changes_unknown", func=keep)
Language.component("token_changes_norm", func=keep, assigns=["token.norm"])
Language.component("token_changes_tag", func=keep, assigns=["token.tag"])
CHANGING = ["merge_entities", "token_changes_unknown", "token_changes_norm", "attribute_ruler"]


@pytest.mark.parametrize("pipe", CHANGING)
@pytest.mark.parametrize("encoder", ["tokens", "listening"])
def test_a_component_that_may_change_tokens_is_named_once(with_pipes, encoder, pipe):
    nlp = with_pipes(encoder, pipe)
    sbert = find_sbert(nlp)
    with pytest.warns(UserWarning, match=rf"\[sbert-tokens-changed\] 'sbert' encodes .* {pipe} "):
        sbert.encode(["a man"])
    with no_warnings():
        sbert.encode(["a man"])


@pytest.mark.parametrize("pipe", ["sentencizer", "entity_ruler", "token_changes_tag"])
def test_what_the_encoder_does_not_read_may_change(with_pipes, pipe):
    with no_warnings():
        find_sbert(with_pipes("tokens", pipe)).encode(["a man"])


@pytest.mark.parametrize("encoder", ["own", "shared", "static"])
def test_encoders_of_text_do_not_read_tokens(with_pipes, encoder):
    with no_warnings():
        find_sbert(with_pipes(encoder, "merge_entities")).encode(["a man"])


@pytest.mark.parametrize("change", [str.lower, str.strip, lambda text: " ".join(text.split())])
def test_a_tokenizer_that_changes_texts_is_named_once(make_nlp, change):
    nlp = make_nlp("own")

    def tokenizer(text):
        words, spaces = get_words_and_spaces(change(text).split(), change(text))
        return Doc(nlp.vocab, words=words, spaces=spaces)

    nlp.tokenizer = tokenizer
    sbert = find_sbert(nlp)
    with pytest.warns(UserWarning, match=r"\[sbert-text-changed\] The tokenizer of the pipeline"):
        sbert.encode(["a man"])
    with no_warnings():
        sbert.encode(["a man"])


def test_a_tokenizer_that_keeps_texts_is_right(make_nlp):
    nlp = make_nlp("own")

    def tokenizer(text):
        words, spaces = get_words_and_spaces(text.split(), text)
        return Doc(nlp.vocab, words=words, spaces=spaces)

    nlp.tokenizer = tokenizer
    with no_warnings():
        find_sbert(nlp).encode(["a man"])


@pytest.mark.parametrize("encoder", ["tokens", "own"])
def test_a_sourced_encoder_of_tokens_has_the_tokenizer_of_its_source(make_nlp, encoder, tmp_path):
    source = make_nlp(encoder)
    source.initialize()
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", source=source)
    if encoder == "own":
        with no_warnings():
            nlp("a man")
        return
    with pytest.warns(UserWarning, match=r"\[sbert-other-tokenizer\] 'sbert' got Docs of another"):
        nlp("a man")
    nlp.to_disk(tmp_path)
    with no_warnings():
        spacy.load(tmp_path)("a man")
    with pytest.warns(UserWarning, match="sbert-in-two-pipelines"):
        assert numpy.array_equal(find_sbert(nlp).encode(["a man"])[0], nlp("a man").vector)
