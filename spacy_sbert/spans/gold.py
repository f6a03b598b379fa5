"""Which scores the gold values of examples allow to be measured."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spacy.tokens import Doc

from .objectives import OBJECTIVE

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc", "knn_acc")
FEW = 3  # different scores that need be known
SHOWN = 10  # labels that a message names
NO_PAIRS = "there are no pairs with scores"


@dataclass
class GoldFacts:
    """What the gold of some examples is.

    count: number of examples. triplets: those of three members. scores: of pairs, how often each of the first few
    comes. objective_labels: how often each label of pairs comes, by the objective of the pairs, "" where none is noted.
    text_labels: how often each label of single texts comes.
    """

    count: int = 0
    triplets: int = 0
    scores: Counter[float] = field(default_factory=Counter)
    objective_labels: dict[str, Counter[str]] = field(default_factory=dict)
    text_labels: Counter[str] = field(default_factory=Counter)

    def add(self, reference: Doc, spans_key: str) -> None:
        """Look at the reference of an example; a Doc without members only counts."""
        self.count += 1
        group = reference.spans.get(spans_key)
        if group is None:
            return
        n_members, score, label = len(group), group.attrs.get("score"), group.attrs.get("label")
        self.triplets += n_members == 3
        if n_members == 2 and score is not None and (score in self.scores or len(self.scores) < FEW):
            self.scores[score] += 1
        if label is not None and n_members < 3:
            objective = group.attrs.get(OBJECTIVE) or ""
            of_pairs = n_members == 2
            labels = self.objective_labels.setdefault(objective, Counter()) if of_pairs else self.text_labels
            labels[label] += 1

    @property
    def pair_labels(self) -> Counter[str]:
        """How often each label of pairs comes."""
        return sum(self.objective_labels.values(), Counter())

    def undefined(self) -> dict[str, str]:
        """Return the measures that this gold does not allow, each with the reason."""
        found: dict[str, str] = {}
        of_pairs = self._undefined_correlation()
        if of_pairs:
            found |= {"sts_spearman": of_pairs, "sts_pearson": of_pairs}
        if self.scores.keys() != {0.0, 1.0}:
            other = "the scores are not 0 and 1 alone" if len(self.scores) > 1 else of_pairs
            found["pair_ap"] = other or NO_PAIRS
        if not self.pair_labels:
            found["nli_acc"] = "there are no pairs with labels"
        if not self.triplets:
            found["triplet_acc"] = "there are no triplets"
        if len(self.text_labels) < 2 or max(self.text_labels.values()) < 2:
            found["knn_acc"] = self._undefined_neighbours()
        return found

    def relevant(self, reasons: Mapping[str, str]) -> list[str]:
        """Return those of some reasons, by measure, that are of gold which is there, without repetition."""
        there = {"nli_acc": self.pair_labels, "knn_acc": self.text_labels, "triplet_acc": self.triplets}
        kept = [reason for name, reason in reasons.items() if there.get(name, name != "pair_ap" and self.scores)]
        return list(dict.fromkeys(kept))

    def _undefined_correlation(self) -> str | None:
        if len(self.scores) > 1:
            return None
        if not self.scores:
            return NO_PAIRS
        ((score, n),) = self.scores.items()
        if n == 1:
            return "there is one pair with a score"
        return f"all gold scores are {score:g} (of 0 to 1, as they are scaled)"

    def _undefined_neighbours(self) -> str:
        if not self.text_labels:
            return "there are no single texts with labels"
        if len(self.text_labels) == 1:
            return f"all labels of texts are '{next(iter(self.text_labels))}'"
        return "no label of the texts comes twice"


def listed_labels(labels: Iterable[str]) -> str:
    """Return the first labels as messages show them."""
    listed = list(labels)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(f"'{label}'" for label in listed[:SHOWN]) + more
