"""Statistics of the gold values of a corpus, and whether scores can be computed of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import dot_to_object, resolve_dot_names

from ..errors import Warnings, warn
from .examples import OBJECTIVE

_OF_GRADED_PAIRS = ("sts_spearman", "sts_pearson")
_OF_BINARY_PAIRS = (
    "pair_ap",
    "pair_acc",
    "pair_acc_threshold",
    "pair_f1",
    "pair_f1_threshold",
    "pair_precision",
    "pair_recall",
    "pair_mcc",
)
MEASURES = (*_OF_GRADED_PAIRS, *_OF_BINARY_PAIRS, "nli_acc", "triplet_acc", "knn_acc")
# Compared with a score, and none themselves
_THRESHOLDS = ("pair_acc_threshold", "pair_f1_threshold")
# Labels that a message lists
_MAX_LABELS = 10


def shown_score(measure: str, value: float) -> str:
    """Return a score x 100 as tables show it, a threshold as it is."""
    return f"{value:.4f}" if measure in _THRESHOLDS else f"{100 * value:.2f}"


@dataclass
class GoldFacts:
    """Statistics of the gold values of some examples.

    triplets: number of examples of three members or more. scores: how often each score of pairs
        occurs.
    objective_labels: how often each label of pairs occurs, by the objective of the pairs, "" by
        default.
    text_labels: how often each label of single texts occurs.
    """

    triplets: int = 0
    scores: Counter[float] = field(default_factory=Counter)
    objective_labels: dict[str, Counter[str]] = field(default_factory=dict)
    text_labels: Counter[str] = field(default_factory=Counter)

    def add(self, reference: Doc, spans_key: str) -> None:
        """Count the reference of an example."""
        group = reference.spans.get(spans_key)
        if group is None:
            return
        n_members = len(group)
        score = group.attrs.get("score")
        label = group.attrs.get("label")
        if n_members >= 3:
            self.triplets += 1
        if n_members == 2 and score is not None:
            self.scores[score] += 1
        if n_members == 2 and label is not None:
            objective = group.attrs.get(OBJECTIVE) or ""
            self.objective_labels.setdefault(objective, Counter())[label] += 1
        if n_members < 2 and label is not None:
            self.text_labels[label] += 1

    @property
    def pair_labels(self) -> Counter[str]:
        """Return how often each label of pairs occurs."""
        return sum(self.objective_labels.values(), Counter())

    def undefined(self) -> dict[str, str]:
        """Return the measures that this gold does not allow, each with the reason."""
        reasons: dict[str, str] = {}
        if self.scores.total() < 2:
            reason = "there are no pairs with scores, or only one"
            reasons = dict.fromkeys((*_OF_GRADED_PAIRS, *_OF_BINARY_PAIRS), reason)
        elif len(self.scores) == 1:
            score = next(iter(self.scores))
            reason = f"all gold scores are {score:g} (of 0 to 1, as they are scaled)"
            reasons = dict.fromkeys((*_OF_GRADED_PAIRS, *_OF_BINARY_PAIRS), reason)
        elif self.scores.keys() != {0.0, 1.0}:
            reasons = dict.fromkeys(_OF_BINARY_PAIRS, "the scores are not 0 and 1 alone")
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

    def warn_of_single_labels(self) -> None:
        """Warn if knn_acc leaves texts out: those with a label that no other text has."""
        once = [label for label, count in self.text_labels.items() if count == 1]
        if not once or "knn_acc" in self.undefined():
            return
        total = self.text_labels.total()
        warn(
            Warnings.LABELS_ONCE.format(
                counted=total - len(once), total=total, labels=listed_labels(once)
            )
        )

    def relevant(self, reasons: Mapping[str, str]) -> list[str]:
        """Return those of some reasons, by measure, that concern gold which is present.

        None is repeated.
        """
        present = {
            "nli_acc": self.pair_labels,
            "knn_acc": self.text_labels,
            "triplet_acc": self.triplets,
        }
        present |= {name: self.scores for name in _OF_GRADED_PAIRS}
        return list(dict.fromkeys(reason for name, reason in reasons.items() if present.get(name)))


def measure_of(score: str) -> str | None:
    """Return the measure of a score of one objective or pipe: sts_spearman of sts_spearman_sick.

    None if it is of none.
    """
    return next((measure for measure in MEASURES if f"_{measure}_" in f"_{score}_"), None)


def listed_labels(labels: Iterable[str]) -> str:
    """Return the first labels as messages list them."""
    quoted = [f"'{label}'" for label in labels]
    listed = ", ".join(quoted[:_MAX_LABELS])
    if len(quoted) > _MAX_LABELS:
        return f"{listed} and {len(quoted) - _MAX_LABELS} more"
    return listed


def check_scored(weights: Mapping[str, float | None], scores: Mapping[str, Any]) -> None:
    """Raise ValueError after an evaluation without any score that has a weight."""
    weighted = [name for name, weight in weights.items() if weight]
    if weighted and not any(name in scores for name in weighted):
        known = ", ".join(name for name, score in scores.items() if isinstance(score, int | float))
        raise ValueError(
            "Training cannot tell better weights from worse: no score of [training.score_weights] "
            f"({', '.join(weighted)}) is defined. Give weight to one of these: {known or 'none'}."
        )


def untrained_warning(results: Sequence[Sequence[float]]) -> str | None:
    """Return the warning of a training without a better score than that of step 0; None if it had.

    results: of each evaluation the score and the step, as spaCy's training loop has them.
    """
    first = {score for score, step, *_ in results if step == 0}
    later = {score for score, step, *_ in results if step > 0}
    if not first or not later:
        return None
    if max(later) < max(first):
        return Warnings.NOTHING_LEARNED
    return Warnings.SCORES_UNCHANGED if first == later else None


def check_dev_corpus(nlp: Language) -> None:
    """Refuse a training whose scores would be 0 at each evaluation.

    Warn if labels in the dev corpus are unknown.

    nlp (Language): initialized, with the config of the training. A dev corpus of another package is
        not read.
    """
    config = nlp.config.interpolate()
    name = config["training"]["dev_corpus"]
    block: Any = dot_to_object(config, name)
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key")]
    if not pipes or not str(block.get("@readers", "")).startswith("spacy-sbert."):
        return
    facts = {pipe.spans_key: GoldFacts() for pipe in pipes}
    (corpus,) = resolve_dot_names(config, [name])
    for example in corpus(nlp):
        for key, gold in facts.items():
            gold.add(example.reference, key)
    for pipe in pipes:
        labels = getattr(pipe, "label_data", None) or {}
        by_objective = labels if isinstance(labels, Mapping) else {"": labels}
        _check_labels(by_objective, facts[pipe.spans_key], name)
    for gold in facts.values():
        gold.warn_of_single_labels()
    _check_defined(config["training"]["score_weights"], facts.values(), name)


def _check_defined(
    weights: Mapping[str, float | None], facts: Iterable[GoldFacts], dev_corpus: str
) -> None:
    """Refuse a dev corpus on which no score with a weight is defined."""
    # Also the measures of one objective, such as sts_spearman_sick, or pipe
    measures = {score: measure_of(score) or "" for score, weight in weights.items() if weight}
    undefined = [gold.undefined() for gold in facts]
    none_is_defined = all(set(measures.values()) <= reasons.keys() for reasons in undefined)
    if not measures or not none_is_defined:
        return
    listed = "; ".join(f"{score}: {undefined[0][measure]}" for score, measure in measures.items())
    raise ValueError(
        f"Training cannot tell better weights from worse: on [{dev_corpus}] no score of "
        f"[training.score_weights] is defined. {listed}."
    )


def _check_labels(classifiers: Mapping[str, list[str]], gold: GoldFacts, dev_corpus: str) -> None:
    """Compare the labels of pairs with those that the classifier of their objective learned.

    classifiers: the labels of each, by its objective; "" for the only one.
    """
    for objective, counts in gold.objective_labels.items():
        known = classifiers.get(objective) or classifiers.get("") or []
        unknown = {label: count for label, count in counts.items() if label not in known}
        if not known or not unknown:
            continue
        given = listed_labels(unknown)
        expected = listed_labels(known)
        if len(unknown) == len(counts):
            raise ValueError(
                f"[{dev_corpus}] has the labels {given}, and the training examples have none of "
                f"them: {expected}. Spell them alike, or give another dev corpus."
            )
        message = Warnings.UNKNOWN_DEV_LABELS.format(
            count=sum(unknown.values()), corpus=dev_corpus, given=given, known=expected
        )
        warn(message)
