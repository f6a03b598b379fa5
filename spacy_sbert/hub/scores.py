"""The scores of sentence vectors that `spacy train` leaves in a meta.json, by their keys."""

import math
import re
from typing import NamedTuple


class Measure(NamedTuple):
    """A measure of sentence vectors.

    key: in meta.json, alone or with the name of a corpus or a pipe. label: in cards.
    task, metric: on the hub, as sentence-transformers has them.
    """

    key: str
    label: str
    task: str
    metric: str


_PAIRS = "Binary Classification"
_MEASURES = [
    Measure(
        "sts_spearman",
        "Spearman correlation of cosine and gold score",
        "Semantic Similarity",
        "Spearman Cosine",
    ),
    Measure(
        "sts_pearson",
        "Pearson correlation of cosine and gold score",
        "Semantic Similarity",
        "Pearson Cosine",
    ),
    Measure("pair_ap", "Average precision of cosine on labelled pairs", _PAIRS, "Cosine Ap"),
    Measure("pair_acc", "Accuracy of the best threshold on cosine", _PAIRS, "Cosine Accuracy"),
    Measure(
        "pair_acc_threshold",
        "Threshold of that accuracy, not x 100",
        _PAIRS,
        "Cosine Accuracy Threshold",
    ),
    Measure("pair_f1", "F1 of the best threshold on cosine", _PAIRS, "Cosine F1"),
    Measure("pair_f1_threshold", "Threshold of that F1, not x 100", _PAIRS, "Cosine F1 Threshold"),
    Measure("pair_precision", "Precision at that F1", _PAIRS, "Cosine Precision"),
    Measure("pair_recall", "Recall at that F1", _PAIRS, "Cosine Recall"),
    Measure("pair_mcc", "Matthews correlation at that F1", _PAIRS, "Cosine Mcc"),
    Measure("nli_acc", "Accuracy of the label of a pair", "Natural Language Inference", "Accuracy"),
    Measure("triplet_acc", "Accuracy of triplets, Euclidean", "Triplet", "Euclidean Accuracy"),
    Measure(
        "knn_acc",
        "Accuracy of the nearest text's label, cosine",
        "Text Classification",
        "Cosine Knn Accuracy",
    ),
]


def measure_of(key: str) -> tuple[Measure, str] | None:
    """Return the measure and the corpus or pipe that a key of meta.json names.

    None for scores of other components.
    """
    for measure in _MEASURES:
        match = re.fullmatch(rf"(?:(.+)_)?{measure.key}(?:_(.+))?", key)
        if match:
            return measure, match[1] or match[2] or ""
    return None


def is_score(key: str, value: object) -> bool:
    """Return whether an entry in the performance of a meta.json is a finite score."""
    if key == "speed" or key.endswith("_loss"):
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
