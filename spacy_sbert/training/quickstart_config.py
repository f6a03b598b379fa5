"""Write and validate training configs."""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import Any, Literal

import spacy
from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from thinc.api import Config

from ..validation import Name, Positive

_LONG = 20_000  # examples of which one epoch is enough, as in the paper
_EVALUATIONS = 10  # at the scores, in all epochs
_PATIENCE = 3  # evaluations without a better score, after which training ends


_CONTRASTIVE = {"@layers": "spacy-sbert.OnlineContrastiveLoss.v1", "distance": "cosine", "margin": 0.5}
_RANKING = {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1", "scale": 20.0}
_SOFTMAX = {"@layers": "spacy-sbert.SoftmaxLoss.v1", "learn_rate_factor": 50.0}
_BATCH_HARD = {"@layers": "spacy-sbert.BatchHardTripletLoss.v1", "distance": "euclidean", "margin": 1.0}
_OBJECTIVES: dict[str, tuple[dict[str, Any], str, int]] = {  # by the kind of table: loss, measure and batch size
    "graded": ({"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}, "sts_spearman", 16),
    "binary": (_CONTRASTIVE, "pair_ap", 32),
    "labelled": (_SOFTMAX, "nli_acc", 16),
    "positives": (_RANKING, "pair_ap", 32),
    "triplets": (_RANKING, "triplet_acc", 32),
    "classes": (_BATCH_HARD, "knn_acc", 64),  # large batches, as several texts of a class must meet in one
}
_Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]


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
    seed: int = 1,
) -> Config:
    """Return a complete config of a pipeline with one `sbert` pipe.

    The rate rises over the first tenth of the steps to 2e-5, and falls to 0. There are ten evaluations, and training
    ends after three without a better score.

    train, dev (dict): settings of PairCorpus for the training and dev examples, path among them.
    kind (str): the gold of the training table. count (int): of the training examples.
    scored (str): the gold of the dev table; None for the same.
    encoder (str): a folder or a name; None for the default one. lang (str): of the tokenizer.
    epochs (int): None for 4, or 1 of 20,000 examples or more. seed (int): of the whole training.
    RETURNS (Config): not interpolated.
    """
    for table in (train, dev):
        for value in (table["path"], *(table.get("members") or ()), table.get("score"), table.get("label")):
            _check_value(str(value or ""))
    _check_value(encoder or "")
    (loss, _, batch_size), (_, measure, _) = _OBJECTIVES[kind], _OBJECTIVES[scored or kind]
    nlp = spacy.blank(lang)
    model: dict[str, Any] = {"normalize": False} if kind == "labelled" else {}  # as configs/nli.cfg
    model |= {} if encoder is None else {"name": encoder}
    nlp.add_pipe("sbert", config={"loss": dict(loss), **({"model": model} if model else {})})
    config = nlp.config
    epochs = epochs or (1 if count >= _LONG else 4)
    steps = count_steps(count, batch_size, epochs)
    frequency = max(1, (steps - 1) // _EVALUATIONS)  # steps are counted from 0
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
        "patience": _PATIENCE * frequency,
        "accumulate_gradient": 1,
        "batcher": {"@batchers": "spacy-sbert.batch_by_objective.v1", "size": batch_size},
        "logger": {"@loggers": "spacy-sbert.ProgressLogger.v1", "progress_bar": True},
        "optimizer": _optimizer(),
        # those of the component, which spaCy would add, are none
        "score_weights": dict.fromkeys(nlp.get_pipe_meta("sbert").default_score_weights or {}) | {measure: 1.0},
    }
    return config


def count_steps(count: int, batch_size: int, epochs: int) -> int:
    """Return the number of steps."""
    return epochs * ceil(count / batch_size)


def _optimizer() -> dict[str, Any]:
    """Return the optimizer of configs/sts.cfg."""
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


_SCHEMAS: dict[str, Any] = {"nlp": ConfigSchemaNlp, "training": ConfigSchemaTraining, "initialize": ConfigSchemaInit}
_SOURCE_SETTINGS = ("source", "component", "replace_listeners")  # those of a component with a source
_FREE_SECTIONS = ("paths", "system", "corpora", "components")  # a config chooses the names in them


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse a config with a setting that would be ignored.

    config (Config): to train with.
    RAISES (ValueError): for one without [training], an unknown setting of [nlp], [training] or [initialize], a
        component with a `name`, which spaCy has from its section, or with settings beside a `source`.
    """
    if "training" not in config:
        raise ValueError(
            f"The config has no section [training]; it has: {', '.join(config) or 'none'}. Write one with "
            "'python -m spacy sbert init-config', or complete it with 'python -m spacy init fill-config'."
        )
    for section, schema in _SCHEMAS.items():
        for key in config.get(section, {}):
            if key not in schema.model_fields:
                raise _unknown_setting(section, key, schema.model_fields)
    components = {name: block for name, block in config.get("components", {}).items() if isinstance(block, Mapping)}
    for name, block in components.items():
        if "name" in block:
            raise ValueError(
                f"[components.{name}] has name = '{block['name']}', which would be ignored: a component has the name "
                f"of its section. Set name in [components.{name}.model] (--components.{name}.model.name)."
            )
        ignored = [key for key in block if key not in _SOURCE_SETTINGS]
        if "source" in block and "factory" not in block and ignored:
            source = block["source"]
            raise ValueError(
                f"[components.{name}] has a source and also {', '.join(ignored)}, which spaCy would ignore. Load "
                f'{source} with the setting, spacy.load("{source}", config={{"components.{name}.{ignored[0]}": ...}}), '
                "save it, and give that folder as source."
            )


def check_overrides(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Refuse overrides of parts that a config does not have or refer to.

    config (Config): without them, not interpolated. overrides: from names with dots, such as "paths.train", to values.
    RAISES (ValueError): if spaCy would ignore one.
    """
    for override in overrides:
        section, _, rest = override.partition(".")
        name, known = rest.split(".")[0], config.get(section, {})
        if section in _FREE_SECTIONS and name not in known and f"${{{section}.{name}" not in str(config):
            raise _unknown_setting(section, name, known)


def check_output(output: Path | None) -> None:
    """Check that a folder can be created or written to.

    RAISES (ValueError): if it cannot.
    """
    if output is None:
        return
    existing = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    reason = "is not yours to write to" if existing.is_dir() else "is no folder"
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"Cannot save to --output {output}: {existing} {reason}. Give --output another name.")


def _unknown_setting(section: str, name: str, known: Iterable[str]) -> ValueError:
    expected = get_close_matches(name, known, n=1) or list(known) or ["none"]
    return ValueError(f"[{section}] has no setting '{name}', which would be ignored: expected {', '.join(expected)}.")


def _check_value(value: str) -> None:
    """Refuse a text that a config cannot hold: spaCy would read it as a variable."""
    if "${" in value:
        raise ValueError(
            f"Cannot write {value!r} to a config, where '${{' begins a variable. Rename the file, folder or column."
        )
