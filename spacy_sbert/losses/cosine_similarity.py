"""The regression objective: the cosine of a pair should be its gold similarity."""

from spacy.util import registry
from thinc.types import Floats1d

from ..validation import SCORE_RANGE
from ._common import Backprop, LossLayer, Members, check_inputs, mean_square, paired_cosine


@registry.layers("spacy-sbert.CosineSimilarityLoss.v1")
def CosineSimilarityLoss() -> LossLayer:
    """Mean squared error between the cosine of u and v and the gold similarity of each pair.

    loss = 1/n sum_i (cos(u_i, v_i) - y_i)^2

    Input: [u, v], each float (n, width), and y, float (n,), the gold similarities, usually from 0 to 1.
    Output: the loss, a float. Its backprop takes a factor on the loss and returns [du, dv].
    RAISES (ValueError): if u, v and y do not have the same number of rows.
    SOURCE: Reimers and Gurevych 2019, section 3 (Regression Objective Function).
    """
    return LossLayer("CosineSimilarityLoss", _forward, n_members=[2], gold="score", score_range=SCORE_RANGE)


def _forward(model: LossLayer, inputs: tuple[Members, Floats1d], is_train: bool) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    similarity, back_to_members = paired_cosine(*members)
    error = similarity - gold  # (n,)

    def backprop(d_loss: float = 1.0) -> Members:
        return back_to_members(2 * error * d_loss / len(gold))

    return mean_square(error), backprop
