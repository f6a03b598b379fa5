"""Several objectives for one encoder, each with its own examples."""

from collections.abc import Callable, Iterable

from spacy.util import registry
from thinc.api import Model

from ..validation import NonNegativeFloat, validated
from ._common import LossLayer, Members, check_inner

_NAME = "MultiTaskLoss"
_Inputs = dict[str, tuple[Members, object]]


class _MultiTaskLayer(LossLayer):
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
) -> LossLayer:
    """Sum of several losses, each of the examples that are marked with its name.

    loss = sum_k w_k loss_k(members_k, gold_k)

    objectives (dict[str, Model]): the losses by name.
    weights (dict[str, float]): w by name, 1 by default.
    Input: dict by name, for the objectives that the batch has examples of, of the members and gold values that the loss
        takes.
    Output: dict[str, float], w_k loss_k by name. Its backprop takes a factor on the loss and returns a dict by name of
        one derivative a member.
    RAISES (ValueError): if there is no objective, or one is not a loss layer or has several objectives itself; if
        weights or the input name an unknown one, or a loss refuses its input.
    SOURCE: Caruana 1997.
    """
    if not objectives:
        raise ValueError(
            f"The loss '{_NAME}' has no objectives: expected at least one in [components.sbert.loss.objectives]."
        )
    names = sorted(objectives)
    layers = [check_inner(objectives[name], loss=_NAME, setting="objectives") for name in names]
    _check_names(weights or {}, names, "weights")
    model = _MultiTaskLayer(
        _NAME,
        _forward,
        init=_init,
        layers=layers,
        n_members=[],
        gold=None,
        whole_batch=any(layer.whole_batch for layer in layers),
        attrs={"objectives": names},
        mini_batch_size=min(filter(None, (layer.mini_batch_size for layer in layers)), default=None),
    )
    model.names, model.weights = names, {name: 1.0 for name in names} | (weights or {})
    return model


def _init(model: _MultiTaskLayer, X: _Inputs | None = None, Y: None = None) -> None:
    """Initialize the objectives that there are examples of."""
    for name, layer in _layers(model, X or {}).items():
        layer.initialize(X=(X or {}).get(name))


def _forward(
    model: _MultiTaskLayer, inputs: _Inputs, is_train: bool
) -> tuple[dict[str, float], Callable[[float], dict[str, Members]]]:
    layers = _layers(model, inputs)
    losses = {name: layers[name](inputs[name], is_train) for name in inputs}

    def backprop(d_loss: float = 1.0) -> dict[str, Members]:
        return {name: back(model.weights[name] * d_loss) for name, (_, back) in losses.items()}

    return {name: model.weights[name] * value for name, (value, _) in losses.items()}, backprop


def _layers(model: _MultiTaskLayer, inputs: _Inputs) -> dict[str, Model]:
    saved = model.attrs["objectives"]
    if saved != model.names:
        raise ValueError(
            f"The loss '{model.name}' was saved with the objectives {', '.join(saved)}, but the config names "
            f"{', '.join(model.names)}. Name them as they were saved."
        )
    _check_names(inputs, model.names, "named by an example")
    return dict(zip(model.names, model.layers, strict=True))


def _check_names(names: Iterable[str], known: list[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(
                f"The loss '{_NAME}' has no objective '{name}' ({where}): expected one of {', '.join(known)}."
            )
