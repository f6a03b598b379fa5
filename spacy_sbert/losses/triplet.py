"""The triplet objectives: an anchor should be nearer to its positive than to its negative."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from spacy.util import registry
from thinc.types import Floats2d, Ints1d
from thinc.util import get_array_module

from ..validation import NonNegativeFloat, validated
from ._common import (
    DISTANCES,
    Backprop,
    LossLayer,
    Members,
    PairedFunction,
    check_inputs,
    choose,
    label_encode,
    unit_rows,
)


@registry.layers("spacy-sbert.TripletLoss.v1")
@validated
def TripletLoss(distance: str = "euclidean", margin: NonNegativeFloat = 1.0) -> LossLayer:
    """Penalize a negative that is not a margin farther from the anchor than the positive.

    loss = 1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0)

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): by how much the negative should be farther.
    Input: [a, p, n], each float (n, width): anchors, positives, negatives; and None.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [da, dp, dn].
    RAISES (ValueError): if the distance is unknown, or the members do not have the same number of rows.
    SOURCE: Reimers and Gurevych 2019, section 3 (Triplet Objective Function).
    """
    measure = choose(DISTANCES, distance, loss="TripletLoss", setting="distance")
    return LossLayer("TripletLoss", partial(_triplets, measure=measure, margin=margin), n_members=[3], gold=None)


def _triplets(
    model: LossLayer, inputs: tuple[Members, None], is_train: bool, *, measure: PairedFunction, margin: float
) -> tuple[float, Backprop]:
    members, _ = inputs
    check_inputs(model, members)
    return triplet_hinge(*members, measure=measure, margin=margin)


def triplet_hinge(
    anchor: Floats2d, positive: Floats2d, negative: Floats2d, *, measure: PairedFunction, margin: float
) -> tuple[float, Backprop]:
    """Return 1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0) of paired rows, and its backprop to the three."""
    near, back_from_near = measure(anchor, positive)
    far, back_from_far = measure(anchor, negative)
    short = near - far + margin  # (n,)

    def backprop(d_loss: float = 1.0) -> Members:
        d_short = (short > 0).astype(anchor.dtype) * (d_loss / len(anchor))
        d_anchor, d_positive = back_from_near(d_short)
        d_anchor_from_far, d_negative = back_from_far(-d_short)
        return [d_anchor + d_anchor_from_far, d_positive, d_negative]

    return float(get_array_module(anchor).maximum(short, 0).mean()), backprop


@registry.layers("spacy-sbert.BatchHardTripletLoss.v1")
@validated
def BatchHardTripletLoss(distance: str = "euclidean", margin: NonNegativeFloat = 5.0) -> LossLayer:
    """TripletLoss of each text with the farthest text of its label and the nearest text of another.

    loss = mean_i max(max_{j != i: y_j = y_i} d(x_i, x_j) - min_{k: y_k != y_i} d(x_i, x_k) + margin, 0)

    The mean is over the texts that have both.

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): by how much the texts of another label should be farther.
    Input: [x], float (n, width), and y, list[str] of n labels.
    Output: the loss, a float, 0 if no text has both. Its backprop takes a factor on the loss and returns [dx].
    RAISES (ValueError): if the distance is unknown, or x and y do not have the same number of rows.
    SOURCE: Hermans, Beyer and Leibe 2017, section 2 (Batch Hard).
    """
    choose(DISTANCES, distance, loss="BatchHardTripletLoss", setting="distance")
    forward = partial(_batch_hard, distance=distance, margin=margin)
    return LossLayer("BatchHardTripletLoss", forward, n_members=[1], gold="label", whole_batch=True)


def _batch_hard(
    model: LossLayer, inputs: tuple[Members, list[str]], is_train: bool, *, distance: str, margin: float
) -> tuple[float, Backprop]:
    members, labels = inputs
    check_inputs(model, members, len(labels))
    X = members[0]
    xp = get_array_module(X)
    triplets = _hardest_triplets(_PAIRWISE[distance](X), label_encode([labels], numpy)[0])
    if not len(triplets[0]):
        return 0.0, lambda d_loss=1.0: [xp.zeros_like(X)]
    value, back_to_triplets = triplet_hinge(*(X[rows] for rows in triplets), measure=DISTANCES[distance], margin=margin)

    def backprop(d_loss: float = 1.0) -> Members:
        dX = xp.zeros_like(X)
        for rows, d in zip(triplets, back_to_triplets(d_loss), strict=True):
            picked = (xp.arange(len(X))[:, None] == xp.expand_dims(rows, 0)).astype(X.dtype)  # rows repeat, so sum them
            dX += picked @ d
        return [dX]

    return value, backprop


def _hardest_triplets(distances: Floats2d, labels: Any) -> list[Ints1d]:  # noqa: ANN401 (int (n,) of NumPy)
    """Return the anchors that have a positive and a negative, the farthest positive and the nearest negative of each.

    distances (float (n, n)): on any device.
    labels (int (n,)): on the host, so that the anchors are known without waiting for the device.
    """
    xp = get_array_module(distances)
    alike = labels[:, None] == labels[None, :]
    positive = alike & ~numpy.eye(len(labels), dtype=bool)
    anchors = xp.asarray(numpy.flatnonzero(positive.any(axis=1) & ~alike.all(axis=1)))
    farthest = xp.where(xp.asarray(positive), distances, -xp.inf).argmax(axis=1)
    nearest = xp.where(xp.asarray(alike), xp.inf, distances).argmin(axis=1)
    return [anchors, farthest[anchors], nearest[anchors]]


def _pairwise_euclidean(X: Floats2d) -> Floats2d:
    """Return the square of the distance of each row to each, up to a factor."""
    xp = get_array_module(X)
    x = xp.asarray(X, dtype="float64")  # float32 would leave only rounding errors of long vectors near each other
    longest = abs(x).max()
    x = x / xp.where(longest == 0, 1.0, longest)
    squares = (x * x).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2 * x @ x.T


def _pairwise_cosine(X: Floats2d) -> Floats2d:
    """Return the cosine distance of each row to each, less 1."""
    unit, _ = unit_rows(X, True)
    return -unit @ unit.T


def _pairwise_manhattan(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    distances = xp.zeros((len(X), len(X)), dtype=X.dtype)
    for column in xp.asarray(X.T):  # (n, n) in memory, not (n, n, width)
        distances += abs(column[:, None] - column[None, :])
    return distances


_PAIRWISE: dict[str, Callable[[Floats2d], Floats2d]] = {  # (n, width) to (n, n), in the order of the distances
    "euclidean": _pairwise_euclidean,
    "cosine": _pairwise_cosine,
    "manhattan": _pairwise_manhattan,
}
