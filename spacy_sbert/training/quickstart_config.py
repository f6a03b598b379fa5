"""Write and validate training configs."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import ceil
from typing import Any, Literal, NamedTuple

import spacy
from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from thinc.api import Config

from ..validation import Name, Positive, validated

_COSINE = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
_CONTRASTIVE = {
    "@layers": "spacy-sbert.OnlineContrastiveLoss.v1",
    "distance": "cosine",
    "margin": 0.5,
}
_RANKING = {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1", "scale": 20.0}
_SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1", "learn_rate_factor": 50.0}
_BATCH_HARD = {
    "@layers": "spacy-sbert.BatchHardTripletLoss.v1",
    "distance": "euclidean",
    "margin": 1.0,
}


class _Objective(NamedTuple):
    loss: dict[str, Any]
    measure: str
    batch_size: int
    batcher: str = "spacy-sbert.batch_by_objective.v1"
    evaluations: int = 10


# By the kind of table
_OBJECTIVES = {
    "graded": _Objective(_COSINE, "sts_spearman", 16),
    "binary": _Objective(_CONTRASTIVE, "pair_ap", 32),
    "labelled": _Objective(_SOFTMAX, "nli_acc", 16),
    "positives": _Objective(_RANKING, "pair_ap", 32),
    "triplets": _Objective(_RANKING, "triplet_acc", 32),
    # A large batch, as several texts of several classes must meet in it. An evaluation fits the
    # classes on the vectors of all training examples.
    "classes": _Objective(_BATCH_HARD, "cats_acc", 64, "spacy-sbert.batch_by_label.v1", 4),
}
# With the other settings, the optimizer of configs/sts.cfg
_RATE = {
    "@schedules": "spacy-sbert.linear_warmup.v2",
    "initial_rate": 2e-5,
    "epochs": "${training.max_epochs}",
    "max_steps": "${training.max_steps}",
    "corpus": "${corpora.train}",
    "batcher": "${training.batcher}",
    "warmup": 0.1,
}
_ADAM = {
    "@optimizers": "Adam.v1",
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "L2": 0.0,
    "grad_clip": 1.0,
}
_EPOCHS = 4
# Steps of classes at least, and the rate if four epochs are fewer: after some ten steps at 2e-5,
# vectors of a few texts of each class have hardly changed
_FEWEST_STEPS = 40
_RATE_OF_FEW = 1e-4
# Examples of which one epoch is enough
_MANY = 20_000
# Epochs: scores fall while the rate is high, and are often best at the end, when it has fallen
_PATIENCE = 4
_Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]


class _Length(NamedTuple):
    """How long a training is: epochs, those without a better score that end it, and the rate."""

    epochs: int
    patience: int
    rate: dict[str, Any]


@validated
def quickstart_config(
    train: Mapping[str, Any],
    dev: Mapping[str, Any],
    *,
    kind: _Kind,
    count: Positive,
    scored: _Kind | None = None,
    encoder: Name | None = None,
    lang: str = "en",
    epochs: Positive | None = None,
) -> Config:
    """Return a complete config of a pipeline with an `sbert` pipe, and `sbert_textcat` for classes.

    The rate rises over the first tenth of the steps to 2e-5, and falls to 0. There are ten
    evaluations, for classes four, and training ends after four epochs without a better score. From
    a few texts of each class there are as many epochs as make 40 steps, none is left out, and the
    rate rises to 1e-4.

    train, dev (dict): settings of PairCorpus for the training and dev examples, path among them.
    kind (str): the gold of the training table. count (int): of the training examples.
    scored (str): the gold of the dev table; None for the same.
    encoder (str): a folder or a name; None for the default one. lang (str): of the tokenizer.
    epochs (int): None for 4, 1 of 20,000 examples or more, or for classes as many as make 40 steps.
    """
    for table in (train, dev):
        _check_table(table)
    _check_value(encoder or "")
    objective = _OBJECTIVES[kind]
    epoch_steps = ceil(count / objective.batch_size)
    length = _length(kind, count, epoch_steps, epochs)
    nlp = spacy.blank(lang)
    nlp.add_pipe("sbert", config=_pipe_config(kind, encoder))
    if kind == "classes":
        nlp.add_pipe("sbert_textcat")
    config = nlp.config
    config["system"]["seed"] = 1
    config["corpora"] = {}
    for part, settings in (("train", train), ("dev", dev)):
        config["paths"][part] = str(settings["path"])
        reader = {"@readers": "spacy-sbert.PairCorpus.v1", "format": "table"}
        config["corpora"][part] = {**reader, **settings, "path": f"${{paths.{part}}}"}
    # Scores of other measures, which spaCy would add, are none
    weights = dict.fromkeys(nlp.get_pipe_meta("sbert").default_score_weights or {})
    measure = _OBJECTIVES[scored or kind].measure
    config["training"] |= {
        "max_epochs": length.epochs,
        "max_steps": 0,
        # Steps are counted from 0
        "eval_frequency": max(1, (length.epochs * epoch_steps - 1) // objective.evaluations),
        "patience": max(length.patience, 2) * epoch_steps,
        "accumulate_gradient": 1,
        "batcher": {"@batchers": objective.batcher, "size": objective.batch_size},
        "logger": {"@loggers": "spacy-sbert.ProgressLogger.v1", "progress_bar": True},
        "optimizer": _ADAM | {"use_averages": False, "learn_rate": length.rate},
        "score_weights": {**weights, measure: 1.0},
    }
    return config


def _length(kind: str, count: int, epoch_steps: int, epochs: int | None) -> _Length:
    """Return how long a training is, see quickstart_config; epochs (int): None to choose them."""
    rate = dict(_RATE)
    is_short = _EPOCHS * epoch_steps < _FEWEST_STEPS
    if kind == "classes" and epochs is None and is_short:
        epochs = ceil(_FEWEST_STEPS / epoch_steps)
        rate["initial_rate"] = _RATE_OF_FEW
        return _Length(epochs, epochs, rate)
    if epochs is None:
        epochs = 1 if count >= _MANY else _EPOCHS
    return _Length(epochs, min(epochs, _PATIENCE), rate)


def _pipe_config(kind: str, encoder: str | None) -> dict[str, Any]:
    """Return the settings of the `sbert` pipe that are not its defaults."""
    pipe: dict[str, Any] = {"loss": dict(_OBJECTIVES[kind].loss)}
    model: dict[str, Any] = {}
    if kind == "labelled":
        # As configs/nli.cfg
        model["normalize"] = False
    if encoder is not None:
        model["name"] = encoder
    if model:
        pipe["model"] = model
    return pipe


def _check_table(settings: Mapping[str, Any]) -> None:
    """Refuse a table whose path, or a column of which, a config cannot hold."""
    _check_value(str(settings["path"]))
    for name in (*(settings.get("members") or ()), settings.get("score"), settings.get("label")):
        _check_value(name or "")


def _check_value(value: str) -> None:
    """Refuse a text that a config cannot hold: spaCy would read it as a variable."""
    if "${" in value:
        raise ValueError(
            f"Cannot write {value!r} to a config, where '${{' begins a variable. Rename the file, "
            "folder or column."
        )


_SCHEMAS: dict[str, Any] = {
    "nlp": ConfigSchemaNlp,
    "training": ConfigSchemaTraining,
    "initialize": ConfigSchemaInit,
}
# A config chooses the names in them
_FREE_SECTIONS = ("paths", "system", "corpora", "components")


def check_config(config: Mapping[str, Any], file: Mapping[str, Any]) -> None:
    """Refuse a config with a setting that would be ignored.

    config, file (Config): with and without the settings of the command line, not interpolated. The
        file must have or refer to each of these.
    """
    if "training" not in config:
        raise ValueError(
            f"The config has no section [training], only {', '.join(config) or 'none'}. Complete "
            "it with 'python -m spacy init fill-config'."
        )
    for section, schema in _SCHEMAS.items():
        _check_section(section, schema.model_fields, config, file)
    for section in _FREE_SECTIONS:
        _check_section(section, file.get(section, {}), config, file)
    for name, block in config.get("components", {}).items():
        if isinstance(block, Mapping):
            _check_component(name, block)


def _check_section(
    section: str, known: Collection[str], config: Mapping[str, Any], file: Mapping[str, Any]
) -> None:
    """Refuse a setting that is not known, unless the file refers to it."""
    for key in config.get(section, {}):
        variable = f"${{{section}.{key}"
        is_used = f"{variable}}}" in str(file) or f"{variable}." in str(file)
        if key not in known and not is_used:
            near = get_close_matches(key, known, n=1)
            expected = ", ".join(near or known) or "none"
            raise ValueError(
                f"[{section}] has no setting '{key}', which would be ignored: expected {expected}."
            )


def _check_component(name: str, block: Mapping[str, Any]) -> None:
    if "name" in block:
        raise ValueError(
            f"[components.{name}] has name = '{block['name']}', which would be ignored. Set name "
            f"in [components.{name}.model] (--components.{name}.model.name)."
        )
    ignored = [key for key in block if key not in ("source", "component", "replace_listeners")]
    if "source" in block and "factory" not in block and ignored:
        raise ValueError(
            f"[components.{name}] has a source and also {', '.join(ignored)}, which spaCy would "
            f'ignore. Load {block["source"]} with config={{"components.{name}.{ignored[0]}": '
            "...}, and save it as source."
        )
