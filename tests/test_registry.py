"""Names are a contract: every entry point resolves, every registered thing has one, and codes of
warnings stay.
"""

import ast
import re
import subprocess
import sys
import warnings
from importlib.metadata import distribution
from pathlib import Path

import pytest
import spacy
import srsly
from helpers.pipelines import ROOT, no_warnings
from spacy.util import registry

import spacy_sbert
from spacy_sbert.errors import missing_packages
from spacy_sbert.models.private_attributes import is_installed

if is_installed():
    import spacy_transformers  # noqa: F401

SOURCES = [
    file.read_text(encoding="utf8") for file in Path(spacy_sbert.__file__).parent.rglob("*.py")
]
OF_SRSLY = "srsly_msgpack_decoders"
ENTRY_POINTS = [ep for ep in distribution("spacy-sbert").entry_points if ep.group != OF_SRSLY]


def test_entry_points_resolve():
    for entry_point in ENTRY_POINTS:
        target, (_, _, group) = entry_point.load(), entry_point.group.partition("_")
        if group not in ("factories", "cli"):
            assert getattr(registry, group).get(entry_point.name) is target, entry_point


def test_srsly_finds_the_decoder():
    (entry_point,) = distribution("spacy-sbert").entry_points.select(group=OF_SRSLY)
    assert srsly.msgpack_decoders.get(entry_point.name) is entry_point.load()


def test_names_are_registered_by_entry_points_alone():
    source = "\n".join(SOURCES)
    assert not re.findall(r"(?m)^@registry\..*", source)
    # spaCy reads the settings of a factory from its decorator
    factories = set(re.findall(r'@Language\.factory\(\s*"(\w+)"', source))
    assert factories == {ep.name for ep in ENTRY_POINTS if ep.group == "spacy_factories"}


def test_every_entry_point_is_in_the_page_of_names_and_no_other():
    page = (ROOT / "docs" / "registered-names.md").read_text(encoding="utf8")
    in_the_page = set(re.findall(r"`(spacy-sbert\.\w+\.v\d+|sbert\w*)`", page))
    # `spacy sbert` is a command
    assert in_the_page == {ep.name for ep in ENTRY_POINTS if ep.group != "spacy_cli"}


def test_default_config_is_whole_and_merges():
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"pooling": "cls"}})
    config = nlp.config["components"]["sbert"]
    assert config["model"]["pooling"] == "cls"
    assert config["model"]["name"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert config["model"]["normalize"] == "auto"
    assert nlp.config["components"]["sbert"]["loss"] == {
        "@layers": "spacy-sbert.CosineSimilarityLoss.v1"
    }
    assert nlp.get_pipe_meta("sbert").default_score_weights == {
        "sts_spearman": 1.0,
        "sts_pearson": 0.0,
    }
    assert nlp.config["components"]["sbert"]["scorer"] == {"@scorers": "spacy-sbert.pair_scorer.v1"}


BOW = {
    "@architectures": "spacy.TextCatBOW.v3",
    "exclusive_classes": True,
    "ngram_size": 1,
    "no_output_layer": False,
}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"model": {"pooling": "median"}},
            "Unknown pooling 'median': expected one of cls, max, mean, mean_sqrt_len",
        ),
        ({"model": {"normalize": "yes"}}, "normalize"),
        ({"model": {"get_spans": {"unit": "page"}}}, "page"),
        ({"model": BOW}, "is not a sentence encoder"),
        ({"model": {"token_vectors": False}}, "unexpected argument: 'token_vectors'"),
        ({"unit": "sent"}, "unexpected argument: 'unit'"),
    ],
)
def test_wrong_settings(config, message):
    with pytest.raises(ValueError, match=message):
        spacy.blank("en").add_pipe("sbert", config=config)


