"""The contrastive objectives: alike pairs should be near, unlike pairs at least a margin apart."""

import math
from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats1d
from thinc.util import get_array_module

from ..validation import SCORE_RANGE, NonNegativeFloat, validated
from ._common import DISTANCES, Backprop, LossLayer, Members, PairedFunction, check_inputs, choose, mean_square

_Inputs = tuple[Members, Floats1d]


@registry.layers("spacy-sbert.ContrastiveLoss.v1")
@validated
def ContrastiveLoss(distance: str = "cosine", margin: NonNegativeFloat = 0.5) -> LossLayer:
    """Mean squared distance of alike pairs, and squared shortfall of unlike pairs from the margin.

    loss = 1/2n sum_i [y_i d_i^2 + (1 - y_i) max(margin - d_i, 0)^2],   d_i = d(u_i, v_i)

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): how far apart an unlike pair should be.
    Input: [u, v], each float (n, width), and y, float (n,), 1 for an alike pair and 0 for an unlike one.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [du, dv].
    RAISES (ValueError): if the distance is unknown, u, v and y do not have the same number of rows, or a gold value is
        neither 0 nor 1.
    SOURCE: Hadsell, Chopra and LeCun 2006, section 2.1.
    """
    measure = choose(DISTANCES, distance, loss="ContrastiveLoss", setting="distance")
    forward = partial(_contrastive, measure=measure, margin=margin)
    return LossLayer("ContrastiveLoss", forward, n_members=[2], gold="score", score_range=SCORE_RANGE)


def _contrastive(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, measure: PairedFunction, margin: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    distance, back_to_members = measure(*members)
    errors = _errors(distance, gold, margin)
    value = mean_square(errors) / 2
    _check_binary(model, gold, value)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(2 * errors * (d_loss / (2 * len(gold))))

    return value, backprop


def _errors(distance: Floats1d, gold: Floats1d, margin: float) -> Floats1d:
    """Return d of alike pairs, -max(margin - d, 0) of unlike ones, NaN of pairs that are neither, (n,)."""
    xp = get_array_module(distance)
    return xp.where(gold == 1, distance, xp.where(gold == 0, -xp.maximum(margin - distance, 0), xp.nan))


def _check_binary(model: Model, gold: Floats1d, value: float) -> None:
    """Check that all gold values are 0 or 1.

    They are only looked at if the loss, value, is not a number: the host would wait for the device.

    RAISES (ValueError): if one is neither.
    """
    if not math.isnan(value):
        return
    wrong = gold[(gold != 0) & (gold != 1)]
    if len(wrong):
        raise ValueError(
            f"The loss '{model.name}' expects gold scores of 0 (unlike) or 1 (alike), got {float(wrong[0])}."
        )


@registry.layers("spacy-sbert.OnlineContrastiveLoss.v1")
@validated
def OnlineContrastiveLoss(distance: str = "cosine", margin: NonNegativeFloat = 0.5) -> LossLayer:
    """ContrastiveLoss of the pairs that are hard to tell, summed rather than averaged, and without its 1/2.

    loss = sum_{i alike, d_i > min d of the unlike} d_i^2
         + sum_{i unlike, d_i < max d of the alike} max(margin - d_i, 0)^2,   d_i = d(u_i, v_i)

    If a batch has fewer than two pairs of the other kind, the mean d of the own kind is the bound.

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): how far apart an unlike pair should be.
    Input: [u, v], each float (n, width), and y, float (n,), 1 for an alike pair and 0 for an unlike one.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [du, dv].
    RAISES (ValueError): if the distance is unknown, u, v and y do not have the same number of rows, or a gold value is
        neither 0 nor 1.
    SOURCE: Hadsell, Chopra and LeCun 2006, section 2.1; the choice of hard pairs is that of sentence-transformers.
    """
    measure = choose(DISTANCES, distance, loss="OnlineContrastiveLoss", setting="distance")
    return LossLayer(
        "OnlineContrastiveLoss",
        partial(_online_contrastive, measure=measure, margin=margin),
        n_members=[2],
        gold="score",
        score_range=SCORE_RANGE,
        whole_batch=True,
        is_sum=True,
    )


def _online_contrastive(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, measure: PairedFunction, margin: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    distance, back_to_members = measure(*members)
    xp, alike = get_array_module(distance), gold == 1
    far = alike & (distance > _bound(distance, alike, xp.where(alike, xp.inf, distance).min()))
    near = ~alike & (distance < _bound(distance, ~alike, xp.where(alike, distance, -xp.inf).max()))
    hard = (far | near).astype(distance.dtype)
    errors = _errors(distance, gold, margin) * hard
    value = mean_square(errors, "sum")
    _check_binary(model, gold, value)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(2 * errors * d_loss)

    return value, backprop


def _bound(distance: Floats1d, kind: Floats1d, extreme: Floats1d) -> Floats1d:
    """Return the distance beyond which pairs of a kind are hard, ().

    It is the extreme of the other kind, or the mean of this kind if there are fewer than two pairs of the other. They
    are counted on the device, for which the host does not wait.
    """
    xp = get_array_module(distance)
    mean = xp.where(kind, distance, 0).sum() / xp.maximum(xp.sum(kind), 1).astype(distance.dtype)
    return xp.where(xp.sum(~kind) > 1, extreme, mean)
