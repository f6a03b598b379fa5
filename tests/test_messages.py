"""Codes of warnings, by which a filter names them."""

import ast
import warnings
from pathlib import Path

import spacy_sbert

# What filters of warnings may name: a code that is renamed breaks them.
WARNINGS = [
    "arrived", "behind-limit", "bulk-cut", "encoder-missing", "export-windows", "foreign-rows",
    "import-static-prompts", "import-static-uncut", "late-sentences", "meta-fewer-directions",
    "meta-left-out", "meta-not-positive", "no-sentences", "no-words", "nothing-to-learn", "other-encoder",
    "other-pooling", "part-of-batch", "pooled-in-context", "reranker-new-head", "reranker-nothing-to-learn",
    "reranker-training-cut", "reranker-truncated", "restore-unused", "scores-ignored", "shared-default-prompt",
    "slow-bfloat16", "torn-records", "training-cut", "truncated", "unknown-batch", "unknown-dev-labels",
    "unknown-evaluate-labels", "unknown-init-labels", "unknown-settings"
]  # fmt: skip


def test_codes_of_warnings_stay():
    names = []
    for file in Path(spacy_sbert.__file__).parent.rglob("*.py"):
        for kind in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
            if isinstance(kind, ast.ClassDef) and kind.name == "Warnings":
                names += [target.id for one in kind.body if isinstance(one, ast.Assign) for target in one.targets]
    assert sorted(name.lower().replace("_", "-") for name in names) == WARNINGS


def test_a_warning_is_filtered_by_its_code(make_nlp):
    nlp = make_nlp("own")
    doc = nlp("the dog " * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")
        warnings.filterwarnings("ignore", message=r"\[sbert-pooled-in-context\]")
        nlp("the dog " * 300)
        assert doc[1:3].vector.any()
