"""The classification objective: a pair's label is to be read from its two vectors."""

from collections.abc import Iterable, Sequence

from spacy.util import registry
from thinc.api import Model, uniform_init
from thinc.types import Floats2d, Ints1d

from ..errors import Errors
from ..validation import NonNegativeFloat, validated
from ._common import Backprop, LossLayer, Members, check_inputs, choose, cross_entropy, softmax
from .pair_features import PARTS, backprop_concatenated, concatenated

Inputs = tuple[Members, list[str]]


class PairClassifier(LossLayer):
    """A loss layer with a linear classifier.

    concatenation (list[str]): what the classifier is to see of a pair. What W was made for stands, saved with it, in
        attrs["concatenation"].
    """

    concatenation: list[str]


@registry.layers("spacy-sbert.SoftmaxLoss.v1")
@validated
def SoftmaxLoss(
    concatenation: Sequence[str] = ("u", "v", "abs_diff"), learn_rate_factor: NonNegativeFloat = 1.0
) -> Model[Inputs, float]:
    """Cross-entropy of a linear classifier of pairs; the classifier is trained and saved with the loss.

    loss = -1/n sum_i log softmax(W [u_i; v_i; |u_i - v_i|] + b)[y_i]

    concatenation (Sequence[str]): what the classifier sees, any of "u", "v", "abs_diff" (|u - v|) and "product" (u * v)
        in any order.
    learn_rate_factor (float): how many times faster than the encoder W and b learn.
    Input: [u, v], each float (n, width), and y, list[str] of n labels.
    Output: the loss, a float. Its backprop takes a factor on the loss, returns [du, dv], and adds to the gradients of
        W, float (nO, nI), and b, float (nO,), where nO is the number of labels and nI that of features.
    RAISES (ValueError): if the concatenation is empty or names an unknown part or one twice; if u, v and y do not have
        the same number of rows; if the layer was not initialized, or for other labels, another
        width or another concatenation.
    SOURCE: Reimers and Gurevych 2019, section 3 (Classification Objective Function) and Table 6 (Concatenation).
    """
    parts = list(concatenation)
    for part in parts:
        choose(dict.fromkeys(PARTS), part, loss="SoftmaxLoss", setting="concatenation")
    if not parts or len(set(parts)) < len(parts):
        settings = {"setting": "concatenation", "given": parts, "expected": f"some of {', '.join(PARTS)}, each once"}
        raise ValueError(Errors.BAD_LOSS_SETTING.format(loss="SoftmaxLoss", **settings))
    layer = PairClassifier(
        "SoftmaxLoss",
        forward,
        init=init,
        n_members=[2],
        gold="label",
        attrs={"labels": [], "concatenation": parts},
        dims={"nO": None, "nI": None},
        params={"W": None, "b": None},
        learn_rate_factor=learn_rate_factor,
    )
    layer.concatenation = parts
    return layer


def init(model: PairClassifier, X: Inputs | None = None, Y: None = None) -> None:
    """Draw W and b, for the labels and the width of the examples, from the uniform distribution of torch.nn.Linear."""
    if X is None:
        return
    members, gold = X
    labels, known = sorted(set(gold)), model.attrs["labels"]
    if known and labels != known:
        raise ValueError(
            f"The classifier of the loss '{model.name}' was made for the labels {_listed(known)}, and cannot "
            f"be initialized for {_listed(labels)}. Build the pipe anew to train a classifier for other labels."
        )
    if len(labels) < 2:
        raise ValueError(
            f"The loss '{model.name}' needs at least two labels to tell apart, got "
            f"{_listed(labels) or 'none'}. Give it more examples, or name the labels in "
            "[initialize.components.sbert] labels."
        )
    nO, nI = len(labels), len(model.concatenation) * members[0].shape[1]
    if model.has_dim("nI") and model.get_dim("nI") != nI:
        raise ValueError(_wrong_width(model, nI))
    model.attrs["labels"], model.attrs["concatenation"] = labels, model.concatenation
    model.set_dim("nO", nO)
    model.set_dim("nI", nI)
    bound = nI**-0.5
    model.set_param("W", uniform_init(model.ops, (nO, nI), lo=-bound, hi=bound))
    model.set_param("b", uniform_init(model.ops, (nO,), lo=-bound, hi=bound))


def forward(model: PairClassifier, inputs: Inputs, is_train: bool) -> tuple[float, Backprop]:
    members, gold = inputs
    check_inputs(model, members, len(gold))
    features = _features(model, *members)
    losses, d_scores = cross_entropy(_scores(model, features), _targets(model, gold))

    def backprop(d_loss: float = 1.0) -> Members:
        dY = d_scores * (d_loss / len(gold))
        model.inc_grad("W", dY.T @ features)
        model.inc_grad("b", dY.sum(axis=0))
        d_features = dY @ model.get_param("W")
        return backprop_concatenated(*members, parts=model.concatenation, d_features=d_features)

    return float(losses.mean()), backprop


def label_probabilities(model: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """What the classifier of a SoftmaxLoss says of pairs.

    softmax(W [u_i; v_i; |u_i - v_i|] + b)

    model (Model): the layer that SoftmaxLoss made, initialized or loaded.
    u, v (float (n, width)): the vectors of the pairs.
    RETURNS (float (n, nO)): the probability of each label, in the order of model.attrs["labels"].
    RAISES (ValueError): if the layer is not a SoftmaxLoss or was not initialized, or for another width or
        concatenation.
    SOURCE: Reimers and Gurevych 2019, section 3 (Classification Objective Function).
    """
    if not isinstance(model, PairClassifier):
        raise ValueError(Errors.NO_HEAD.format(loss=model.name))
    return softmax(_scores(model, _features(model, u, v)))


def _features(model: PairClassifier, u: Floats2d, v: Floats2d) -> Floats2d:
    if not model.has_param("W"):
        raise ValueError(Errors.NO_HEAD.format(loss=model.name))
    saved = model.attrs["concatenation"]
    if saved != model.concatenation:
        settings = {"saved": _listed(saved), "given": _listed(model.concatenation)}
        raise ValueError(
            (
                "The classifier of the loss '{loss}' was trained and saved with the concatenation {saved}, but the "
                "config says {given}. Restore it in the config, or build the pipe anew."
            ).format(loss=model.name, **settings)
        )
    features = concatenated(u, v, parts=model.concatenation)
    if features.shape[1] != model.get_dim("nI"):
        raise ValueError(_wrong_width(model, features.shape[1]))
    return features


def _scores(model: PairClassifier, features: Floats2d) -> Floats2d:
    return features @ model.get_param("W").T + model.get_param("b")


def _targets(model: PairClassifier, gold: list[str]) -> Ints1d:
    index = {label: i for i, label in enumerate(model.attrs["labels"])}
    for label in gold:
        if label not in index:
            raise ValueError(
                f"The label '{label}' is unknown to the loss '{model.name}', whose classifier was made and "
                f"saved for the labels {_listed(index)}. Correct the example, or initialize the pipe anew with "
                "all labels, from the examples or from [initialize.components.sbert] labels."
            )
    return model.ops.asarray1i([index[label] for label in gold])


def _wrong_width(model: PairClassifier, given: int) -> str:
    return (
        f"The classifier of the loss '{model.name}' was made for {model.get_dim('nI')} features an example, "
        f"got {given}: the encoder's width has changed since. Use the encoder it was trained with, or build "
        "the pipe anew."
    )


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(map(str, labels))
