"""The ranking objective: pairs are to be as similar, relative to each other, as their gold scores say."""

from functools import partial

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats1d

from ..validation import PositiveFloat, validated
from ._common import Backprop, LossLayer, Members, Paired, check_inputs, paired_cosine, rank_pairs


@registry.layers("spacy-sbert.CoSENTLoss.v1")
@validated
def CoSENTLoss(scale: PositiveFloat = 20.0) -> Model[tuple[Members, Floats1d], float]:
    """A soft count of the pairs of pairs whose cosines stand in another order than their gold scores.

    loss = log(1 + sum_{i, j: y_i > y_j} exp(scale (s_j - s_i))),   s_i = cos(u_i, v_i)

    scale (float): the inverse of the temperature.
    Input: [u, v], each float (n, width), and y, float (n,), the gold scores, of which only the order counts.
    Output: the loss, a float, 0 where no two gold scores differ. Its backprop takes a factor on the loss and returns
        [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows.
    SOURCE: Huang et al. 2024 (CoSENT).
    """
    settings = partial(forward, similarity=paired_cosine, scale=scale)
    return LossLayer("CoSENTLoss", settings, n_members=[2], gold="score", whole_batch=True)


def forward(
    model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool, *, similarity: Paired, scale: float
) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    similarities, back_to_members = similarity(*members)
    value, d_similarities = rank_pairs(similarities, gold, scale)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(d_similarities * d_loss)

    return value, backprop
