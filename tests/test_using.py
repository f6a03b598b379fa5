"""docs/using.md: each setting is given where its table says, under `model` or beside it."""

import inspect
import re
from pathlib import Path

import pytest
import spacy

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


@pytest.mark.parametrize("name", ["tokenizer_config", "trust_remote_code"])
def test_a_setting_of_the_model_is_refused_beside_it(name):
    nlp = spacy.blank("en")
    value = True if name.startswith("trust") else {"use_fast": True}
    with pytest.raises(ValueError, match=f"unexpected argument: '{name}'"):
        nlp.add_pipe("sbert", config={name: value})
    nlp.add_pipe("sbert", config={"model": {name: value}})


def test_a_setting_of_the_pipe_is_refused_under_model():
    with pytest.raises(ValueError, match="unexpected argument: 'token_vectors'"):
        spacy.blank("en").add_pipe("sbert", config={"model": {"token_vectors": False}})
