"""Registries and packages of others: those that a config may name."""

import subprocess
import sys

import pytest
import spacy

from spacy_sbert.errors import missing_packages
from spacy_sbert.models.private_attributes import is_installed

GETTERS = "print(sorted(spacy.registry.span_getters.get_all()))"
ORDERS = [["spacy, spacy_sbert"], ["spacy_sbert, spacy"]]
ORDERS += [["spacy_sbert", "spacy_transformers"], ["spacy_transformers", "spacy_sbert"]] if is_installed() else []


@pytest.mark.parametrize("order", ORDERS, ids="; ".join)
def test_the_registry_of_span_getters(order):
    code = "\n".join([*(f"import {names}" for names in order), "import spacy", GETTERS])
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert "spacy-sbert.sentence_spans.v1" in done.stdout, done.stderr
    assert ("spacy-transformers.doc_spans.v1" in done.stdout) == ("spacy_transformers" in order)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("[E002] Can't find factory for 'transformer' for language English (en).", r"spacy-sbert\[transformers\]"),
        ("[E002] Can't find factory for 'curated_transformer' for language English (en).", r"spacy-sbert\[curated\]"),
        ("[E893] Could not find function 'spacy-transformers.TransformerModel.v3'", r"spacy-sbert\[transformers\]"),
        ("[E893] Could not find function 'spacy-curated-transformers.X.v1'", r"spacy-sbert\[curated\]"),
    ],
)
def test_what_to_install(message, named):
    with pytest.raises(ImportError, match=named), missing_packages():
        raise ValueError(f"{message} Available factories: ner")


@pytest.mark.parametrize(
    "message",
    ["[E002] Can't find factory for 'mine'. Available factories: 'transformer'", "of a 'transformer'"],
)
def test_other_errors_stay(message):
    with pytest.raises(ValueError, match="transformer") as caught, missing_packages():
        raise ValueError(message)
    assert not isinstance(caught.value, ImportError)


@pytest.mark.skipif(is_installed(), reason="spacy-transformers is there")
def test_commands_name_what_to_install(tmp_path):
    from spacy_sbert import load_pipe

    config = spacy.blank("en").config.copy()
    config["nlp"]["pipeline"], config["components"] = ["transformer"], {"transformer": {"factory": "transformer"}}
    nlp = spacy.blank("en")
    nlp.to_disk(tmp_path)
    config.to_disk(tmp_path / "config.cfg")
    with pytest.raises(ImportError, match=r"'transformer' of spacy-transformers.*spacy-sbert\[transformers\]"):
        load_pipe(tmp_path)
