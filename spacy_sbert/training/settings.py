"""Check the settings of [training] before anything is loaded.

spaCy checks their types, but not their ranges.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import Field
from spacy.language import Language
from spacy.util import dot_to_object

from ..validation import (
    Epochs,
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Seed,
    check,
    short_repr,
)
from .gold import MEASURES, measure_of

_Fraction = Annotated[float, Field(ge=0, lt=1)]
# Parts of a batch: spaCy counts to this number at each step, whatever the size of the batch
_MOST_PARTS = 10_000
# Of [training]
_SETTINGS: dict[str, Any] = {
    "patience": NonNegative,
    "max_epochs": Epochs,
    "max_steps": NonNegative,
    "eval_frequency": Positive,
    "accumulate_gradient": Annotated[int, Field(ge=1, le=_MOST_PARTS)],
    "dropout": _Fraction,
    "seed": Seed | None,
    "gpu_allocator": Literal["pytorch", "tensorflow"] | None,
    "score_weights": dict[str, NonNegativeFloat | None],
    "frozen_components": list[str],
    "annotating_components": list[str],
}
# Of batchers, optimizers and schedules, whatever their names; every other number must not be
# negative.
_POSITIVE = {"size", "buffer", "eps", "total_steps", "period", "t_max", "cut_frac", "ratio"}
# Of 0 nothing would be learned
_POSITIVE |= {
    "learn_rate",
    "rate",
    "initial_rate",
    "base_rate",
    "max_rate",
    "max_lr",
}
_FRACTIONS = {"beta1", "beta2", "warmup"}
# These learn what the components after them do.
_UPSTREAM = {"tok2vec", "sbert_transformer", "transformer", "curated_transformer"}
# Scores of Language.evaluate
_OF_EVERY_PIPELINE = {
    "speed",
    "token_acc",
    "token_p",
    "token_r",
    "token_f",
}


def check_training(config: Mapping[str, Any]) -> None:
    """Refuse settings of [training] that would end in an error later, train nothing, or never end.

    config (Config): interpolated. What is left out has spaCy's default.
    RAISES (ValueError): with the name of the setting, its value, and what is expected.
    """
    training = config["training"]
    for name, annotation in _SETTINGS.items():
        if name in training:
            check(name, training[name], annotation)
    for section in ("batcher", "optimizer"):
        for name, value in _numbers(training.get(section, {}), section):
            _check_number(name, value)
    _check_betas(training.get("optimizer", {}))
    batch_size = config.get("nlp", {}).get("batch_size")
    check("nlp.batch_size", batch_size, Positive | None)
    _check_end(training)
    for name in ("train_corpus", "dev_corpus"):
        if name in training:
            _check_corpus(name, training[name], config)
    pipeline: list[str] = config.get("nlp", {}).get("pipeline", [])
    for name in ("frozen_components", "annotating_components"):
        _check_components(name, training.get(name, []), pipeline)
    if pipeline and set(pipeline) <= {*training.get("frozen_components", [])}:
        raise ValueError(
            "All components are in frozen_components: nothing would be trained. Leave one of them "
            "out."
        )
    _check_losses(training, config)
    _check_scores(training, config)


def _numbers(block: object, path: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers in a block of a config, and in those inside of it, by their names."""
    if isinstance(block, Mapping):
        for key, value in block.items():
            # Those of a schedule are blocks of their own
            if key not in ("corpus", "batcher"):
                yield from _numbers(value, f"{path}.{key}")
    elif isinstance(block, list):
        for value in block:
            yield from _numbers(value, path)
    elif isinstance(block, (int, float)) and not isinstance(block, bool):
        yield path, block


def _check_number(name: str, value: float) -> None:
    key = name.rpartition(".")[2]
    if key in _FRACTIONS:
        check(name, value, _Fraction)
    elif key in _POSITIVE:
        check(name, value, PositiveFloat)
    elif key in ("epochs", "max_steps"):
        # Those of the training
        check(name, value, Epochs)
    else:
        check(name, value, NonNegativeFloat)


