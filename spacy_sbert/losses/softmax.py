"""The classification objective: the label of a pair should be predictable from its two vectors."""

from collections.abc import Iterable, Sequence
from typing import Literal, cast

from spacy.util import registry
from thinc.api import Model, uniform_init
from thinc.types import Floats2d, Ints1d
from thinc.util import get_array_module

from ..similarity import RowsT
from ..validation import NonNegativeFloat, validated
from ._common import Backprop, LossLayer, Members, check_inputs, cross_entropy, softmax

_Inputs = tuple[Members, list[str]]
_Part = Literal["u", "v", "abs_diff", "product"]
SYMMETRIC = ("abs_diff", "product")  # the same with u and v exchanged


class _PairClassifier(LossLayer):
    """A loss layer with a linear classifier.

    concatenation (list[str]): the features of a pair. attrs["concatenation"], which is saved, has those that W was made
        for.
    """

    concatenation: list[str]


@registry.layers("spacy-sbert.SoftmaxLoss.v1")
@validated
def SoftmaxLoss(
    concatenation: Sequence[_Part] = ("u", "v", "abs_diff"), learn_rate_factor: NonNegativeFloat = 1.0
) -> LossLayer:
    """Cross-entropy of a linear classifier of pairs; the classifier is trained and saved with the loss.

    loss = -1/n sum_i log softmax(W [u_i; v_i; |u_i - v_i|] + b)[y_i]

    concatenation (Sequence[str]): the features of a pair, any of "u", "v", "abs_diff" (|u - v|) and "product" (u * v)
        in any order.
    learn_rate_factor (float): how many times faster than the encoder W and b learn.
    Input: [u, v], each float (n, width), and y, list[str] of n labels. The backprop also adds to the gradients of W,
        float (nO, nI), and b, float (nO,), where nO is the number of labels and nI that of features.
    RAISES (ValueError): if the concatenation is empty or names a part twice; if the layer was not initialized, or for
        other labels, another width or another concatenation.
    SOURCE: Reimers and Gurevych 2019, section 3 (Classification Objective Function) and Table 6 (Concatenation).
    """
    parts = cast(list[str], list(concatenation))
    if not parts or len(set(parts)) < len(parts):
        raise ValueError(
            f"The loss 'SoftmaxLoss' cannot work with concatenation = {parts}: expected some of u, v, abs_diff, "
            "product, each once."
        )
    layer = _PairClassifier(
        "SoftmaxLoss",
        _forward,
        init=_init,
        n_members=[2],
        gold="label",
        attrs={"labels": [], "concatenation": parts},
        dims={"nO": None, "nI": None},
        params={"W": None, "b": None},
        learn_rate_factor=learn_rate_factor,
    )
    layer.concatenation = parts
    return layer


def _init(model: _PairClassifier, X: _Inputs | None = None, Y: None = None) -> None:
    """Draw W and b, for the labels and the width of the examples, from the uniform distribution of torch.nn.Linear."""
    if X is None:
        return
    members, gold = X
    labels, known = sorted(set(gold)), model.attrs["labels"]
    if known and labels != known:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was made for the labels {_listed(known)}, and cannot be "
            f"initialized for {_listed(labels)}. Build a new pipe to train a classifier for other labels."
        )
    if len(labels) < 2:
        raise ValueError(
            f"The loss '{model.name}' needs at least two labels, got {_listed(labels) or 'none'}. Give it more "
            "examples, or name the labels in [initialize.components.sbert] labels."
        )
    nO, nI = len(labels), len(model.concatenation) * members[0].shape[1]
    if model.has_dim("nI"):
        _check_width(model, nI)
    model.attrs["labels"], model.attrs["concatenation"] = labels, model.concatenation
    model.set_dim("nO", nO)
    model.set_dim("nI", nI)
    bound = nI**-0.5
    model.set_param("W", uniform_init(model.ops, (nO, nI), lo=-bound, hi=bound))
    model.set_param("b", uniform_init(model.ops, (nO,), lo=-bound, hi=bound))


