"""The ranking of pairs by their similarity, as CoSENT has it."""

from thinc.types import Floats1d
from thinc.util import get_array_module

from .cross_entropy import log_sum_exp


def rank_pairs(similarity: Floats1d, gold: Floats1d, scale: float) -> tuple[float, Floats1d]:
    """The loss of pairs that stand in the wrong order, or in the right one too narrowly.

    loss = log(1 + sum_{i, j: gold_i > gold_j} exp(scale (s_j - s_i)))

    similarity (float (n,)), gold (float (n,)): the similarity that each pair has, and the one it is to have.
    RETURNS (float, float (n,)): the loss, 0 if no two gold values differ, and its derivative by the similarities.
    """
    xp = get_array_module(similarity)
    s, y = xp.asarray(similarity)[None, :], xp.asarray(gold)[None, :]
    excess = xp.where(y < y.T, scale * (s - s.T), -xp.inf)  # (n, n), of j over i
    terms = xp.concatenate([xp.zeros((1,), dtype=s.dtype), excess.ravel()])  # e^0 is the 1
    value = xp.asarray(log_sum_exp(terms[None, :]))  # (1, 1)
    share = xp.exp(excess - value)
    return float(value[0, 0]), scale * (share.sum(axis=0) - share.sum(axis=1))
