"""The classification objective: the label of a pair should be predictable from its two vectors."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from thinc.api import Model, uniform_init
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..similarity import RowsT
from ..validation import NonNegativeFloat, validated
from ._common import LossAndBackprop, LossLayer, Members, cross_entropy, label_indices, softmax

_Inputs = tuple[Members, list[str]]
_Part = Literal["u", "v", "abs_diff", "product"]
# The same with u and v exchanged
SYMMETRIC = ("abs_diff", "product")


@validated
def SoftmaxLoss(
    concatenation: Sequence[_Part] = ("u", "v", "abs_diff"),
    learn_rate_factor: NonNegativeFloat = 1.0,
) -> LossLayer:
    """Cross-entropy of a linear classifier of pairs.

    The classifier is trained and saved with the loss.

    loss = -1/n sum_i log softmax(W [u_i; v_i; |u_i - v_i|] + b)[y_i]

    concatenation (Sequence[str]): the features of a pair, any of "u", "v", "abs_diff" (|u - v|) and
        "product" (u * v) in any order.
    learn_rate_factor (float): how many times faster than the encoder W and b learn.
    Input: [u, v], each float (n, width), and y, list[str] of n labels. The backprop also adds to
        the gradients of W, float (nO, nI), and b, float (nO,), where nO is the number of labels and
        nI that of features.
    RAISES (ValueError): if the concatenation is empty or names a part twice; if the layer was not
        initialized, or for other labels, another width or concatenation.
    SOURCE: Reimers and Gurevych 2019, section 3 (Classification Objective Function) and Table 6
        (Concatenation).
    """
    parts = list(concatenation)
    if not parts or len(set(parts)) < len(parts):
        raise ValueError(
            f"The loss 'SoftmaxLoss' cannot work with concatenation = {parts}: expected parts, "
            "each once."
        )
    return LossLayer(
        "SoftmaxLoss",
        partial(_forward, parts=parts),
        init=partial(_init, parts=parts),
        n_members=[2],
        gold="label",
        # saved: what W was made for
        attrs={"labels": [], "concatenation": parts},
        dims={"nO": None, "nI": None},
        params={"W": None, "b": None},
        learn_rate_factor=learn_rate_factor,
    )


def _init(
    model: LossLayer, X: _Inputs | None = None, Y: None = None, *, parts: Sequence[str]
) -> None:
    """Draw W and b from the uniform distribution of torch.nn.Linear.

    Their shapes follow from the labels and the width of the examples.
    """
    if X is None:
        return
    members, gold = X
    labels = sorted(set(gold))
    known = model.attrs["labels"]
    given = ", ".join(labels) or "none"
    if known and labels != known:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was made for the labels "
            f"{', '.join(known)}, and cannot be initialized for {given}. Build a new pipe."
        )
    if len(labels) < 2:
        raise ValueError(
            f"The loss '{model.name}' needs at least two labels, got {given}. Name more to "
            "initialize it."
        )
    nO = len(labels)
    nI = len(parts) * members[0].shape[1]
    if model.has_dim("nI"):
        _check_width(model, nI)
    model.attrs["labels"] = labels
    model.attrs["concatenation"] = parts
    model.set_dim("nO", nO)
    model.set_dim("nI", nI)
    bound = nI**-0.5
    model.set_param("W", uniform_init(model.ops, (nO, nI), lo=-bound, hi=bound))
    model.set_param("b", uniform_init(model.ops, (nO,), lo=-bound, hi=bound))


def _forward(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, parts: Sequence[str]
) -> LossAndBackprop:
    members, gold = inputs
    model.check_inputs(members, len(gold))
    saved = model.attrs["concatenation"]
    if saved != parts:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was trained with the concatenation "
            f"{', '.join(saved)}, but the config has {', '.join(parts)}. Restore it in the config, "
            "or build a new pipe."
        )
    u, v = members
    features, scores = _scores(model, u, v)
    owner = f"the classifier of the loss '{model.name}'"
    targets = label_indices(model.ops, gold, model.attrs["labels"], owner)
    losses, d_scores = cross_entropy(scores, targets)

    def backprop(d_loss: float = 1.0) -> Members:
        dY = d_scores * (d_loss / len(gold))
        model.inc_grad("W", dY.T @ features)
        model.inc_grad("b", dY.sum(axis=0))
        return _backprop_concatenated(u, v, parts, dY @ model.get_param("W"))

    return float(losses.mean()), backprop


def label_probabilities(model: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """Return the probabilities of the labels of pairs, float (n, nO).

    They are in the order of model.attrs["labels"].

    model (Model): a SoftmaxLoss. u, v (float (n, width)): the vectors of the pairs.
    RAISES (ValueError): if the layer is no initialized SoftmaxLoss, or for another width.
    """
    return softmax(_scores(model, u, v)[1])


def _scores(model: Model, u: Floats2d, v: Floats2d) -> tuple[Floats2d, Floats2d]:
    """Return the features, float (n, nI), and the scores of the labels, float (n, nO)."""
    if "concatenation" not in model.attrs or not model.has_param("W"):
        raise ValueError(
            f"The classifier of the loss '{model.name}' was not initialized. Call nlp.initialize "
            "with labelled pairs."
        )
    features = concatenated(u, v, parts=model.attrs["concatenation"])
    _check_width(model, features.shape[1])
    return features, features @ model.get_param("W").T + model.get_param("b")


def _check_width(model: Model, n_features: int) -> None:
    if model.get_dim("nI") != n_features:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was made for {model.get_dim('nI')} "
            f"features an example, got {n_features}. Use the encoder it was trained with, or build "
            "a new pipe."
        )


def concatenated(u: RowsT, v: RowsT, *, parts: Sequence[str]) -> RowsT:
    """Concatenate parts of paired rows, such as [u_i; v_i; |u_i - v_i|].

    u, v (float (n, width), NumPy or CuPy): the vectors of the pairs.
    parts (Sequence[str]): some of "u", "v", "abs_diff", which is |u - v|, and "product", u * v.
    RETURNS (float (n, len(parts) * width)).
    SOURCE: Reimers and Gurevych 2019, Table 6; Tai et al. 2015, Improved Semantic Representations
        From Tree-Structured LSTM Networks, section 4.2, for the symmetric ones.
    """
    values = {"u": u, "v": v}
    if "abs_diff" in parts:
        values["abs_diff"] = abs(u - v)
    if "product" in parts:
        values["product"] = u * v
    return get_array_module(u).concatenate([values[part] for part in parts], axis=1)


def _backprop_concatenated(
    u: Floats2d, v: Floats2d, parts: Sequence[str], d_features: Floats2d
) -> Members:
    """Return du and dv, from the derivative of the features, float (n, len(parts) * width)."""
    xp = get_array_module(u)
    sign = xp.sign(u - v)
    # By u and by v
    slopes = {
        "u": (1, 0),
        "v": (0, 1),
        "abs_diff": (sign, -sign),
        "product": (v, u),
    }
    du = xp.zeros_like(u)
    dv = xp.zeros_like(v)
    for part, d in zip(parts, xp.split(d_features, len(parts), axis=1), strict=True):
        by_u, by_v = slopes[part]
        du = du + d * by_u
        dv = dv + d * by_v
    return [du, dv]