# What filters of warnings may name: a code that is renamed breaks them.
WARNINGS = [
    "batches-without-triplets",
    "behind-limit",
    "bulk-cut",
    "classes-contradict",
    "dev-in-train",
    "diverged",
    "encoder-language",
    "encoder-missing",
    "export-cut",
    "export-precision",
    "export-windows",
    "foreign-rows",
    "gold-contradicts",
    "half-precision",
    "import-static-prompts",
    "import-static-uncut",
    "in-two-pipelines",
    "int8-clipped",
    "kept-of-own-code",
    "labels-alike",
    "labels-once",
    "late-sentences",
    "long-sentence",
    "lost-hooks",
    "members-lost",
    "meta-fewer-directions",
    "meta-left-out",
    "meta-not-positive",
    "meta-other-doc",
    "meta-other-members",
    "no-gradients",
    "no-sentences",
    "no-words",
    "nothing-learned",
    "nothing-to-learn",
    "other-encoder",
    "other-pooling",
    "other-tokenizer",
    "padding",
    "part-of-batch",
    "pooled-in-context",
    "reranker-new-head",
    "reranker-nothing-to-learn",
    "reranker-training-cut",
    "reranker-truncated",
    "restore-unused",
    "rows-repeated",
    "scores-ignored",
    "scores-inverted",
    "scores-unchanged",
    "shared-default-prompt",
    "slow-bfloat16",
    "spans-left-out",
    "sparse-attention",
    "static-half-precision",
    "text-changed",
    "tokens-changed",
    "tokens-without-embedding",
    "torn-records",
    "training-cut",
    "truncated",
    "unknown-batch",
    "unknown-dev-labels",
    "unknown-evaluate-labels",
    "unknown-folder-keys",
    "unknown-init-labels",
    "unknown-settings",
    "unknown-tokenizer-keys",
    "unread-texts",
]


def test_codes_of_warnings_stay():
    names = []
    for source in SOURCES:
        for kind in ast.walk(ast.parse(source)):
            if isinstance(kind, ast.ClassDef) and kind.name == "Warnings":
                names += [
                    target.id
                    for one in kind.body
                    if isinstance(one, ast.Assign)
                    for target in one.targets
                ]
    assert sorted(name.lower().replace("_", "-") for name in names) == WARNINGS


def test_a_warning_is_filtered_by_its_code(make_nlp):
    nlp = make_nlp("own")
    doc = nlp("the dog " * 300)
    with no_warnings():
        warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")
        warnings.filterwarnings("ignore", message=r"\[sbert-pooled-in-context\]")
        nlp("the dog " * 300)
        assert doc[1:3].vector.any()


# Registries and packages of others

GETTERS = "print(sorted(spacy.registry.span_getters.get_all()))"
ORDERS = [["spacy, spacy_sbert"], ["spacy_sbert, spacy"]]
ORDERS += (
    [["spacy_sbert", "spacy_transformers"], ["spacy_transformers", "spacy_sbert"]]
    if is_installed()
    else []
)


@pytest.mark.parametrize("order", ORDERS, ids="; ".join)
def test_the_registry_of_span_getters(order):
    code = "\n".join([*(f"import {names}" for names in order), "import spacy", GETTERS])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert "spacy-sbert.sentence_spans.v1" in done.stdout, done.stderr
    assert ("spacy-transformers.doc_spans.v1" in done.stdout) == ("spacy_transformers" in order)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (
            "[E002] Can't find factory for 'transformer' for language English (en).",
            r"spacy-sbert\[transformers\]",
        ),
        (
            "[E002] Can't find factory for 'curated_transformer' for language English (en).",
            r"spacy-sbert\[curated\]",
        ),
        (
            "[E893] Could not find function 'spacy-transformers.TransformerModel.v3'",
            r"spacy-sbert\[transformers\]",
        ),
        (
            "[E893] Could not find function 'spacy-curated-transformers.X.v1'",
            r"spacy-sbert\[curated\]",
        ),
    ],
)
def test_what_to_install(message, named):
    with pytest.raises(ImportError, match=named), missing_packages():
        raise ValueError(f"{message} Available factories: ner")


@pytest.mark.parametrize(
    "message",
    [
        "[E002] Can't find factory for 'mine'. Available factories: 'transformer'",
        "of a 'transformer'",
    ],
)
def test_other_errors_stay(message):
    with pytest.raises(ValueError, match="transformer") as caught, missing_packages():
        raise ValueError(message)
    assert not isinstance(caught.value, ImportError)


@pytest.mark.skipif(is_installed(), reason="spacy-transformers is there")
def test_commands_name_what_to_install(tmp_path):
    from spacy_sbert import load_pipe

    config = spacy.blank("en").config.copy()
    config["nlp"]["pipeline"], config["components"] = (
        ["transformer"],
        {"transformer": {"factory": "transformer"}},
    )
    nlp = spacy.blank("en")
    nlp.to_disk(tmp_path)
    config.to_disk(tmp_path / "config.cfg")
    with pytest.raises(ImportError, match=r"spacy-sbert\[transformers\]"):
        load_pipe(tmp_path)
