"""A config for a table of one's own: what is learned of it, for how long, and when it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import spacy
from thinc.api import Config

from ..errors.checks import Name, Positive
from ..files.saved_config import check_value

LONG = 20_000  # examples of which one epoch is enough, as in the paper
LOOKS = 10  # at the scores, in all epochs
PATIENT = 3  # looks without a better score, after which training ends


@dataclass(frozen=True)
class Objective:
    """What is learned of a kind of table. loss: its layer. measure: by which scores the best weights are kept.
    batch_size: examples of a step. model: settings of the encoder."""

    loss: Mapping[str, Any]
    measure: str
    batch_size: int
    model: Mapping[str, Any]


CONTRASTIVE = {"@layers": "spacy-sbert.OnlineContrastiveLoss.v1", "distance": "cosine", "margin": 0.5}
RANKING = {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1", "scale": 20.0}
SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1", "learn_rate_factor": 50.0}
BATCH_HARD = {"@layers": "spacy-sbert.BatchHardTripletLoss.v1", "distance": "euclidean", "margin": 1.0}
OBJECTIVES = {  # by the kind of the table
    "graded": Objective({"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}, "sts_spearman", 16, {}),
    "binary": Objective(CONTRASTIVE, "pair_ap", 32, {}),
    "labelled": Objective(SOFTMAX, "nli_acc", 16, {"normalize": False}),  # as configs/nli.cfg
    "positives": Objective(RANKING, "pair_ap", 32, {}),
    "triplets": Objective(RANKING, "triplet_acc", 32, {}),
    "classes": Objective(BATCH_HARD, "knn_acc", 64, {}),  # large batches, as several texts of a class must meet in one
}
MEASURES = {kind: objective.measure for kind, objective in OBJECTIVES.items()}  # of what is scored


Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]


def own_config(
    train: Mapping[str, Any],
    dev: Mapping[str, Any],
    *,
    kind: Kind,
    count: Positive,
    scored: Kind | None = None,
    encoder: Name | None = None,
    lang: str = "en",
    epochs: Positive | None = None,
    seed: int = 1,
) -> Config:
    """The config of a pipeline with one `sbert` pipe, complete: spaCy trains it as it is.

    The rate rises over the first tenth of the steps to 2e-5, and falls to 0; the scores are looked at ten times, and
    training ends where three looks show no better one.

    train, dev (dict): settings of PairCorpus for what is learned and what is scored, path among them.
    kind (str): what the table has, see OwnTable. count (int): of the examples that are learned.
    scored (str): what the dev table has; None for the same.
    encoder (str): a folder or a name; None for the default one. lang (str): of the tokenizer.
    epochs (int): how often each example is learned; None for 4, or 1 of 20,000 examples or more. seed (int): of all
        that is random.
    RETURNS (Config): not interpolated.
    """
    for value in (train["path"], dev["path"], encoder or "", *_columns(train), *_columns(dev)):
        check_value(str(value))
    objective, measure = OBJECTIVES[kind], MEASURES[scored or kind]
    nlp = spacy.blank(lang)
    model = {**objective.model, **({} if encoder is None else {"name": encoder})}
    nlp.add_pipe("sbert", config={"loss": dict(objective.loss), **({"model": model} if model else {})})
    config = nlp.config
    epochs = epochs or (1 if count >= LONG else 4)
    steps = count_steps(count, objective.batch_size, epochs)
    frequency = max(1, (steps - 1) // LOOKS)  # steps are counted from 0
    reader = {"@readers": "spacy-sbert.PairCorpus.v1", "format": "table"}
    config["paths"] |= {"train": str(train["path"]), "dev": str(dev["path"])}
    config["system"]["seed"] = seed
    config["corpora"] = {
        "train": {**reader, **train, "path": "${paths.train}"},
        "dev": {**reader, **dev, "path": "${paths.dev}"},
    }
    config["training"] |= {
        "max_epochs": epochs,
        "max_steps": 0,
        "eval_frequency": frequency,
        "patience": PATIENT * frequency,
        "accumulate_gradient": 1,
        "batcher": {"@batchers": "spacy-sbert.batch_by_objective.v1", "size": objective.batch_size},
        "logger": {"@loggers": "spacy-sbert.ProgressLogger.v1", "progress_bar": True},
        "optimizer": _optimizer(),
        # those of the component, which spaCy would add, are none
        "score_weights": dict.fromkeys(nlp.get_pipe_meta("sbert").default_score_weights or {}) | {measure: 1.0},
    }
    return config


def _columns(reading: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that a reader is given."""
    return [*(reading.get("members") or ()), *(reading.get(key) or "" for key in ("score", "label"))]


def count_steps(count: int, batch_size: int, epochs: int) -> int:
    """How many steps there are, of so many examples each but for the last of an epoch."""
    return epochs * ceil(count / batch_size)


def _optimizer() -> dict[str, Any]:
    """That of configs/sts.cfg."""
    rate = {
        "@schedules": "spacy-sbert.linear_warmup.v2",
        "initial_rate": 2e-5,
        "epochs": "${training.max_epochs}",
        "max_steps": "${training.max_steps}",
        "corpus": "${corpora.train}",
        "batcher": "${training.batcher}",
        "warmup": 0.1,
    }
    settings = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "L2": 0.0, "grad_clip": 1.0, "use_averages": False}
    return {"@optimizers": "Adam.v1", **settings, "learn_rate": rate}
