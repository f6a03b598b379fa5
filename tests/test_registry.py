"""Registered names are a contract: every entry point resolves, and every registered thing has one."""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import spacy
from spacy.util import load_model_from_config, registry
from thinc.api import Config

import spacy_sbert
from spacy_sbert.models.private_attributes import is_installed

if is_installed():
    import spacy_transformers  # noqa: F401

PACKAGE = Path(spacy_sbert.__file__).parent
ROOT = PACKAGE.parent
ENTRY_POINTS = distribution("spacy-sbert").entry_points


def test_entry_points_resolve():
    for entry_point in ENTRY_POINTS:
        target, (_, _, group) = entry_point.load(), entry_point.group.partition("_")
        if group not in ("factories", "cli"):
            assert getattr(registry, group).get(entry_point.name) is target, entry_point


def test_every_registered_name_has_an_entry_point():
    named = {ep.name for ep in ENTRY_POINTS}
    source = "\n".join(file.read_text(encoding="utf8") for file in PACKAGE.rglob("*.py"))
    decorated = set(re.findall(r'@registry\.\w+\(\s*"([^"]+)"', source))
    decorated |= set(re.findall(r'@Language\.factory\(\s*"(\w+)"', source))
    assert decorated == named


def test_default_config_is_whole_and_merges():
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"pooling": "cls"}})
    config = nlp.config["components"]["sbert"]
    assert config["model"]["pooling"] == "cls"
    assert config["model"]["name"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert config["model"]["normalize"] == "auto"
    assert nlp.config["components"]["sbert"]["loss"] == {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
    assert nlp.get_pipe_meta("sbert").default_score_weights == {"sts_spearman": 1.0, "sts_pearson": 0.0}
    assert nlp.config["components"]["sbert"]["scorer"] == {"@scorers": "spacy-sbert.pair_scorer.v1"}


CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))
TOKENS = ("distillation_tok2vec", "infersent", "paraphrase_average", "word_average")  # without a transformer
SOURCED = {"two_step": ("shared", "paths.checkpoint"), "distillation_static": ("static", "paths.student")}
RERANKERS = ("reranker", "reranker_nli", "reranker_two_step")
QUICK = ("sts", "joint", "two_step", "distillation_static", "infersent", "reranker")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(
            file,
            id=file.stem,
            marks=[pytest.mark.spacy_transformers] * ("SentenceListener" in file.read_text())
            + [pytest.mark.slow] * (file.stem not in QUICK),
        )
        for file in CONFIGS
    ],
)
def test_shipped_configs_are_complete(file, make_nlp, tmp_path):
    encoder, path = SOURCED.get(file.stem, ("", ""))
    if encoder:
        make_nlp(encoder).to_disk(tmp_path / "nlp")
    config = Config().from_disk(file, overrides={path: str(tmp_path / "nlp")} if encoder else {})
    nlp = load_model_from_config(config, auto_fill=True, validate=True)
    alone = encoder or file.stem in TOKENS
    expected = ["sbert_reranker"] if file.stem in RERANKERS else ["sbert"] if alone else ["transformer", "sbert"]
    assert set(expected) <= set(nlp.pipe_names)
    for block in expected:
        assert config["components"][block].keys() - {"source"} <= nlp.config["components"][block].keys(), block


BOW = {"@architectures": "spacy.TextCatBOW.v3", "exclusive_classes": True, "ngram_size": 1, "no_output_layer": False}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": {"pooling": "median"}}, "Unknown pooling 'median': expected one of cls, max, mean, mean_sqrt_len"),
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


LIGHT = """
import sys, spacy_sbert.cli
assert not {"transformers", "scipy", "spacy_transformers"} & set(sys.modules)
import spacy, torch, os, warnings, importlib
for name in sys.argv[1:]:
    importlib.import_module(name)  # it changes some settings itself
state = lambda: (torch.get_num_threads(), dict(os.environ), list(warnings.filters), torch.get_default_dtype())
before = state()
import spacy_sbert.pipeline.sbert, spacy_sbert.architectures, spacy_sbert.readers
assert state() == before
spacy.blank("en").add_pipe("sbert")
"""


def test_the_package_is_light_until_it_is_used_and_importing_changes_no_global_setting():
    """Every spaCy command imports the package's commands, which must not load a deep-learning library.

    And nobody has to import the package for spaCy to find its pipes.
    """
    command = [sys.executable, "-c", LIGHT, *["spacy_transformers"] * is_installed()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
