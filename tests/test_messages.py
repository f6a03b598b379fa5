"""Codes of warnings, by which a filter names them."""

import re
import warnings
from importlib import import_module
from pathlib import Path

import spacy_sbert

ROOT = Path(spacy_sbert.__file__).parent.parent
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


def test_codes_of_warnings_stay():
    files = Path(spacy_sbert.__file__).parent.rglob("errors.py")
    modules = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    kinds = [vars(import_module(name)).get("Warnings") for name in modules]
    texts = {text for kind in kinds if kind for name, text in vars(kind).items() if name.isupper()}
    assert sorted(re.match(r"\[sbert-(.+?)\]", text)[1] for text in texts) == WARNINGS


def test_a_warning_is_filtered_by_its_code(make_nlp):
    nlp = make_nlp("own")
    doc = nlp("the dog " * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")
        warnings.filterwarnings("ignore", message=r"\[sbert-pooled-in-context\]")
        nlp("the dog " * 300)
        assert doc[1:3].vector.any()
