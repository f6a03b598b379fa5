"""Cross-entropy over rows of scores. A score of -inf takes no part; at least one of a row must be finite."""

from typing import Any

from thinc.types import Floats2d, Ints1d
from thinc.util import get_array_module


def log_sum_exp(scores: Any) -> Any:
    """log sum_j exp(s_ij), (n, 1), without overflow."""
    highest = scores.max(axis=1, keepdims=True)
    return highest + get_array_module(scores).log(_exp(scores - highest).sum(axis=1, keepdims=True))


def softmax(scores: Floats2d) -> Floats2d:
    """exp(s_ij) / sum_k exp(s_ik), (n, k)."""
    return _exp(scores - log_sum_exp(scores))


def cross_entropy(scores: Any, targets: Ints1d) -> tuple[Any, Any]:
    """-log softmax(s_i)[t_i] of each row, and its derivative by the scores.

    scores (float (n, k)), targets (int (n,)): the index of the right column of each row.
    RETURNS (float (n,), float (n, k)): the loss of each row, and softmax(s_i) less 1 at the target.
    """
    rows = get_array_module(scores).arange(len(scores))
    norm = log_sum_exp(scores)
    d_scores = _exp(scores - norm)
    d_scores[rows, targets] -= 1
    return norm[:, 0] - scores[rows, targets], d_scores


def _exp(scores: Any) -> Any:
    return get_array_module(scores).exp(scores)
