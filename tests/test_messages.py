"""Every message begins with a code of its own, by which a filter of warnings or a search names it."""

import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest
import spacy

import spacy_sbert
from spacy_sbert.errors import Messages

PACKAGE = Path(spacy_sbert.__file__).parent
ROOMS = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in PACKAGE.rglob("errors.py")]


# What filters of warnings may name: a code that is renamed breaks them.
WARNINGS = [
    "arrived",
    "behind-limit",
    "bulk-cut",
    "encoder-missing",
    "export-windows",
    "foreign-rows",
    "import-static-prompts",
    "import-static-uncut",
    "joined",
    "late-sentences",
    "meta-fewer-directions",
    "meta-left-out",
    "meta-not-positive",
    "no-sentences",
    "no-words",
    "nothing-to-learn",
    "other-encoder",
    "other-pooling",
    "part-of-batch",
    "pooled-in-context",
    "reranker-new-head",
    "reranker-nothing-to-learn",
    "reranker-training-cut",
    "reranker-truncated",
    "restore-unused",
    "scores-ignored",
    "shared-default-prompt",
    "slow-bfloat16",
    "torn-records",
    "training-cut",
    "truncated",
    "unknown-batch",
    "unknown-dev-labels",
    "unknown-evaluate-labels",
    "unknown-init-labels",
    "unknown-settings",
]


def messages(name=None):
    """Each message by its name, from the class that says it first; those of the classes of one name, or of all."""
    for module in [import_module("spacy_sbert.errors"), *map(import_module, ROOMS)]:
        for kind in vars(module).values():
            if not isinstance(kind, type) or not issubclass(kind, Messages) or kind.__module__ != module.__name__:
                continue
            if name in (None, kind.__name__):
                yield from ((name, text) for name, text in vars(kind).items() if name.isupper())


def test_codes_are_unique():
    names = [name for name, _ in messages()]
    assert len(names) == len(set(names)) > 250


def test_each_message_begins_with_the_code_of_its_name():
    for name, text in messages():
        assert text.startswith(f"[sbert-{name.lower().replace('_', '-')}] "), name
        assert text.count("[sbert-") == 1, name


def test_codes_of_warnings_stay():
    assert sorted(re.match(r"\[sbert-(.+?)\]", text)[1] for _, text in messages("Warnings")) == WARNINGS


def test_each_message_is_used():
    source = "\n".join(file.read_text(encoding="utf8") for file in PACKAGE.rglob("*.py"))
    used = set(re.findall(r"(?:Errors|Warnings|Notes)\.([A-Z0-9_]+)", source))
    assert {name for name, _ in messages()} - used == set()


def test_a_warning_is_filtered_by_its_code(make_nlp):
    nlp = make_nlp("own")
    doc = nlp("the dog " * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")
        warnings.filterwarnings("ignore", message=r"\[sbert-pooled-in-context\]")
        nlp("the dog " * 300)
        assert doc[1:3].vector.any()


def test_an_error_says_its_code():
    with pytest.raises(ValueError, match=r"^\[sbert-no-sbert-pipe\] "):
        spacy_sbert.find_sbert(spacy.blank("en"))
