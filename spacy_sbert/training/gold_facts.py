"""Statistics of the gold values of a corpus, and the measures that they allow."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spacy.tokens import Doc

from .examples import OBJECTIVE

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc", "knn_acc")
_MOST_SCORES = 3  # different scores that are counted
_MOST_LABELS = 10  # labels that a message lists
_NO_PAIRS = "there are no pairs with scores"


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
        if n_members == 2 and score is not None and (score in self.scores or len(self.scores) < _MOST_SCORES):
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
        correlation = self._undefined_correlation()
        if correlation:
            reasons |= {"sts_spearman": correlation, "sts_pearson": correlation}
        if self.scores.keys() != {0.0, 1.0}:
            not_binary = "the scores are not 0 and 1 alone" if len(self.scores) > 1 else correlation
            reasons["pair_ap"] = not_binary or _NO_PAIRS
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

    def _undefined_correlation(self) -> str | None:
        if len(self.scores) > 1:
            return None
        if not self.scores:
            return _NO_PAIRS
        ((score, n),) = self.scores.items()
        if n == 1:
            return "there is one pair with a score"
        return f"all gold scores are {score:g} (of 0 to 1, as they are scaled)"


def listed_labels(labels: Iterable[str]) -> str:
    """Return the first labels as messages list them."""
    listed = list(labels)
    more = f" and {len(listed) - _MOST_LABELS} more" if len(listed) > _MOST_LABELS else ""
    return ", ".join(f"'{label}'" for label in listed[:_MOST_LABELS]) + more
