"""The distillation objectives: vectors, or similarities, should be those of a teacher."""

import sys
from functools import partial

from thinc.api import uniform_init
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..validation import NonNegativeFloat, validated
from ._common import LossAndBackprop, LossLayer, Members, Similarity, compared, mean_square

_Inputs = tuple[Members, Floats2d]


def DistillationLoss() -> LossLayer:
    """Mean squared error between the teacher's vector of an example and those of its members.

    loss = 1/(M n width) sum_m sum_i ||x_mi - t_i||^2

    Input: [x] or [x_1, x_2], such as a text and its translation, and t, the teacher's vectors, each
        float (n, width).
    SOURCE: Reimers and Gurevych 2020, section 2.
    """
    return LossLayer("DistillationLoss", _distillation, n_members=[1, 2], gold="vector")


def _distillation(model: LossLayer, inputs: _Inputs, is_train: bool) -> LossAndBackprop:
    members, teacher = inputs
    model.check_inputs(members, len(teacher))
    for member in members:
        if member.shape[1] != teacher.shape[1]:
            raise ValueError(
                f"The vectors to learn are {member.shape[1]} wide, the teacher's are "
                f"{teacher.shape[1]} wide. Choose a teacher of the same width, or "
                f"spacy-sbert.ProjectedDistillationLoss.v1 in place of '{model.name}'."
            )
    return _mean_squared_error(members, teacher)


def _mean_squared_error(members: Members, teacher: Floats2d) -> LossAndBackprop:
    """Return the mean squared error over all members, and its backprop.

    Each of them is float (n, width), as the teacher.
    """
    errors = get_array_module(teacher).stack(members) - teacher

    def backprop(d_loss: float = 1.0) -> Members:
        return list(errors * (2 * d_loss / errors.size))

    return mean_square(errors), backprop


@validated
def ProjectedDistillationLoss(learn_rate_factor: NonNegativeFloat = 1.0) -> LossLayer:
    """Mean squared error between the teacher's vectors and a projection of those to learn.

    The projection is linear, and is trained too.

    loss = 1/(M n nO) sum_m sum_i ||W x_mi - t_i||^2

    learn_rate_factor (float): how many times faster than the encoder W learns.
    Input: [x] or [x_1, x_2], each float (n, nI), and t, float (n, nO), the teacher's vectors.
        The backprop also adds to the gradient of W, float (nO, nI).
    RAISES (ValueError): if the layer was not initialized, or for other widths.
    SOURCE: Jiao et al. 2020, TinyBERT, section 3 (hidden states based distillation).
    """
    return LossLayer(
        "ProjectedDistillationLoss",
        _projected_distillation,
        init=_init,
        n_members=[1, 2],
        gold="vector",
        dims={"nO": None, "nI": None},
        params={"W": None},
        learn_rate_factor=learn_rate_factor,
    )


def _init(model: LossLayer, X: _Inputs | None = None, Y: None = None) -> None:
    """Draw W for the widths of the members and of the teacher."""
    if X is None:
        return
    members, teacher = X
    nO = teacher.shape[1]
    nI = members[0].shape[1]
    model.set_dim("nO", nO)
    model.set_dim("nI", nI)
    if not model.has_param("W"):
        model.set_param("W", uniform_init(model.ops, (nO, nI), lo=-(nI**-0.5), hi=nI**-0.5))


def _projected_distillation(model: LossLayer, inputs: _Inputs, is_train: bool) -> LossAndBackprop:
    members, teacher = inputs
    model.check_inputs(members, len(teacher))
    widths = (teacher.shape[1], members[0].shape[1])
    known = model.get_param("W").shape if model.has_param("W") else "none"
    if known != widths:
        raise ValueError(
            f"The projection of the loss '{model.name}' has the widths {known} (teacher, encoder), "
            f"and the batch {widths}. Call nlp.initialize with examples of the teacher, or build a "
            "new pipe for another teacher."
        )
    W = model.get_param("W")
    value, back_to_projected = _mean_squared_error([member @ W.T for member in members], teacher)

    def backprop(d_loss: float = 1.0) -> Members:
        d_projected = back_to_projected(d_loss)
        for member, d in zip(members, d_projected, strict=True):
            model.inc_grad("W", d.T @ member)
        return [d @ W for d in d_projected]

    return value, backprop


@validated
def MarginMSELoss(similarity: Similarity = "dot") -> LossLayer:
    """Mean squared error between the margins of similarities and those of a teacher's scores.

    A margin is how much more similar to its query the positive is than a negative.

    loss = 1/(n k) sum_i sum_j ((s(q_i, p_i) - s(q_i, n_ij)) - (t_i0 - t_ij))^2

    similarity (str): s, "dot" or "cosine".
    Input: [q, p, n_1 .. n_k], each float (n, width), and the teacher's scores t of p and of each
        n_j, float (n, k + 1). Of margins m_j alone these are 0, -m_1 .. -m_k.
    RAISES (ValueError): for another number of scores.
    SOURCE: Hofstätter et al. 2020 (Improving Efficient Neural Ranking Models with
        Cross-Architecture Knowledge Distillation), section 3.
    """
    forward = partial(_margin_mse, similarity=similarity)
    return LossLayer("MarginMSELoss", forward, n_members=range(3, sys.maxsize), gold="scores")


def _margin_mse(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, similarity: Similarity
) -> LossAndBackprop:
    members, gold = inputs
    model.check_inputs(members, len(gold))
    (queries, *others), back_to_members = compared(members, similarity)
    if gold.shape[1] != len(others):
        raise ValueError(
            f"The loss '{model.name}' takes {len(others)} scores of each example: of the positive "
            f"and of each negative. Got {gold.shape[1]}."
        )
    xp = get_array_module(queries)
    # (k + 1, n, width)
    answers = xp.stack(others)
    differences = (queries * answers).sum(axis=2) - gold.T
    errors = differences[0] - differences[1:]

    def backprop(d_loss: float = 1.0) -> Members:
        d_margins = errors * (2 * d_loss / errors.size)
        d_scores = xp.concatenate([d_margins.sum(axis=0, keepdims=True), -d_margins])
        d_scores = xp.expand_dims(d_scores, 2)
        return back_to_members([(d_scores * answers).sum(axis=0), *(d_scores * queries)])

    return mean_square(errors), backprop
