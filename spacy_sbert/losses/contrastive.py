"""Objectives of distances: contrastive and triplet losses.

Alike texts should be near, unlike ones a margin apart.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy
from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..validation import SCORE_RANGE, NonNegativeFloat, validated
from ._common import (
    DISTANCES,
    Distance,
    LossAndBackprop,
    LossLayer,
    Members,
    PairedFunction,
    mean_square,
    normalize,
    pair_loss,
)


@validated
def ContrastiveLoss(distance: Distance = "cosine", margin: NonNegativeFloat = 0.5) -> LossLayer:
    """Mean squared distance of alike pairs, and squared shortfall of unlike pairs from the margin.

    loss = 1/2n sum_i [y_i d_i^2 + (1 - y_i) max(margin - d_i, 0)^2],   d_i = d(u_i, v_i)

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): how far apart an unlike pair should be.
    Input: [u, v], each float (n, width), and y, float (n,), 1 for an alike pair and 0 for an unlike
        one.
    SOURCE: Hadsell, Chopra and LeCun 2006, section 2.1.
    """
    loss = partial(_contrastive, margin=margin, is_online=False)
    return pair_loss("ContrastiveLoss", DISTANCES[distance], loss, score_range=SCORE_RANGE)


@validated
def OnlineContrastiveLoss(
    distance: Distance = "cosine", margin: NonNegativeFloat = 0.5
) -> LossLayer:
    """ContrastiveLoss of the pairs that are hard to tell, summed, and without its 1/2.

    loss = sum_{i alike, d_i > min d of the unlike} d_i^2
         + sum_{i unlike, d_i < max d of the alike} max(margin - d_i, 0)^2,   d_i = d(u_i, v_i)

    If a batch has fewer than two pairs of the other kind, the mean d of the own kind is the bound.

    distance, margin, input, errors: as of ContrastiveLoss.
    SOURCE: Hadsell, Chopra and LeCun 2006, section 2.1; the choice of hard pairs is that of
        sentence-transformers.
    """
    return pair_loss(
        "OnlineContrastiveLoss",
        DISTANCES[distance],
        partial(_contrastive, margin=margin, is_online=True),
        score_range=SCORE_RANGE,
        whole_batch=True,
        is_sum=True,
    )


def _contrastive(
    model: LossLayer, distance: Floats1d, gold: Floats1d, *, margin: float, is_online: bool
) -> tuple[float, Callable[[float], Floats1d]]:
    xp = get_array_module(distance)
    alike = gold == 1
    # Minus the shortfall of unlike pairs; nan if the gold is neither 0 nor 1. All are (n,)
    short = xp.where(gold == 0, -xp.maximum(margin - distance, 0), xp.nan)
    errors = xp.where(alike, distance, short)
    if is_online:
        nearest_unlike = xp.where(alike, xp.inf, distance).min()
        farthest_alike = xp.where(alike, distance, -xp.inf).max()
        is_far = alike & (distance > _bound(distance, alike, nearest_unlike))
        is_near = ~alike & (distance < _bound(distance, ~alike, farthest_alike))
        errors = errors * (is_far | is_near).astype(distance.dtype)
    value = mean_square(errors, "sum") if is_online else mean_square(errors) / 2
    # The gold is only looked at if the loss is not a number: the host would wait for the device
    if math.isnan(value):
        for score in gold[(gold != 0) & (gold != 1)].tolist():
            raise ValueError(
                f"The loss '{model.name}' expects gold scores of 0 or 1 (alike), got {score}."
            )

    def derivative(d_loss: float) -> Floats1d:
        factor = d_loss if is_online else d_loss / (2 * len(gold))
        return 2 * errors * factor

    return value, derivative


def _bound(distance: Floats1d, kind: Floats1d, extreme: Floats1d) -> Floats1d:
    """Return the extreme distance of the other kind.

    If that has fewer than two, the mean of this kind.
    """
    # They are counted on the device, for which the host does not wait
    xp = get_array_module(distance)
    mean = xp.where(kind, distance, 0).sum() / xp.maximum(xp.sum(kind), 1).astype(distance.dtype)
    return xp.where(xp.sum(~kind) > 1, extreme, mean)


@validated
def TripletLoss(distance: Distance = "euclidean", margin: NonNegativeFloat = 1.0) -> LossLayer:
    """Penalize a negative that is not a margin farther from the anchor than the positive.

    loss = 1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0)

    distance (str): d, as of ContrastiveLoss. margin (float): by how much the negative should be
        farther.
    Input: [a, p, n], each float (n, width): anchors, positives, negatives; and None.
    SOURCE: Reimers and Gurevych 2019, section 3 (Triplet Objective Function).
    """
    return LossLayer(
        "TripletLoss",
        partial(_triplets, distance=distance, margin=margin),
        n_members=[3],
        gold=None,
    )


def _triplets(
    model: LossLayer, inputs: tuple[Members, None], is_train: bool, *, distance: str, margin: float
) -> LossAndBackprop:
    model.check_inputs(inputs[0])
    return _triplet_hinge(*inputs[0], measure=DISTANCES[distance], margin=margin)


def _triplet_hinge(
    anchor: Floats2d,
    positive: Floats2d,
    negative: Floats2d,
    *,
    measure: PairedFunction,
    margin: float,
) -> LossAndBackprop:
    """Return 1/n sum_i max(d(a_i, p_i) - d(a_i, n_i) + margin, 0), and its backprop."""
    near, back_from_near = measure(anchor, positive)
    far, back_from_far = measure(anchor, negative)
    # (n,)
    short = near - far + margin

    def backprop(d_loss: float = 1.0) -> Members:
        d_short = (short > 0).astype(anchor.dtype) * (d_loss / len(anchor))
        d_anchor, d_positive = back_from_near(d_short)
        d_anchor_from_far, d_negative = back_from_far(-d_short)
        return [d_anchor + d_anchor_from_far, d_positive, d_negative]

    return float(get_array_module(anchor).maximum(short, 0).mean()), backprop


@validated
def BatchHardTripletLoss(
    distance: Distance = "euclidean", margin: NonNegativeFloat = 5.0
) -> LossLayer:
    """TripletLoss of each text with the farthest text of its label and the nearest text of another.

    loss = mean_i max(max_{j != i: y_j = y_i} d(x_i, x_j) - min_{k: y_k != y_i} d(x_i, x_k) +
    margin, 0)

    The mean is over the texts that have both; the loss is 0 if none has.

    distance (str): d, as of ContrastiveLoss. margin (float): by how much texts of another label
        should be farther.
    Input: [x], float (n, width), and y, list[str] of n labels.
    SOURCE: Hermans, Beyer and Leibe 2017, section 2 (Batch Hard).
    """
    forward = partial(_batch_hard, distance=distance, margin=margin)
    return LossLayer("BatchHardTripletLoss", forward, n_members=[1], gold="label", whole_batch=True)


def _batch_hard(
    model: LossLayer,
    inputs: tuple[Members, list[str]],
    is_train: bool,
    *,
    distance: str,
    margin: float,
) -> LossAndBackprop:
    members, labels = inputs
    model.check_inputs(members, len(labels))
    X = members[0]
    triplets = _hardest_triplets(_PAIRWISE[distance](X), label_encode([labels])[0])
    return hinge_of_rows(X, triplets, measure=DISTANCES[distance], margin=margin)


def hinge_of_rows(
    X: Floats2d, triplets: Sequence[Ints1d], *, measure: PairedFunction, margin: float
) -> LossAndBackprop:
    """Return the loss of TripletLoss for rows of X, 0 for no triplets, and its backprop to X.

    triplets (three of int (m,)): rows of anchors, positives and negatives, which may repeat.
    """
    xp = get_array_module(X)
    if not len(triplets[0]):
        return 0.0, lambda d_loss=1.0: [xp.zeros_like(X)]
    value, back_to_triplets = _triplet_hinge(
        *(X[rows] for rows in triplets), measure=measure, margin=margin
    )

    def backprop(d_loss: float = 1.0) -> Members:
        dX = xp.zeros_like(X)
        for rows, d in zip(triplets, back_to_triplets(d_loss), strict=True):
            picked = (xp.arange(len(X))[:, None] == xp.expand_dims(rows, 0)).astype(X.dtype)
            dX += picked @ d
        return [dX]

    return value, backprop


def _hardest_triplets(distances: Floats2d, labels: Any) -> list[Ints1d]:
    """Return anchors, the farthest positive and the nearest negative of each.

    Only rows that have a positive and a negative are anchors.

    distances: (n, n). labels: on the host, so that anchors are known at once.
    """
    xp = get_array_module(distances)
    alike = labels[:, None] == labels[None, :]
    positive = alike & ~numpy.eye(len(labels), dtype=bool)
    anchors = xp.asarray(numpy.flatnonzero(positive.any(axis=1) & ~alike.all(axis=1)))
    farthest = xp.where(xp.asarray(positive), distances, -xp.inf).argmax(axis=1)
    nearest = xp.where(xp.asarray(alike), xp.inf, distances).argmin(axis=1)
    return [anchors, farthest[anchors], nearest[anchors]]


def label_encode(rows: Iterable[Iterable[str]]) -> Any:
    """Return a number for each string of rows of one length, equal for equal strings."""
    numbers: dict[str, int] = {}
    encoded = [[numbers.setdefault(text, len(numbers)) for text in row] for row in rows]
    return numpy.array(encoded, dtype="i")


def _pairwise_euclidean(X: Floats2d) -> Floats2d:
    """Return the square of the distance of each row to each, up to a factor."""
    xp = get_array_module(X)
    # float32 would leave only rounding errors of long vectors near each other
    x = xp.asarray(X, dtype="float64")
    longest = abs(x).max()
    x = x / xp.where(longest == 0, 1.0, longest)
    squares = (x * x).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2 * x @ x.T


def _pairwise_cosine(X: Floats2d) -> Floats2d:
    """Return the cosine distance of each row to each, less 1."""
    unit, _ = normalize(X, True)
    return -unit @ unit.T


def _pairwise_manhattan(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    distances = xp.zeros((len(X), len(X)), dtype=X.dtype)
    # (n, n) in memory, not (n, n, width)
    for column in xp.asarray(X.T):
        distances += abs(column[:, None] - column[None, :])
    return distances


# (n, width) to (n, n), in the order of the distances
_PAIRWISE: dict[str, Callable[[Floats2d], Floats2d]] = {
    "euclidean": _pairwise_euclidean,
    "cosine": _pairwise_cosine,
    "manhattan": _pairwise_manhattan,
}
