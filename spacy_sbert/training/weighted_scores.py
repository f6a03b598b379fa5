"""Check that evaluations during training can tell better weights from worse."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from spacy.language import Language
from spacy.util import resolve_dot_names

from ..errors import Warnings
from .batch_loss import needs_labels
from .gold_facts import MEASURES, GoldFacts, listed_labels


def check_weighted_scores(nlp: Language) -> None:
    """Refuse a training whose scores would be 0 at each evaluation, so that the first weights were kept as the best.

    The dev corpus is read if it is one of this package, and if no other component is scored or there are labels.

    nlp (Language): initialized, with the config of the training.
    RAISES (ValueError): if no score that has a weight is defined, with the reason for each; if a classifier knows none
        of the labels of the dev corpus; what the reader raises.
    WARNS: if it knows some of them.
    """
    config = nlp.config.interpolate()
    training = config["training"]
    weighted = {name: _measure(name) for name, weight in training["score_weights"].items() if weight}
    has_measures = bool(weighted) and None not in weighted.values()
    classifiers = [(labels, pipe) for _, pipe in nlp.pipeline if (labels := _labels_by_objective(pipe))]
    dev_corpus = training["dev_corpus"]
    if not (has_measures or classifiers) or not _is_of_this_package(config, dev_corpus):
        return
    (corpus,) = resolve_dot_names(config, [dev_corpus])
    facts = {pipe.spans_key: GoldFacts() for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key")}
    for example in corpus(nlp):
        for key, gold in facts.items():
            gold.add(example.reference, key)
    for labels, pipe in classifiers:
        _check_labels(labels, facts[cast(Any, pipe).spans_key], dev_corpus)
    if has_measures:
        _check_measures(nlp, weighted, facts.values(), dev_corpus)


def check_scored(weights: Mapping[str, float | None], scores: Mapping[str, Any]) -> None:
    """Refuse to continue after an evaluation without any score that has a weight.

    weights (dict): of [training.score_weights]. scores (dict): what the pipeline returned.
    RAISES (ValueError): with the names of both.
    """
    weighted = [name for name, weight in weights.items() if weight]
    if weighted and not any(name in scores for name in weighted):
        known = ", ".join(name for name, score in scores.items() if score is None or isinstance(score, int | float))
        raise ValueError(
            "Training could not tell better weights from worse: no score of [training.score_weights] "
            f"({', '.join(weighted)}) is among those of the pipeline: {known or 'none'}. Give weight to one of these."
        )


def _check_measures(
    nlp: Language, weighted: Mapping[str, str | None], facts: Iterable[GoldFacts], dev_corpus: str
) -> None:
    """Check that a score that has a weight is defined for some of the facts.

    RAISES (ValueError): if none is.
    """
    reasons: dict[str, str] = {}
    for gold in facts:
        undefined = gold.undefined()
        if gold.pair_labels and not any(_may_label_pairs(pipe) for _, pipe in nlp.pipeline):
            undefined["nli_acc"] = "no pipe learns labels of pairs"
        if not all(measure in undefined for measure in weighted.values()):
            return
        reasons |= {name: undefined[measure] for name, measure in weighted.items() if measure is not None}
    if reasons:
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ValueError(
            f"Training could not tell better weights from worse: on [{dev_corpus}] no score of "
            f"[training.score_weights] is defined. {listed}. Give weight to another score, or another dev corpus."
        )


def _check_labels(classifiers: Mapping[str, Sequence[str]], gold: GoldFacts, dev_corpus: str) -> None:
    """Compare the labels of the dev corpus, of each objective, with those that its classifier learned."""
    for objective, counts in gold.objective_labels.items():
        known = classifiers.get(objective) or classifiers.get("") or []
        unknown = [label for label in counts if label not in known] if known else []
        if not unknown:
            continue
        labels, known_labels = listed_labels(unknown), listed_labels(known)
        if len(unknown) == len(counts):
            raise ValueError(
                f"[{dev_corpus}] has the labels {labels}, and the training examples have none of them: {known_labels}. "
                "Spell them alike, or give another dev corpus."
            )
        count = sum(counts[label] for label in unknown)
        message = Warnings.UNKNOWN_DEV_LABELS.format(count=count, corpus=dev_corpus, given=labels, known=known_labels)
        warnings.warn(message, stacklevel=3)


def _labels_by_objective(pipe: object) -> dict[str, Sequence[str]]:
    """Return the labels that the classifiers of a pipe for pairs learned, by objective, "" for the only one."""
    labels = getattr(pipe, "label_data", None) if hasattr(pipe, "spans_key") else None
    if not labels:
        return {}
    return dict(labels) if isinstance(labels, Mapping) else {"": list(labels)}


def _measure(name: str) -> str | None:
    """Return the measure that a score is, also of one of several objectives or pipes; None for other scores."""
    return next((measure for measure in MEASURES if f"_{measure}_" in f"_{name}_"), None)


def _is_of_this_package(config: Mapping[str, Any], name: str) -> bool:
    block: Any = config
    for part in name.split("."):
        block = block.get(part, {})
    return str(block.get("@readers", "")).startswith("spacy-sbert.")


def _may_label_pairs(pipe: object) -> bool:
    """Return whether a pipe may give labels to pairs: its loss decides, if it has one."""
    model: Any = getattr(pipe, "model", None)
    if not hasattr(pipe, "spans_key") or not hasattr(model, "maybe_get_ref"):
        return False
    loss = model.maybe_get_ref("loss")
    return needs_labels(loss) if loss is not None else not hasattr(pipe, "loss_weight")
