"""The triplet objective over the hardest triplets that a batch of labelled texts holds."""

from functools import partial
from typing import Any

import numpy
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ints1d
from thinc.util import get_array_module

from ..validation import NonNegativeFloat, validated
from ._common import DISTANCES, Backprop, LossLayer, Members, check_inputs, choose, label_encode, pairwise_distances
from .triplet import triplet_hinge

Inputs = tuple[Members, list[str]]


@registry.layers("spacy-sbert.BatchHardTripletLoss.v1")
@validated
def BatchHardTripletLoss(distance: str = "euclidean", margin: NonNegativeFloat = 5.0) -> Model[Inputs, float]:
    """TripletLoss of each text with the farthest text of its label and the nearest text of another.

    loss = mean_i max(max_{j != i: y_j = y_i} d(x_i, x_j) - min_{k: y_k != y_i} d(x_i, x_k) + margin, 0)

    The mean is over the texts that have both.

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): by how much the texts of another label are to be farther.
    Input: [x], float (n, width), and y, list[str] of n labels.
    Output: the loss, a float, 0 if no text has both. Its backprop takes a factor on the loss and returns [dx].
    RAISES (ValueError): if the distance is unknown, or x and y do not have the same number of rows.
    SOURCE: Hermans, Beyer and Leibe 2017, section 2 (Batch Hard).
    """
    choose(DISTANCES, distance, loss="BatchHardTripletLoss", setting="distance")
    settings = partial(forward, distance=distance, margin=margin)
    return LossLayer("BatchHardTripletLoss", settings, n_members=[1], gold="label", whole_batch=True)


def forward(
    model: LossLayer, inputs: Inputs, is_train: bool, *, distance: str, margin: float
) -> tuple[float, Backprop]:
    members, labels = inputs
    check_inputs(model, members, len(labels))
    X = members[0]
    xp = get_array_module(X)
    triplets = hardest_triplets(pairwise_distances(X, distance), label_encode([labels], numpy)[0])
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


def hardest_triplets(far: Floats2d, labels: Any) -> list[Ints1d]:
    """The anchors that have a positive and a negative, the farthest positive and the nearest negative of each.

    labels (int (n,)): on the host, which then knows the anchors without waiting for the device.
    """
    xp = get_array_module(far)
    alike = labels[:, None] == labels[None, :]
    positive = alike & ~numpy.eye(len(labels), dtype=bool)
    anchors = xp.asarray(numpy.flatnonzero(positive.any(axis=1) & ~alike.all(axis=1)))
    farthest = xp.where(xp.asarray(positive), far, -xp.inf).argmax(axis=1)
    nearest = xp.where(xp.asarray(alike), xp.inf, far).argmin(axis=1)
    return [anchors, farthest[anchors], nearest[anchors]]
