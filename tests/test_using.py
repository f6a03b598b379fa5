"""docs/using.md: each setting is given where its table says, under `model` or beside it."""

import inspect
import re
import warnings
from pathlib import Path

import numpy
import pytest
import spacy

import spacy_sbert
from spacy_sbert.component.sbert import make_sbert
from spacy_sbert.models import sentence_encoder

TEXT = (Path(__file__).parent.parent / "docs" / "using.md").read_text(encoding="utf8")


def settings(heading: str) -> set[str]:
    """The settings that the first column of a table names."""
    table = TEXT.split(f"| {heading} |")[1].split("\n\n")[0]
    return {name for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", cell)}


def test_settings_stand_in_the_table_of_what_takes_them():
    of_model, of_pipe = settings("setting of `model`"), settings("setting of the pipe")
    assert {"tokenizer_config", "trust_remote_code", "precision"} < of_model <= set(parameters(sentence_encoder))
    assert {"token_vectors", "set_hooks"} == of_pipe <= set(parameters(make_sbert))


def parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


VALUES = {"tokenizer_config": {"use_fast": True}, "trust_remote_code": True, "pooling": "cls", "precision": "auto"}


@pytest.mark.parametrize(("name", "value"), VALUES.items())
def test_a_setting_of_the_model_is_refused_beside_it(name, value):
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match=f"unexpected argument: '{name}'"):
        nlp.add_pipe("sbert", config={name: value})
    nlp.add_pipe("sbert", config={"model": {name: value}})


def test_a_unit_is_refused_where_it_is_not_read():
    nlp = spacy.blank("en")
    for config in ({"unit": "sent"}, {"model": {"unit": "sent"}}):
        with pytest.raises(ValueError, match="unexpected argument: 'unit'"):
            nlp.add_pipe("sbert", config=config)
    nlp.add_pipe("sbert", config={"model": {"get_spans": {"unit": "sent"}}})
    assert nlp.config["components"]["sbert"]["model"]["get_spans"]["unit"] == "sent"


def test_the_name_of_an_encoder_beside_model_is_warned_of_by_spacy(tiny_bert):
    """spaCy drops it before the pipe could see it: the docs name its warning."""
    nlp = spacy.blank("en")
    with pytest.warns(UserWarning, match="W119"):
        nlp.add_pipe("sbert", config={"name": str(tiny_bert)})
    assert nlp.config["components"]["sbert"]["model"]["name"].endswith("all-MiniLM-L6-v2") and "W119" in TEXT
    nlp.add_pipe("sbert", "given", config={"model": {"name": str(tiny_bert)}})
    assert nlp.config["components"]["given"]["model"]["name"] == str(tiny_bert)


@pytest.mark.usefixtures("en_core_web_sm")
def test_in_a_pipeline_that_one_has_sentences_are_encoded_on_their_own(capsys):
    """The block of the docs, on a package of that name, and the message where the pipe comes first."""
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "en_core_web_sm" in one]
    namespace: dict = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=r"\[sbert-")
        exec(compile(block, "using.md", "exec"), namespace)
    nlp, doc = namespace["nlp"], namespace["doc"]
    texts = ["The bank raised its rates.", "We sat on the river bank."]
    assert [line.split(" (384,)")[0] for line in capsys.readouterr().out.splitlines()] == texts
    alone = spacy_sbert.find_sbert(nlp).encode([doc.text, *texts])
    assert numpy.allclose([doc.vector, *(sent.vector for sent in doc.sents)], alone, atol=1e-6)
    nlp = spacy.load("en_core_web_sm")
    nlp.add_pipe("sbert", first=True)
    with pytest.warns(UserWarning, match=r"\[sbert-late-sentences\].*'parser', which sets"):
        nlp(doc.text)


def test_a_setting_of_the_pipe_is_refused_under_model():
    with pytest.raises(ValueError, match="unexpected argument: 'token_vectors'"):
        spacy.blank("en").add_pipe("sbert", config={"model": {"token_vectors": False}})
