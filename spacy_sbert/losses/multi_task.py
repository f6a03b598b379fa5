"""Several objectives for one encoder, each with examples of its own."""

from collections.abc import Callable, Iterable

from spacy.util import registry
from thinc.api import Model

from ..validation import NonNegativeFloat, validated
from ._common import LossLayer, Members, as_inner

NAME = "MultiTaskLoss"
Inputs = dict[str, tuple[Members, object]]


class Objectives(LossLayer):
    """A loss layer that holds others.

    names (list[str]): the name of each, in the order of the layers.
    weights (dict[str, float]): how much each counts.
    """

    names: list[str]
    weights: dict[str, float]


@registry.layers("spacy-sbert.MultiTaskLoss.v1")
@validated
def MultiTaskLoss(
    objectives: dict[str, object],  # confection would check a Model before it is built
    weights: dict[str, NonNegativeFloat] | None = None,
) -> Model[Inputs, dict[str, float]]:
    """Several losses beside each other, each for the examples that are marked with its name.

    loss = sum_k w_k loss_k(members_k, gold_k)

    objectives (dict[str, Model]): the losses by name.
    weights (dict[str, float]): w by name, 1 for those left out.
    Input: dict by name, for the objectives that the batch has examples of, of the members and gold values that the loss
        takes.
    Output: dict[str, float], w_k loss_k by name. Its backprop takes a factor on the loss and returns a dict by name of
        one derivative a member.
    RAISES (ValueError): if there is no objective, or one is not a loss layer or has objectives of its own; if weights
        or the input name an unknown one, or a loss refuses its input.
    SOURCE: Caruana 1997.
    """
    if not objectives:
        raise ValueError(
            f"The loss '{NAME}' has no objectives: expected at least one in [components.sbert.loss.objectives]."
        )
    names = sorted(objectives)
    layers = [as_inner(objectives[name], loss=NAME, setting="objectives") for name in names]
    _check_names(weights or {}, names, "weights")
    model = Objectives(
        NAME,
        forward,
        init=init,
        layers=layers,
        n_members=[],
        gold=None,
        whole_batch=any(layer.whole_batch for layer in layers),
        attrs={"objectives": names},
        mini_batch_size=min(filter(None, (layer.mini_batch_size for layer in layers)), default=None),
    )
    model.names, model.weights = names, {name: 1.0 for name in names} | (weights or {})
    return model


def init(model: Objectives, X: Inputs | None = None, Y: None = None) -> None:
    """Initialize the objectives that there are examples of."""
    for name, layer in _layers(model, X or {}).items():
        layer.initialize(X=(X or {}).get(name))


def forward(
    model: Objectives, inputs: Inputs, is_train: bool
) -> tuple[dict[str, float], Callable[[float], dict[str, Members]]]:
    layers = _layers(model, inputs)
    parts = {name: layers[name](inputs[name], is_train) for name in inputs}

    def backprop(d_loss: float = 1.0) -> dict[str, Members]:
        return {name: back(model.weights[name] * d_loss) for name, (_, back) in parts.items()}

    return {name: model.weights[name] * value for name, (value, _) in parts.items()}, backprop


def _layers(model: Objectives, inputs: Inputs) -> dict[str, Model]:
    saved = model.attrs["objectives"]
    if saved != model.names:
        settings = {"saved": ", ".join(saved), "given": ", ".join(model.names)}
        raise ValueError(
            (
                "The loss '{loss}' was saved with the objectives {saved}, but the config names {given}. Name them "
                "as they were saved."
            ).format(loss=model.name, **settings)
        )
    _check_names(inputs, model.names, "named by an example")
    return dict(zip(model.names, model.layers, strict=True))


def _check_names(given: Iterable[str], known: list[str], where: str) -> None:
    for name in given:
        if name not in known:
            expected = ", ".join(known)
            raise ValueError(f"The loss '{NAME}' has no objective '{name}' ({where}): expected one of {expected}.")
