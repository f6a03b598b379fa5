"""Objectives of graded pairs: cosines should be the gold scores, or be in their order."""

from functools import partial

from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ..validation import SCORE_RANGE, PositiveFloat, validated
from ._common import (
    Derivative,
    LossLayer,
    Members,
    Paired,
    log_sum_exp,
    mean_square,
    pair_loss,
    paired_cosine,
)


def CosineSimilarityLoss() -> LossLayer:
    """Mean squared error between the cosine of u and v and the gold similarity of each pair.

    loss = 1/n sum_i (cos(u_i, v_i) - y_i)^2

    Input: [u, v], each float (n, width), and y, float (n,), the gold similarities, usually from 0
        to 1.
    SOURCE: Reimers and Gurevych 2019, section 3 (Regression Objective Function).
    """
    return pair_loss("CosineSimilarityLoss", paired_cosine, _squared_error, score_range=SCORE_RANGE)


def _squared_error(model: LossLayer, similarity: Floats1d, gold: Floats1d) -> Paired:
    # (n,)
    error = similarity - gold
    return mean_square(error), lambda d_loss: 2 * error * d_loss / len(gold)


@validated
def CoSENTLoss(scale: PositiveFloat = 20.0) -> LossLayer:
    """Count, softly, the pairs of pairs whose cosines have another order than their gold scores.

    loss = log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i))),   s_i = cos(u_i, v_i)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), and y, float (n,), the gold scores, of which only the
        order counts.
    SOURCE: Huang et al. 2024 (CoSENT).
    """
    return pair_loss(
        "CoSENTLoss", paired_cosine, partial(_rank_pairs, scale=scale), whole_batch=True
    )


@validated
def AnglELoss(scale: PositiveFloat = 20.0) -> LossLayer:
    """CoSENTLoss of the angle between vectors read as complex numbers.

    Its gradient does not vanish as a cosine's does.

    s_i = |sum_k (Re z_ik + Im z_ik)|,   z_i = (u_i / ||u_i||) (conj(v_i) / ||v_i||)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), the first half of a row its real and the second its
        imaginary parts; and y, float (n,), the gold scores, of which only the order counts.
    SOURCE: Li and Li 2023 (AnglE), section 3 (Angle Objective).
    """
    return pair_loss(
        "AnglELoss", _paired_angle, partial(_rank_pairs, scale=scale), whole_batch=True
    )


def _rank_pairs(model: LossLayer, similarity: Floats1d, gold: Floats1d, *, scale: float) -> Paired:
    """Return log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i))), and its derivative by s."""
    xp = get_array_module(similarity)
    s = xp.asarray(similarity)[None, :]
    y = xp.asarray(gold)[None, :]
    # (n, n), of j over i
    excess = xp.where(y < y.T, scale * (s - s.T), -xp.inf)
    # e^0 is the 1
    terms = xp.concatenate([xp.zeros((1,), dtype=s.dtype), excess.ravel()])
    # (1, 1)
    value = xp.asarray(log_sum_exp(terms[None, :]))
    share = xp.exp(excess - value)
    d_similarity = scale * (share.sum(axis=0) - share.sum(axis=1))
    return float(value[0, 0]), lambda d_loss: d_similarity * d_loss


def _paired_angle(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """Return |sum_k (Re z_k + Im z_k)| of each row, and du, dv.

    It is sqrt(2) |cos(u, w)| with w = (1 + i) v.
    """
    if u.shape[1] % 2:
        raise ValueError(
            "The loss 'AnglELoss' reads a vector as complex numbers: expected an even width, got "
            f"{u.shape[1]}. Use another encoder, or spacy-sbert.CoSENTLoss.v1."
        )
    xp = get_array_module(u)
    cos, back_to_turned = paired_cosine(u, v + _times_i(v))
    root = 2**0.5

    def backprop(d_similarity: Floats1d) -> Members:
        du, dw = back_to_turned(d_similarity * root * xp.sign(cos))
        # I is antisymmetric
        return [du, dw - _times_i(dw)]

    return root * xp.abs(cos), backprop


def _times_i(x: Floats2d) -> Floats2d:
    """Return i (a + ib) = -b + ia, for rows that hold a and then b."""
    half = x.shape[1] // 2
    return get_array_module(x).concatenate([-x[:, half:], x[:, :half]], axis=1)