def _forward(model: _PairClassifier, inputs: _Inputs, is_train: bool) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    features = _features(model, *members)
    losses, d_scores = cross_entropy(_scores(model, features), _targets(model, gold))

    def backprop(d_loss: float = 1.0) -> Members:
        dY = d_scores * (d_loss / len(gold))
        model.inc_grad("W", dY.T @ features)
        model.inc_grad("b", dY.sum(axis=0))
        u, v = members
        return _backprop_concatenated(u, v, model.concatenation, dY @ model.get_param("W"))

    return float(losses.mean()), backprop


def label_probabilities(model: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """Return the probabilities of the labels of pairs, by the classifier of a SoftmaxLoss.

    softmax(W [u_i; v_i; |u_i - v_i|] + b)

    model (Model): the layer that SoftmaxLoss made, initialized or loaded.
    u, v (float (n, width)): the vectors of the pairs.
    RETURNS (float (n, nO)): the probability of each label, in the order of model.attrs["labels"].
    RAISES (ValueError): if the layer is not a SoftmaxLoss or was not initialized, or for another width or
        concatenation.
    SOURCE: Reimers and Gurevych 2019, section 3 (Classification Objective Function).
    """
    return softmax(_scores(model, _features(model, u, v)))


def _features(model: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    if not isinstance(model, _PairClassifier) or not model.has_param("W"):
        raise ValueError(
            f"The loss '{model.name}' has a classifier that was not initialized. Call nlp.initialize with examples "
            "that carry labels, or load a trained pipeline."
        )
    saved = model.attrs["concatenation"]
    if saved != model.concatenation:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was trained with the concatenation {_listed(saved)}, but the "
            f"config has {_listed(model.concatenation)}. Restore it in the config, or build a new pipe."
        )
    features = concatenated(u, v, parts=model.concatenation)
    _check_width(model, features.shape[1])
    return features


def _check_width(model: _PairClassifier, n_features: int) -> None:
    if model.get_dim("nI") != n_features:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was made for {model.get_dim('nI')} features an example, got "
            f"{n_features}: the encoder's width has changed. Use the encoder it was trained with, or build a new pipe."
        )


def _scores(model: Model, features: Floats2d) -> Floats2d:
    return features @ model.get_param("W").T + model.get_param("b")


def _targets(model: _PairClassifier, gold: list[str]) -> Ints1d:
    index = {label: i for i, label in enumerate(model.attrs["labels"])}
    unknown = [label for label in gold if label not in index]
    if unknown:
        raise ValueError(
            f"The label '{unknown[0]}' is unknown to the loss '{model.name}', whose classifier was made for the labels "
            f"{_listed(index)}. Correct the example, or build a new pipe and initialize it with all labels, from the "
            "examples or from [initialize.components.sbert] labels."
        )
    return model.ops.asarray1i([index[label] for label in gold])


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(map(str, labels))


def concatenated(u: RowsT, v: RowsT, *, parts: Sequence[str]) -> RowsT:
    """Concatenate parts of paired rows, such as [u_i; v_i; |u_i - v_i|].

    u, v (float (n, width), NumPy or CuPy): the vectors of the pairs.
    parts (Sequence[str]): some of "u", "v", "abs_diff", which is |u - v|, and "product", u * v.
    RETURNS (float (n, len(parts) * width)): the features.
    SOURCE: Reimers and Gurevych 2019, Table 6; Tai et al. 2015, Improved Semantic Representations From Tree-Structured
        LSTM Networks, section 4.2, for the symmetric ones.
    """
    values = {"u": lambda: u, "v": lambda: v, "abs_diff": lambda: abs(u - v), "product": lambda: u * v}
    return get_array_module(u).concatenate([values[part]() for part in parts], axis=1)


def _backprop_concatenated(u: Floats2d, v: Floats2d, parts: Sequence[str], d_features: Floats2d) -> Members:
    """Return du and dv, from the derivative of the features, float (n, len(parts) * width)."""
    xp = get_array_module(u)
    du, dv = xp.zeros_like(u), xp.zeros_like(v)
    for part, d in zip(parts, xp.split(d_features, len(parts), axis=1), strict=True):
        if part == "abs_diff":
            d = d * xp.sign(u - v)
            du, dv = du + d, dv - d
        elif part == "product":
            du, dv = du + d * v, dv + d * u
        elif part == "u":
            du = du + d
        else:
            dv = dv + d
    return [du, dv]
