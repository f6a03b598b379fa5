"""The contrastive objective: alike pairs are to be near, unlike pairs at least a margin apart."""

import math
from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats1d
from thinc.util import get_array_module

from ..validation import SCORE_RANGE, NonNegativeFloat, validated
from ._common import DISTANCES, Backprop, LossLayer, Members, Paired, check_inputs, choose, mean_square


@registry.layers("spacy-sbert.ContrastiveLoss.v1")
@validated
def ContrastiveLoss(distance: str = "cosine", margin: NonNegativeFloat = 0.5) -> Model[tuple[Members, Floats1d], float]:
    """The squared distance of alike pairs, and the squared shortfall of unlike pairs from the margin.

    loss = 1/2n sum_i [y_i d_i^2 + (1 - y_i) max(margin - d_i, 0)^2],   d_i = d(u_i, v_i)

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): how far apart an unlike pair is to be.
    Input: [u, v], each float (n, width), and y, float (n,), 1 for an alike pair and 0 for an unlike one.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [du, dv].
    RAISES (ValueError): if the distance is unknown, u, v and y do not have the same number of rows, or a gold value is
        neither 0 nor 1.
    SOURCE: Hadsell, Chopra and LeCun 2006, section 2.1.
    """
    measure = choose(DISTANCES, distance, loss="ContrastiveLoss", setting="distance")
    settings = partial(_contrastive, measure=measure, margin=margin)
    return LossLayer("ContrastiveLoss", settings, n_members=[2], gold="score", score_range=SCORE_RANGE)


def _contrastive(
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, measure: Paired, margin: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    distance, back_to_members = measure(*members)
    off = strains(distance, gold, margin)
    value = mean_square(off) / 2
    check_binary(model, gold, value)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(2 * off * (d_loss / (2 * len(gold))))

    return value, backprop


def strains(distance: Floats1d, gold: Floats1d, margin: float) -> Floats1d:
    """d of alike pairs, -max(margin - d, 0) of unlike ones, (n,): what is squared, and grows with d; NaN of pairs that
    are neither."""
    xp = get_array_module(distance)
    return xp.where(gold == 1, distance, xp.where(gold == 0, -xp.maximum(margin - distance, 0), xp.nan))


def check_binary(model: Model, gold: Floats1d, value: float) -> None:
    """RAISES (ValueError): if a gold value is neither 0 nor 1. Then the loss of strains, value, is no number: else gold
    values are not looked at, for which the host would wait."""
    if not math.isnan(value):
        return
    wrong = gold[(gold != 0) & (gold != 1)]
    if len(wrong):
        raise ValueError(
            f"The loss '{model.name}' expects gold scores of 0 (unlike) or 1 (alike), got {float(wrong[0])}."
        )


@registry.layers("spacy-sbert.OnlineContrastiveLoss.v1")
@validated
def OnlineContrastiveLoss(
    distance: str = "cosine", margin: NonNegativeFloat = 0.5
) -> Model[tuple[Members, Floats1d], float]:
    """ContrastiveLoss of the pairs that are hard to tell, summed rather than averaged, and without its 1/2.

    loss = sum_{i alike, d_i > min d of the unlike} d_i^2
         + sum_{i unlike, d_i < max d of the alike} max(margin - d_i, 0)^2,   d_i = d(u_i, v_i)

    Where a batch has fewer than two pairs of the other kind, the mean d of the own kind is the bound.

    distance (str): d, "euclidean" | "cosine" (1 - cos) | "manhattan".
    margin (float): how far apart an unlike pair is to be.
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
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, measure: Paired, margin: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    distance, back_to_members = measure(*members)
    xp, alike = get_array_module(distance), gold == 1
    far = alike & (distance > _bound(distance, alike, xp.where(alike, xp.inf, distance).min()))
    near = ~alike & (distance < _bound(distance, ~alike, xp.where(alike, distance, -xp.inf).max()))
    hard = (far | near).astype(distance.dtype)
    off = strains(distance, gold, margin) * hard
    value = mean_square(off, "sum")
    check_binary(model, gold, value)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(2 * off * d_loss)

    return value, backprop


def _bound(distance: Floats1d, own: Floats1d, extreme: Floats1d) -> Floats1d:
    """What an own distance is hard beyond, (): the extreme of the other kind, or a stand-in if that says little. How
    many there are of a kind is not asked: the host would wait for it."""
    xp = get_array_module(distance)
    mean = xp.where(own, distance, 0).sum() / xp.maximum(xp.sum(own), 1).astype(distance.dtype)
    return xp.where(xp.sum(~own) > 1, extreme, mean)
