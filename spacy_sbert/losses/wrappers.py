"""Losses made of others: at several widths, of several objectives, or looked up by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, cast

from pydantic import Field
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..validation import Name, NonNegativeFloat, Width, validated
from ._common import LossAndBackprop, LossLayer, Members

_Inputs = tuple[Members, object]
_MAX_LAYERS = 1000


def _check_inner(layer: object, loss: str, setting: str) -> LossLayer:
    """Return a layer that will be part of another loss.

    Raise ValueError if it is no loss, or has several.
    """
    if not isinstance(layer, LossLayer):
        kind = f"the Thinc model '{layer.name}'" if isinstance(layer, Model) else repr(layer)
        raise ValueError(
            f"The loss '{loss}' is built of loss layers, got {kind}. Set @layers in {setting} to "
            "one, such as spacy-sbert.CosineSimilarityLoss.v1, or to a function that returns a "
            "spacy_sbert.losses.LossLayer."
        )
    if not layer.n_members:
        raise ValueError(
            f"The loss '{loss}' cannot contain '{layer.name}': make '{layer.name}' the outermost "
            "loss."
        )
    return layer


@validated
def MatryoshkaLoss(
    loss: object, dims: Sequence[Width], weights: Sequence[NonNegativeFloat] | None = None
) -> LossLayer:
    """Weighted sum of a loss over vectors cut to several widths, so that these are useful, too.

    loss = sum_k w_k loss_k(x[:, :d_k])

    loss (Model): a loss layer; each width gets a copy, because a classifier depends on the width.
    dims (list[int]): d, the widths; the encoder's own should be among them.
    weights (list[float]): w, 1 each by default.
    Input: as the inner loss takes it; gold vectors are cut with the members.
    RAISES (ValueError): if loss is no single loss, dims are empty, repeated or not as many as
        weights, or too wide.
    SOURCE: Kusupati et al. 2022, section 3.
    """
    name = "MatryoshkaLoss"
    inner = _check_inner(loss, name, "loss")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(
            f"The loss '{name}' cannot work with dims = {dims}: expected positive numbers, each "
            "once."
        )
    factors = [1.0] * len(dims) if weights is None else list(weights)
    if len(factors) != len(dims):
        raise ValueError(
            f"The loss '{name}' cannot work with weights = {weights}: expected {len(dims)} numbers."
        )
    forward = partial(_forward_widths, dims=dims, weights=factors)
    init = partial(_init_widths, dims=dims)
    layers = [inner.copy() for _ in dims]
    layer: LossLayer = LossLayer(
        name, forward, init=init, layers=layers, n_members=inner.n_members, gold=inner.gold
    )
    # Its settings, such as whole_batch
    vars(layer).update(vars(inner))
    return layer


def _init_widths(
    model: LossLayer, X: _Inputs | None = None, Y: None = None, *, dims: Sequence[int]
) -> None:
    for layer, dim in zip(model.layers, dims, strict=True):
        layer.initialize(X=None if X is None else _cut(model, X, dim))


def _forward_widths(
    model: LossLayer, inputs: _Inputs, is_train: bool, *, dims: Sequence[int], weights: list[float]
) -> LossAndBackprop:
    values = []
    backprops = []
    for layer, dim in zip(model.layers, dims, strict=True):
        value, back = layer(_cut(model, inputs, dim), is_train)
        values.append(value)
        backprops.append(back)

    def backprop(d_loss: float = 1.0) -> Members:
        d_members = [get_array_module(member).zeros_like(member) for member in inputs[0]]
        for dim, weight, back in zip(dims, weights, backprops, strict=True):
            for d_member, d_cut in zip(d_members, back(weight * d_loss), strict=True):
                d_member[:, :dim] += d_cut
        return d_members

    total = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return total, backprop


def _cut(model: LossLayer, inputs: _Inputs, dim: int) -> _Inputs:
    """Return the first dim dimensions of the members, and of gold vectors."""
    members, gold = inputs
    narrowest = min(member.shape[1] for member in members)
    if narrowest < dim:
        raise ValueError(
            f"The loss '{model.name}' cannot cut vectors to {dim} dimensions: they are {narrowest} "
            "wide. Lower dims."
        )
    if model.gold == "vector":
        gold = cast(Floats2d, gold)[:, :dim]
    return [member[:, :dim] for member in members], gold


@validated
def MultiTaskLoss(
    # Confection would check a Model before it is built
    objectives: dict[str, object],
    weights: dict[str, NonNegativeFloat] | None = None,
) -> LossLayer:
    """Sum of several losses, each of the examples that are marked with its name.

    loss = sum_k w_k loss_k(members_k, gold_k)

    objectives (dict[str, Model]): the losses by name.
    weights (dict[str, float]): w by name, 1 by default.
    Input: dict by name of the members and gold values that the loss takes, of the objectives that
        the batch has.
    Output: dict by name of w_k loss_k. Its backprop takes a factor on the loss and returns a dict
        by name of one derivative a member.
    RAISES (ValueError): if there is no objective, one is no single loss, or weights name an unknown
        one.
    SOURCE: Caruana 1997.
    """
    name = "MultiTaskLoss"
    names = sorted(objectives)
    if not objectives:
        raise ValueError(
            f"The loss '{name}' has no objectives: expected at least one in its config."
        )
    layers = [_check_inner(objectives[objective], name, "objectives") for objective in names]
    sizes = [layer.mini_batch_size for layer in layers if layer.mini_batch_size]
    if unknown := [objective for objective in weights or {} if objective not in names]:
        raise ValueError(
            f"The loss '{name}' has weights for {unknown}, expected some of the objectives {names}."
        )
    factors = dict.fromkeys(names, 1.0) | (weights or {})
    return LossLayer(
        name,
        partial(_forward_objectives, weights=factors),
        init=partial(_init_objectives, weights=factors),
        layers=layers,
        n_members=(),
        gold=None,
        whole_batch=any(layer.whole_batch for layer in layers),
        attrs={"objectives": names},
        mini_batch_size=min(sizes, default=None),
    )


def _init_objectives(
    model: LossLayer,
    X: dict[str, _Inputs] | None = None,
    Y: None = None,
    *,
    weights: dict[str, float],
) -> None:
    """Initialize the objectives that there are examples of."""
    for name, layer in _layers(model, list(weights)).items():
        layer.initialize(X=(X or {}).get(name))


def _forward_objectives(
    model: LossLayer, inputs: dict[str, _Inputs], is_train: bool, *, weights: dict[str, float]
) -> tuple[dict[str, float], Callable[[float], dict[str, Members]]]:
    layers = _layers(model, list(weights))
    losses = {name: layers[name](inputs[name], is_train) for name in inputs}

    def backprop(d_loss: float = 1.0) -> dict[str, Members]:
        return {name: back(weights[name] * d_loss) for name, (_, back) in losses.items()}

    return {name: weights[name] * value for name, (value, _) in losses.items()}, backprop


def _layers(model: LossLayer, names: list[str]) -> dict[str, Model]:
    saved = model.attrs["objectives"]
    if saved != names:
        raise ValueError(
            f"The loss '{model.name}' was saved with the objectives {', '.join(saved)}, but the "
            f"config names {', '.join(names)}. Restore them."
        )
    return dict(zip(names, model.layers, strict=True))


@validated
def LossByName(
    name: Name,
    settings: dict[str, object] | None = None,
    n_layers: Annotated[int, Field(ge=1, le=_MAX_LAYERS)] = 1,
) -> Model:
    """Return the loss of a registered function, or a layer that cannot be trained if there is none.

    A pipeline is saved with this in place of a loss of the user's own, so that it can be used
    without the loss's code.

    name (str): of the function in registry.layers. settings (dict): its arguments.
    n_layers (int): how many nodes the Model of the loss has, which Thinc compares.
    """
    if registry.has("layers", name):
        return registry.resolve({"loss": {"@layers": name, **(settings or {})}})["loss"]
    forward = partial(_unavailable, name=name)
    layers: list[Model] = [Model(name, forward) for _ in range(n_layers - 1)]
    return LossLayer(name, forward, layers=layers, n_members=[1, 2, 3], gold=None)


def _unavailable(model: Model, inputs: object, is_train: bool, *, name: str) -> object:
    raise ValueError(
        f"Cannot train with the loss '{name}', which no code in this process registers. Import its "
        "module before, or give its file with --code."
    )


def saved_by_name(block: Any, interpolated: Any) -> Any:
    """Return the block of a loss with LossByName in place of functions of the user's own.

    Losses with parameters stay: they could not be loaded without code. interpolated: the block
    without variables.
    """
    if not isinstance(block, Mapping):
        return block
    replaced = {key: saved_by_name(value, interpolated[key]) for key, value in block.items()}
    name = block.get("@layers")
    layers = cast(Any, registry.layers)
    is_own = name is not None and layers.get_entry_point(name) is None
    if not is_own or "*" in block:
        return replaced
    loss = registry.resolve({"loss": interpolated})["loss"]
    nodes = list(loss.walk())
    if len(nodes) > _MAX_LAYERS or any(map(_has_state, nodes)):
        return replaced
    settings = {key: value for key, value in replaced.items() if key != "@layers"}
    return {
        "@layers": "spacy-sbert.LossByName.v1",
        "name": name,
        "settings": settings,
        "n_layers": len(nodes),
    }


def _has_state(node: Model) -> bool:
    """Return whether a layer has, or will have, what is saved with it."""
    return bool(node.param_names or node.shims or node.dim_names or node.ref_names)
