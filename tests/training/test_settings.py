"""[training] is checked before anything is loaded: every setting x zero, negative, huge and wrong
types.
"""

import re

import pytest
import spacy
from spacy.schemas import ConfigSchemaTraining
from thinc.api import Config

import spacy_sbert.training.settings as settings
from spacy_sbert.training.settings import check_training

HUGE = 10**400
# Values that each setting refuses
WRONG = {
    "patience": (-1, 1.5, "3", None, True, HUGE),
    "max_epochs": (-2, 1.5, "3", None, HUGE),
    "max_steps": (-1, 1.5, "3", None, HUGE),
    "eval_frequency": (0, -1, 1.5, "3", None, HUGE),
    "accumulate_gradient": (0, -1, 1.5, "3", None, 10**9),
    "dropout": (-0.1, 1.0, 1.5, float("nan"), float("inf"), "0.1", None),
    "seed": (-1, 2**32, 1.5, "1", HUGE),
    "gpu_allocator": ("cuda", 1),
    "score_weights": (
        {"sts_spearman": 0.0},
        {"sts_spearman": None},
        {"sts_spearmann": 1.0},
        {"sts_spearman": float("nan")},
        {"sts_spearman": 1.0, "sts_pearson": -1.0},
        {"sts_spearman": "1"},
        [],
    ),
    "frozen_components": (["sbrt"], "sbert", ["sbert"]),
    "annotating_components": (["sbrt"], "sbert"),
    "train_corpus": ("corpora.trian", "", 1, None),
    "dev_corpus": ("corpora.trian", "", 1, None),
    "batcher": (
        {"@batchers": "spacy.batch_by_words.v1", "size": size} for size in (0, -1, float("nan"))
    ),
    "optimizer": (
        {"@optimizers": "Adam.v1", "learn_rate": -1e-5},
        {"@optimizers": "Adam.v1", "learn_rate": 0.0},
        {
            "@optimizers": "Adam.v1",
            "learn_rate": {"@schedules": "warmup_linear.v1", "initial_rate": 0.0},
        },
        {
            "@optimizers": "Adam.v1",
            "learn_rate": {"@schedules": "slanted_triangular.v1", "max_rate": 0},
        },
        {"@optimizers": "Adam.v1", "learn_rate": float("inf")},
        {"@optimizers": "Adam.v1", "learn_rate": float("nan")},
        {"@optimizers": "Adam.v1", "learn_rate": {"@schedules": "constant.v1", "rate": -1}},
        {
            "@optimizers": "Adam.v1",
            "learn_rate": {"@schedules": "warmup_linear.v1", "total_steps": 0},
        },
        {"@optimizers": "Adam.v1", "grad_clip": -1.0},
        {"@optimizers": "Adam.v1", "beta1": 0.0, "beta2": 0.999},
        {"@optimizers": "Adam.v1", "L2": -0.1},
        {"@optimizers": "Adam.v1", "beta1": 1.0},
        {"@optimizers": "Adam.v1", "eps": 0.0},
    ),
}
# In the message
NAMED = {"batcher": "batcher.size", "optimizer": "optimizer."}
# functions, which spaCy checks
OTHERS = {"logger", "before_to_disk", "before_update"}


@pytest.fixture
def config():
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    corpora = {
        part: {"@readers": "spacy-sbert.PairCorpus.v1", "path": f"{part}.csv"}
        for part in ("train", "dev")
    }
    return Config({**nlp.config, "corpora": corpora}).interpolate()


def test_every_setting_is_checked():
    assert WRONG.keys() | OTHERS == ConfigSchemaTraining.model_fields.keys()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(config, name):
    check_training(config)
    for value in WRONG[name]:
        config["training"][name] = value
        with pytest.raises(ValueError, match=re.escape(NAMED.get(name, name))):
            check_training(config)


def test_settings_that_fit(config):
    for name, values in {
        "dropout": (0.0, 0, 0.5),
        "seed": (None, 0, 2**32 - 1),
        "max_steps": (0, 10**9),
        "eval_frequency": (1, 10**9),
        "gpu_allocator": (None, "pytorch", "tensorflow"),
        "score_weights": (
            {"sts_spearman_sick": 1.0},
            {"knn_acc": 1},
            {"speed": 0.1, "pair_ap": None},
        ),
        "annotating_components": (["sbert"], []),
        "batcher": (
            {"@batchers": "b.v1", "size": {"@schedules": "compounding.v1", "start": 1, "stop": 9}},
        ),
    }.items():
        for value in values:
            check_training({**config, "training": {**config["training"], name: value}})


def test_message(config):
    config["training"]["eval_frequency"] = 0
    with pytest.raises(ValueError, match=r"eval_frequency = 0"):
        check_training(config)


def test_training_without_an_end(config):
    config["training"] |= {"max_epochs": 0, "max_steps": 0, "patience": 0}
    with pytest.raises(ValueError, match="max_epochs = 0, max_steps = 0 and patience = 0"):
        check_training(config)
    config["training"] |= {"patience": 5}
    check_training(config)


def test_no_weighted_score_trains_to_the_end(config):
    config["training"].update(patience=0, score_weights={"sts_spearman": None})
    check_training(config)


@pytest.mark.parametrize(("patience", "weight"), [(0, 0.0), (10, 0.0), (10, None)])
def test_scores_without_a_weight_cannot_choose_model_best(config, patience, weight):
    config["training"].update(patience=patience, score_weights={"sts_spearman": weight})
    with pytest.raises(ValueError, match="better than that before training"):
        check_training(config)


def test_losses_without_a_weight(config):
    config["components"]["sbert"]["loss_weight"] = 0.0
    config["components"] |= {
        "tok2vec": {"factory": "tok2vec"},
        "sentencizer": {"factory": "sentencizer"},
    }
    config["nlp"]["pipeline"] = ["tok2vec", "sentencizer", "sbert"]
    with pytest.raises(ValueError, match=r"loss_weight = 0 in \[components\.sbert\]"):
        check_training(config)
    # None: of a source
    for factory in ("ner", None):
        config["components"]["other"] = {"factory": factory} if factory else {"source": "en_mine"}
        config["nlp"]["pipeline"] = ["tok2vec", "other", "sbert"]
        check_training(config)
    config["training"]["frozen_components"] = ["other"]
    with pytest.raises(ValueError, match="nothing would be trained"):
        check_training(config)


def test_scores_of_another_scorer_are_not_known(config):
    config["training"]["score_weights"] = {"my_score": 1.0}
    with pytest.raises(ValueError, match="No component has the score 'my_score'"):
        check_training(config)
    config["components"]["sbert"]["scorer"] = {"@scorers": "my_scorer.v1"}
    check_training(config)
    assert (
        settings._known_scores(
            {"nlp": {"pipeline": ["a"]}, "components": {"a": {"source": "en_mine"}}}
        )
        is None
    )
