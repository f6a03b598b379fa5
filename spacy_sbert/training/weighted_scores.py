"""Whether the gold of the dev corpus allows the scores by which training keeps the best weights."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from spacy.language import Language
from spacy.util import resolve_dot_names

from ..spans.gold import MEASURES, GoldFacts, listed_labels
from .errors import Errors, Warnings
from .objectives import needs_labels

OWN = "spacy-sbert."  # the beginning of the names of readers that are looked at


def check_weighted_scores(nlp: Language) -> None:
    """Refuse a training whose scores would be 0 at each evaluation, so that the first weights were kept as the best.

    The dev corpus is read if it is one of this package, and if no other component is scored or there are labels.

    nlp (Language): initialised, with the config of the training.
    RAISES (ValueError): if no score that has a weight is defined, with the reason for each; if a classifier knows none
        of the labels of the dev corpus; what the reader raises.
    WARNS: if it knows some of them.
    """
    config = nlp.config.interpolate()
    training = config["training"]
    weighted = {name: _measure(name) for name, weight in training["score_weights"].items() if weight}
    has_measures = bool(weighted) and None not in weighted.values()
    heads = [(known, pipe) for _, pipe in nlp.pipeline if (known := _labels_of(pipe))]
    if not (has_measures or heads) or not _is_own(config, training["dev_corpus"]):
        return
    (corpus,) = resolve_dot_names(config, [training["dev_corpus"]])
    facts = {pipe.spans_key: GoldFacts() for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key")}
    for example in corpus(nlp):
        for key, gold in facts.items():
            gold.add(example.reference, key)
    for known, pipe in heads:
        _check_labels(known, facts[cast(Any, pipe).spans_key], training["dev_corpus"])
    if has_measures:
        _check_measures(nlp, weighted, facts.values(), training["dev_corpus"])


def _check_measures(
    nlp: Language, weighted: Mapping[str, str | None], facts: Iterable[GoldFacts], dev_corpus: str
) -> None:
    """RAISES (ValueError): if no score that has a weight is defined for any of the facts."""
    reasons: dict[str, str] = {}
    for gold in facts:
        undefined = gold.undefined()
        if gold.pair_labels and not any(_labels_pairs(pipe) for _, pipe in nlp.pipeline):
            undefined["nli_acc"] = "no pipe learns labels of pairs"
        if not all(measure in undefined for measure in weighted.values()):
            return
        reasons |= {name: undefined[measure] for name, measure in weighted.items() if measure is not None}
    if reasons:
        said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ValueError(Errors.SCORES_NOT_DEFINED.format(corpus=dev_corpus, reasons=said))


def _check_labels(heads: Mapping[str, Sequence[str]], gold: GoldFacts, dev_corpus: str) -> None:
    """Compare the labels of the dev corpus, of each objective, with those that its classifier learned."""
    for objective, labels in gold.objective_labels.items():
        known = heads.get(objective) or heads.get("") or []
        unknown = [label for label in labels if label not in known] if known else []
        if not unknown:
            continue
        given = {"corpus": dev_corpus, "given": listed_labels(unknown), "known": listed_labels(known)}
        if len(unknown) == len(labels):
            raise ValueError(Errors.OTHER_DEV_LABELS.format(**given))
        count = sum(labels[label] for label in unknown)
        warnings.warn(Warnings.UNKNOWN_DEV_LABELS.format(count=count, **given), stacklevel=3)


def _labels_of(pipe: object) -> dict[str, Sequence[str]]:
    """The labels that the classifiers of a pipe for pairs learned, by their objectives, "" for the only one."""
    found = getattr(pipe, "label_data", None) if hasattr(pipe, "spans_key") else None
    if not found:
        return {}
    return dict(found) if isinstance(found, Mapping) else {"": list(found)}


def check_scored(weights: Mapping[str, float | None], scores: Mapping[str, Any]) -> None:
    """Refuse to go on after an evaluation without any score that has a weight.

    weights (dict): of [training.score_weights]. scores (dict): what the pipeline returned.
    RAISES (ValueError): naming both.
    """
    weighted = [name for name, weight in weights.items() if weight]
    if weighted and not any(name in scores for name in weighted):
        known = ", ".join(name for name, score in scores.items() if score is None or isinstance(score, int | float))
        raise ValueError(Errors.NOT_SCORED.format(weighted=", ".join(weighted), found=known or "none"))


def _measure(name: str) -> str | None:
    """The measure that a score is, alone or of one of several objectives or pipes; None for other scores."""
    return next((measure for measure in MEASURES if f"_{measure}_" in f"_{name}_"), None)


def _is_own(config: Mapping[str, Any], name: str) -> bool:
    block: Any = config
    for part in name.split("."):
        block = block.get(part, {})
    return str(block.get("@readers", "")).startswith(OWN)


def _labels_pairs(pipe: object) -> bool:
    """Whether a pipe may give labels to pairs: one that has a loss is asked, others are believed."""
    model: Any = getattr(pipe, "model", None)
    if not hasattr(pipe, "spans_key") or not hasattr(model, "maybe_get_ref"):
        return False
    loss = model.maybe_get_ref("loss")
    return needs_labels(loss) if loss is not None else not hasattr(pipe, "loss_weight")
