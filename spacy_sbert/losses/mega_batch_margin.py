"""The margin objective with the hardest negative of a large batch."""

from functools import partial
from typing import Any

import numpy
from spacy.util import registry
from thinc.types import Floats2d, Ints1d, Ints2d
from thinc.util import get_array_module

from ..errors import Errors
from ..validation import NonNegativeFloat, validated
from ._common import Backprop, LossLayer, Members, check_inputs, cosine_distance, label_encode, unit_rows
from .multiple_negatives_ranking import false_negatives
from .triplet import triplet_hinge


@registry.layers("spacy-sbert.MegaBatchMarginLoss.v1")
@validated
def MegaBatchMarginLoss(margin: NonNegativeFloat = 0.4) -> LossLayer:
    """Penalize the most similar wrong positive of the batch if it is not a margin less similar than the right one.

    loss = 1/n sum_i max(margin - cos(a_i, p_i) + cos(a_i, p_(t_i)), 0),   t_i = argmax_(j wrong for i) cos(a_i, p_j)

    Wrong are all but those known to be right, too, as in MultipleNegativesRankingLoss; a pair without a wrong one
    counts nothing. The larger the batch, the harder the negatives: a batch of hundreds of pairs is a mega-batch of the
    source, and one step here.

    margin (float): by how much the right one should be more similar.
    Input: [a, p], each float (n, width), and the texts, list[list[str]], n of each member.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [da, dp].
    RAISES (ValueError): if members and texts do not have the same number of rows, or the batch is one pair.
    SOURCE: Wieting and Gimpel 2018 (ParaNMT-50M), section 4.
    """
    forward = partial(_forward, margin=margin)
    return LossLayer("MegaBatchMarginLoss", forward, n_members=[2], gold="text", whole_batch=True)


def _forward(
    model: LossLayer, inputs: tuple[Members, list[list[str]]], is_train: bool, *, margin: float
) -> tuple[float, Backprop]:
    members, texts = inputs
    check_inputs(model, members, *map(len, texts))
    anchors, positives = members
    n = len(anchors)
    if n < 2:
        raise ValueError(Errors.NO_NEGATIVES.format(loss=model.name))
    xp = get_array_module(anchors)
    rows, hardest = _hardest_negatives(anchors, positives, label_encode(texts, numpy))
    if not len(rows):
        return 0.0, lambda d_loss=1.0: [xp.zeros_like(member) for member in members]
    triplets = anchors[rows], positives[rows], positives[hardest]
    value, back_to_triplets = triplet_hinge(*triplets, measure=cosine_distance, margin=margin)

    def backprop(d_loss: float = 1.0) -> Members:
        d_rows, d_positive, d_negative = back_to_triplets(d_loss * len(rows) / n)
        d_anchors, d_positives = (xp.zeros_like(member) for member in members)
        d_anchors[rows], d_positives[rows] = d_rows, d_positive
        picked = (xp.arange(n)[:, None] == xp.expand_dims(hardest, 0)).astype(anchors.dtype)  # rows repeat, so sum them
        return [d_anchors, d_positives + picked @ d_negative]

    return value * len(rows) / n, backprop


def _hardest_negatives(anchors: Floats2d, positives: Floats2d, ids: Ints2d) -> tuple[Ints1d, Ints1d]:
    """Return the anchors that have a wrong positive, and the most similar of these.

    ids (int (2, n)): equal numbers for equal texts, on the host, so that the anchors are known without waiting for the
        device.
    RETURNS (int (m,), int (m,)): rows of both.
    """
    xp = get_array_module(anchors)
    (unit_anchors, _), (unit_positives, _) = unit_rows(anchors, True), unit_rows(positives, True)
    all_rows: Any = numpy.arange(len(anchors))
    right = false_negatives(ids, all_rows) | numpy.eye(len(anchors), dtype=bool)
    similar = xp.where(xp.asarray(right), -xp.inf, unit_anchors @ unit_positives.T)
    rows = xp.asarray(numpy.flatnonzero(~right.all(axis=1)))
    return rows, similar[rows].argmax(axis=1)
