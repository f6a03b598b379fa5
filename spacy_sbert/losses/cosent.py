"""The ranking objectives: pairs should be as similar, relative to each other, as their gold scores say."""

from functools import partial

from spacy.util import registry
from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ..validation import PositiveFloat, validated
from ._common import Backprop, Derivative, LossLayer, Members, PairedFunction, check_inputs, log_sum_exp, paired_cosine


@registry.layers("spacy-sbert.CoSENTLoss.v1")
@validated
def CoSENTLoss(scale: PositiveFloat = 20.0) -> LossLayer:
    """Count, softly, the pairs of pairs whose cosines have another order than their gold scores.

    loss = log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i))),   s_i = cos(u_i, v_i)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), and y, float (n,), the gold scores, of which only the order counts.
    Output: the loss, a float, 0 if no two gold scores differ. Its backprop takes a factor on the loss and returns
        [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows.
    SOURCE: Huang et al. 2024 (CoSENT).
    """
    forward = partial(_forward, similarity=paired_cosine, scale=scale)
    return LossLayer("CoSENTLoss", forward, n_members=[2], gold="score", whole_batch=True)


@registry.layers("spacy-sbert.AnglELoss.v1")
@validated
def AnglELoss(scale: PositiveFloat = 20.0) -> LossLayer:
    """CoSENTLoss of the angle between vectors read as complex numbers, whose gradient does not vanish as a cosine's.

    loss = log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i)))
    s_i = |sum_k (Re z_ik + Im z_ik)|,   z_i = (u_i / ||u_i||) (conj(v_i) / ||v_i||)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), the first half of a row its real and the second its imaginary parts; and y,
        float (n,), the gold scores, of which only the order counts.
    Output: the loss, a float, 0 if no two gold scores differ. Its backprop takes a factor on the loss and returns
        [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows, or the width is odd.
    SOURCE: Li and Li 2023 (AnglE), section 3 (Angle Objective).
    """
    return LossLayer("AnglELoss", partial(_angle, scale=scale), n_members=[2], gold="score", whole_batch=True)


def _forward(
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, similarity: PairedFunction, scale: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    similarities, back_to_members = similarity(*members)
    value, d_similarities = _rank_pairs(similarities, gold, scale)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(d_similarities * d_loss)

    return value, backprop


def _angle(
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, scale: float
) -> tuple[float, Backprop]:
    widths = [member.shape[1] for member in inputs[0]]
    if any(width % 2 for width in widths):
        raise ValueError(
            f"The loss '{model.name}' reads a vector as complex numbers, the first half real and the second "
            f"imaginary: expected an even width, got {max(widths)}. Use another encoder, or spacy-sbert.CoSENTLoss.v1."
        )
    return _forward(model, inputs, is_train, similarity=_paired_angle, scale=scale)


def _rank_pairs(similarity: Floats1d, gold: Floats1d, scale: float) -> tuple[float, Floats1d]:
    """Return the loss of pairs in the wrong order, or in the right one too narrowly.

    loss = log(1 + sum_{i, j: gold_i > gold_j} exp(scale (s_j - s_i)))

    similarity (float (n,)), gold (float (n,)): the similarities of the pairs, and their gold scores.
    RETURNS (float, float (n,)): the loss, 0 if no two gold values differ, and its derivative by the similarities.
    """
    xp = get_array_module(similarity)
    s, y = xp.asarray(similarity)[None, :], xp.asarray(gold)[None, :]
    excess = xp.where(y < y.T, scale * (s - s.T), -xp.inf)  # (n, n), of j over i
    terms = xp.concatenate([xp.zeros((1,), dtype=s.dtype), excess.ravel()])  # e^0 is the 1
    value = xp.asarray(log_sum_exp(terms[None, :]))  # (1, 1)
    share = xp.exp(excess - value)
    return float(value[0, 0]), scale * (share.sum(axis=0) - share.sum(axis=1))


def _paired_angle(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return |sum_k (Re z_k + Im z_k)| of each row, and du, dv.

    With w = (1 + i) v, the sum is the dot product of u and w over ||u|| ||v||, and ||w|| = sqrt(2) ||v||. So it is
    sqrt(2) cos(u, w).
    """
    xp = get_array_module(u)
    cos, back_to_turned = paired_cosine(u, v + _times_i(v))
    root = 2**0.5

    def backprop(d_similarity: Floats1d) -> list[Floats2d]:
        du, dw = back_to_turned(d_similarity * root * xp.sign(cos))
        return [du, dw - _times_i(dw)]  # i is antisymmetric

    return root * xp.abs(cos), backprop


def _times_i(x: Floats2d) -> Floats2d:
    """Return i (a + ib) = -b + ia, for rows that hold a and then b."""
    half = x.shape[1] // 2
    return get_array_module(x).concatenate([-x[:, half:], x[:, :half]], axis=1)