def _check_betas(optimizer: Mapping[str, Any]) -> None:
    """Refuse an Adam without its first moment, which Thinc does not have."""
    if optimizer.get("beta1") == 0 and optimizer.get("beta2", 1):
        raise ValueError(
            "Cannot use training.optimizer.beta1 = 0 with beta2 above 0: Thinc has no such "
            "optimizer. Set beta1 to 0.9, or take SGD.v1."
        )


def _check_end(training: Mapping[str, Any]) -> None:
    """Refuse a training without an end."""
    max_epochs = training.get("max_epochs", 1)
    has_end = max_epochs >= 1 or training.get("max_steps", 1) or training.get("patience", 1)
    if not has_end:
        raise ValueError(
            f"The training would never end: max_epochs = {max_epochs}, max_steps = 0 and patience "
            "= 0. Set one of them, such as max_epochs = 4."
        )


def _check_corpus(name: str, value: object, config: Mapping[str, Any]) -> None:
    check(name, value, str)
    try:
        block = dot_to_object(config, value)  # type: ignore[arg-type] # the check above
    except (KeyError, TypeError):
        block = None
    if block is None:
        listed = ", ".join(f"corpora.{key}" for key in config.get("corpora", {}))
        known = listed or "a block of [corpora]"
        raise ValueError(
            f"Cannot use {name} = {short_repr(value)}: there is no such block. Expected {known}."
        )


def _check_components(name: str, given: Sequence[str], pipeline: Sequence[str]) -> None:
    unknown = [component for component in given if component not in pipeline]
    if unknown and pipeline:
        raise ValueError(
            f"Cannot use {name} = {short_repr(list(given))}: there is no component '{unknown[0]}'. "
            f"The pipeline has {', '.join(pipeline)}."
        )


def _check_losses(training: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Refuse a training in which the loss of every component that would learn has the weight 0."""
    components = config.get("components", {})
    weightless: list[str] = []
    for name in config.get("nlp", {}).get("pipeline", []):
        block = components.get(name, {})
        if name in training.get("frozen_components", []) or not _has_loss(block.get("factory")):
            continue
        if block.get("loss_weight") != 0:
            return
        weightless.append(name)
    if weightless:
        raise ValueError(
            f"loss_weight = 0 in [components.{weightless[0]}], and nothing else learns: nothing "
            "would be trained. Set it to 1.0."
        )


def _has_loss(factory: str | None) -> bool:
    """Return whether a component learns from examples by a loss of its own.

    True of one that is not known.
    """
    if factory is None or not Language.has_factory(factory):
        return True
    settings = Language.get_factory_meta(factory).default_config or {}
    return factory not in _UPSTREAM and "model" in settings


def _check_scores(training: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Refuse scores that no component of the pipeline has, and those of which none has a weight."""
    weights: Mapping[str, float | None] = training.get("score_weights", {})
    weighted = [name for name, weight in weights.items() if weight]
    chooses = bool(training.get("patience")) or set(weights.values()) != {None}
    if weights and not weighted and chooses:
        raise ValueError(
            "All of [training.score_weights] are 0 or null, so no score would be better than that "
            f"before training. Give one of {', '.join(weights)} the weight 1.0. To train to the "
            "end without choosing set each of them to null, and patience = 0."
        )
    known = _known_scores(config)
    if known is None:
        return
    for name in weighted:
        if name not in known and measure_of(name) is None:
            expected = get_close_matches(name, known, n=1) or sorted(known)
            raise ValueError(
                f"No component has the score '{name}' of [training.score_weights]. Expected "
                f"{', '.join(expected)}."
            )


def _known_scores(config: Mapping[str, Any]) -> set[str] | None:
    """Return the scores that the components have by default; None if one of them has others."""
    known = {*MEASURES, *_OF_EVERY_PIPELINE}
    components = config.get("components", {})
    for name in config.get("nlp", {}).get("pipeline", []):
        block = components.get(name, {})
        factory = block.get("factory")
        if factory is None or not Language.has_factory(factory):
            return None
        meta = Language.get_factory_meta(factory)
        scorer = (meta.default_config or {}).get("scorer")
        if block.get("scorer", scorer) != scorer:
            return None
        known |= (meta.default_score_weights or {}).keys()
    return known
