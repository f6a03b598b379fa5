"""The triplet objective: an anchor is to be nearer to its positive than to its negative."""

from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..validation import NonNegativeFloat, validated
from ._common import DISTANCES, Backprop, LossLayer, Members, Paired, check_inputs, choose


@registry.layers("spacy-sbert.TripletLoss.v1")
@validated
def TripletLoss(distance: str = "euclidean", margin: NonNegativeFloat = 1.0) -> Model[tuple[Members, None], float]:
    """How far the negative of each triplet is from being a margin farther than the positive.

    loss = 1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0)

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): by how much the negative is to be farther.
    Input: [a, p, n], each float (n, width): anchors, positives, negatives; and None.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [da, dp, dn].
    RAISES (ValueError): if the distance is unknown, or the members do not have the same number of rows.
    SOURCE: Reimers and Gurevych 2019, section 3 (Triplet Objective Function).
    """
    measure = choose(DISTANCES, distance, loss="TripletLoss", setting="distance")
    return LossLayer("TripletLoss", partial(forward, measure=measure, margin=margin), n_members=[3], gold=None)


def forward(
    model: LossLayer, inputs: tuple[Members, None], is_train: bool, *, measure: Paired, margin: float
) -> tuple[float, Backprop]:
    members, _ = inputs
    check_inputs(model, members)
    return triplet_hinge(*members, measure=measure, margin=margin)


def triplet_hinge(
    anchor: Floats2d, positive: Floats2d, negative: Floats2d, *, measure: Paired, margin: float
) -> tuple[float, Backprop]:
    """1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0) of paired rows, and its backprop to the three."""
    near, back_from_near = measure(anchor, positive)
    far, back_from_far = measure(anchor, negative)
    short = near - far + margin  # (n,)

    def backprop(d_loss: float = 1.0) -> Members:
        d_short = (short > 0).astype(anchor.dtype) * (d_loss / len(anchor))
        d_anchor, d_positive = back_from_near(d_short)
        d_anchor_too, d_negative = back_from_far(-d_short)
        return [d_anchor + d_anchor_too, d_positive, d_negative]

    return float(get_array_module(anchor).maximum(short, 0).mean()), backprop
