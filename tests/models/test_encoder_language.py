"""The language of an encoder, and pipelines of another one."""

import shutil

import pytest
import spacy
from helpers.pipelines import MINILM, warnings_with

from spacy_sbert.models.encoder_language import language_of

CARDS = {
    "en": "---\nlanguage: en\n---\n# A card",
    "English of the US": "---\nlicense: mit\nlanguage: en-US\n---\n",
    "three letters": "---\nlanguage: eng\n---\n",
    "a list of one": "---\nlanguage:\n- en\ntags: []\n---\n",
    "fr": "---\nlanguage: fr\n---\n",
    "several": "---\nlanguage: [en, fr]\n---\n",
    "multilingual": "---\nlanguage: multilingual\n---\n",
    "mul": "---\nlanguage: mul\n---\n",
    "none": "# A card\n---\nlanguage: en\n---\n",
    "no YAML": "---\nlanguage: [en\n---\n",
    "empty": "",
}
LANGUAGES = {
    "en": "en",
    "English of the US": "en",
    "three letters": "en",
    "a list of one": "en",
    "fr": "fr",
    "mul": "xx",
}


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory):
    """Encoders with these cards."""
    folder = tmp_path_factory.mktemp("cards")
    for name, card in CARDS.items():
        (shutil.copytree(tiny_bert, folder / name) / "README.md").write_text(card, encoding="utf8")
    return folder


def warned(nlp, *, pipe="sbert", **model):
    with warnings_with("[sbert-encoder-language]") as ours:
        nlp.add_pipe(pipe, config={"model": model})
    return ours


def test_the_warning_is_at_the_line_that_adds_the_pipe():
    with pytest.warns(UserWarning, match=r"\[sbert-encoder-language\]") as caught:
        spacy.blank("fr").add_pipe("sbert")
    assert {one.filename for one in caught if "encoder-language" in str(one.message)} == {__file__}


@pytest.mark.parametrize("card", CARDS)
def test_a_language_is_that_of_the_card(folders, card):
    language = LANGUAGES.get(card)
    name = str(folders / card)
    assert language_of(name) == language
    assert len(warned(spacy.blank("fr"), name=name)) == (language == "en")
    assert warned(spacy.blank("en"), name=name) == warned(spacy.blank("xx"), name=name) == []


@pytest.mark.parametrize("pipe", ["sbert", "sbert_reranker"])
def test_the_default_encoder_is_english(pipe):
    assert language_of(MINILM) == "en"
    (message,) = warned(spacy.blank("fr"), pipe=pipe)
    assert f"'{MINILM}' of the pipe '{pipe}' was made for the language 'en'" in message
    assert "multilingual" in message


def test_a_saved_pipe_may_have_learned_its_language(folders, tmp_path):
    nlp = spacy.blank("fr")
    assert len(warned(nlp, name=str(folders / "en"))) == 1
    nlp.initialize()
    nlp.to_disk(tmp_path)
    with warnings_with("[sbert-encoder-language]") as ours:
        spacy.load(tmp_path)
    assert ours == []
