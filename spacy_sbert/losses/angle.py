"""The ranking objective over angles between complex vectors, whose gradient does not vanish where a cosine's does."""

from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ..validation import PositiveFloat, validated
from ._common import Backprop, Derivative, LossLayer, Members, paired_cosine
from .cosent import forward as rank


@registry.layers("spacy-sbert.AnglELoss.v1")
@validated
def AnglELoss(scale: PositiveFloat = 20.0) -> Model[tuple[Members, Floats1d], float]:
    """CoSENTLoss with the angle similarity of vectors read as complex numbers in place of the cosine.

    loss = log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i)))
    s_i = |sum_k (Re z_ik + Im z_ik)|,   z_i = (u_i / ||u_i||) (conj(v_i) / ||v_i||)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), the first half of a row its real and the second its imaginary parts; and y,
        float (n,), the gold scores, of which only the order counts.
    Output: the loss, a float, 0 where no two gold scores differ. Its backprop takes a factor on the loss and returns
        [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows, or the width is odd.
    SOURCE: Li and Li 2023 (AnglE), section 3 (Angle Objective).
    """
    return LossLayer("AnglELoss", partial(forward, scale=scale), n_members=[2], gold="score", whole_batch=True)


def forward(
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, scale: float
) -> tuple[float, Backprop]:
    widths = [member.shape[1] for member in inputs[0]]
    if any(width % 2 for width in widths):
        raise ValueError(
            f"The loss '{model.name}' reads a vector as complex numbers, the first half real and the second "
            f"imaginary: expected an even width, got {max(widths)}. Use another encoder, or "
            "spacy-sbert.CoSENTLoss.v1."
        )
    return rank(model, inputs, is_train, similarity=paired_angle, scale=scale)


def paired_angle(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """|sum_k (Re z_k + Im z_k)| of each row, and du, dv.

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
    """i (a + ib) = -b + ia, for rows that hold a and then b."""
    half = x.shape[1] // 2
    return get_array_module(x).concatenate([-x[:, half:], x[:, :half]], axis=1)
