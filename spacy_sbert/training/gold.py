"""Statistics of the gold values of a corpus, and checks that scores can tell better weights from worse."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import resolve_dot_names

from ..errors import Warnings
from .examples import OBJECTIVE

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc", "knn_acc")
_MAX_SCORES = 3  # different scores that are counted
_MAX_LABELS = 10  # labels that a message lists


@dataclass
class GoldFacts:
    """Statistics of the gold values of some examples.

    count: number of examples. triplets: those of three members. scores: of pairs, how often each of the first few
    occurs. objective_labels: how often each label of pairs occurs, by the objective of the pairs, "" by default.
    text_labels: how often each label of single texts occurs.
    """

    count: int = 0
    triplets: int = 0
    scores: Counter[float] = field(default_factory=Counter)
    objective_labels: dict[str, Counter[str]] = field(default_factory=dict)
    text_labels: Counter[str] = field(default_factory=Counter)

    def add(self, reference: Doc, spans_key: str) -> None:
        """Count the reference of an example."""
        self.count += 1
        group = reference.spans.get(spans_key)
        if group is None:
            return
        n_members, score, label = len(group), group.attrs.get("score"), group.attrs.get("label")
        self.triplets += n_members == 3
        if n_members == 2 and score is not None and (score in self.scores or len(self.scores) < _MAX_SCORES):
            self.scores[score] += 1
        if label is not None and n_members == 2:
            self.objective_labels.setdefault(group.attrs.get(OBJECTIVE) or "", Counter())[label] += 1
        elif label is not None and n_members < 2:
            self.text_labels[label] += 1

    @property
    def pair_labels(self) -> Counter[str]:
        """Return how often each label of pairs occurs."""
        return sum(self.objective_labels.values(), Counter())

    def undefined(self) -> dict[str, str]:
        """Return the measures that this gold does not allow, each with the reason."""
        reasons: dict[str, str] = {}
        if len(self.scores) < 2:
            constant = "there are no pairs with scores"
            for score, n in self.scores.items():
                constant = f"all gold scores are {score:g} (of 0 to 1, as they are scaled)"
                constant = constant if n > 1 else "there is one pair with a score"
            reasons = dict.fromkeys(("sts_spearman", "sts_pearson", "pair_ap"), constant)
        elif self.scores.keys() != {0.0, 1.0}:
            reasons["pair_ap"] = "the scores are not 0 and 1 alone"
        if not self.pair_labels:
            reasons["nli_acc"] = "there are no pairs with labels"
        if not self.triplets:
            reasons["triplet_acc"] = "there are no triplets"
        if not self.text_labels:
            reasons["knn_acc"] = "there are no single texts with labels"
        elif len(self.text_labels) == 1:
            reasons["knn_acc"] = f"all labels of texts are '{next(iter(self.text_labels))}'"
        elif max(self.text_labels.values()) < 2:
            reasons["knn_acc"] = "no label of the texts comes twice"
        return reasons

    def relevant(self, reasons: Mapping[str, str]) -> list[str]:
        """Return those of some reasons, by measure, that concern gold which is present, without repetition."""
        present = {"nli_acc": self.pair_labels, "knn_acc": self.text_labels, "triplet_acc": self.triplets}
        relevant = [reason for name, reason in reasons.items() if present.get(name, name != "pair_ap" and self.scores)]
        return list(dict.fromkeys(relevant))


def listed_labels(labels: Iterable[str]) -> str:
    """Return the first labels as messages list them."""
    listed = list(labels)
    more = f" and {len(listed) - _MAX_LABELS} more" if len(listed) > _MAX_LABELS else ""
    return ", ".join(f"'{label}'" for label in listed[:_MAX_LABELS]) + more


def check_scored(weights: Mapping[str, float | None], scores: Mapping[str, Any]) -> None:
    """Raise ValueError after an evaluation without any score that has a weight.

    weights (dict): of [training.score_weights]. scores (dict): those that the pipeline defined.
    """
    weighted = [name for name, weight in weights.items() if weight]
    if weighted and not any(name in scores for name in weighted):
        known = ", ".join(name for name, score in scores.items() if isinstance(score, int | float))
        raise ValueError(
            "Training cannot tell better weights from worse: on the dev corpus no score of [training.score_weights] "
            f"({', '.join(weighted)}) is defined. Give weight to one of these: {known or 'none'}; or take another dev "
            "corpus."
        )


def check_dev_corpus(nlp: Language) -> None:
    """Refuse a training whose scores would be 0 at each evaluation; warn if labels in the dev corpus are unknown.

    A dev corpus of another package is not read.

    nlp (Language): initialized, with the config of the training.
    RAISES (ValueError): if no score that has a weight is defined, with the reason for each, or if a classifier knows
        none of the labels of its pairs.
    """
    config = nlp.config.interpolate()
    name, weights = config["training"]["dev_corpus"], config["training"]["score_weights"]
    block: Any = config
    for part in name.split("."):
        block = block.get(part, {})
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key")]
    if not pipes or not str(block.get("@readers", "")).startswith("spacy-sbert."):
        return
    (corpus,) = resolve_dot_names(config, [name])
    facts = {pipe.spans_key: GoldFacts() for pipe in pipes}
    for example in corpus(nlp):
        for key, gold in facts.items():
            gold.add(example.reference, key)
    for pipe in pipes:
        _check_labels(_pipe_labels(pipe), facts[pipe.spans_key], name)
    undefined = [gold.undefined() for gold in facts.values()]
    # also the measures of one objective, such as sts_spearman_sick, or pipe
    measures = {score: next((m for m in MEASURES if m in score), "") for score, weight in weights.items() if weight}
    if measures and all(measure in reasons for reasons in undefined for measure in measures.values()):
        listed = "; ".join(f"{score}: {undefined[0][measure]}" for score, measure in measures.items())
        raise ValueError(
            f"Training cannot tell better weights from worse: on [{name}] no score of [training.score_weights] is "
            f"defined. {listed}. Give weight to another score, or another dev corpus."
        )


def _check_labels(classifiers: Mapping[str, list[str]], gold: GoldFacts, dev_corpus: str) -> None:
    """Compare the labels of pairs, of each objective, with those that its classifier learned."""
    for objective, counts in gold.objective_labels.items():
        known = classifiers.get(objective) or classifiers.get("") or []
        unknown = [label for label in counts if label not in known] if known else []
        labels, known_labels = listed_labels(unknown), listed_labels(known)
        if unknown and len(unknown) == len(counts):
            raise ValueError(
                f"[{dev_corpus}] has the labels {labels}, and the training examples have none of them: {known_labels}. "
                "Spell them alike, or give another dev corpus."
            )
        if unknown:
            count = sum(counts[label] for label in unknown)
            message = Warnings.UNKNOWN_DEV_LABELS.format(
                count=count, corpus=dev_corpus, given=labels, known=known_labels
            )
            warnings.warn(message, stacklevel=3)


def _pipe_labels(pipe: Any) -> dict[str, list[str]]:  # noqa: ANN401 (any pipe)
    """Return the labels that the classifiers of a pipe learned, by objective, "" for the only one."""
    labels = getattr(pipe, "label_data", None) or {}
    return dict(labels) if isinstance(labels, Mapping) else {"": list(labels)}
