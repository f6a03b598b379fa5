"""Cross-entropy over rows of scores. A score of -inf takes no part; at least one of a row must be finite."""

from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module


def log_sum_exp(scores: Floats2d) -> Floats2d:
    """log sum_j exp(s_ij), (n, 1), without overflow."""
    xp = get_array_module(scores)
    highest = xp.max(scores, axis=1, keepdims=True)
    return highest + xp.log(xp.exp(scores - highest).sum(axis=1, keepdims=True))


def softmax(scores: Floats2d) -> Floats2d:
    """exp(s_ij) / sum_k exp(s_ik), (n, k)."""
    return get_array_module(scores).exp(scores - log_sum_exp(scores))


def cross_entropy(scores: Floats2d, targets: Ints1d) -> tuple[Floats1d, Floats2d]:
    """-log softmax(s_i)[t_i] of each row, and its derivative by the scores.

    scores (float (n, k)), targets (int (n,)): the index of the right column of each row.
    RETURNS (float (n,), float (n, k)): the loss of each row, and softmax(s_i) less 1 at the target.
    """
    xp = get_array_module(scores)
    rows, norm = xp.arange(len(scores)), log_sum_exp(scores)
    d_scores = xp.exp(scores - norm)
    d_scores[rows, targets] -= 1
    return norm[:, 0] - xp.asarray(scores)[rows, targets], d_scores
