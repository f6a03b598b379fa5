"""A loss that is looked up by its name, and is only needed in training."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field
from spacy.util import registry
from thinc.api import Model

from ..validation import Name, validated
from ._common import LossLayer

_MOST_LAYERS = 1000


@registry.layers("spacy-sbert.LossByName.v1")
@validated
def LossByName(
    name: Name,
    settings: dict[str, object] | None = None,
    n_layers: Annotated[int, Field(ge=1, le=_MOST_LAYERS)] = 1,
) -> Model:
    """Return the loss of a registered function, or, if none has this name, a layer that cannot be trained.

    A pipeline that was trained with a loss of the user's own is saved with this in its place, see saved_by_name. So it
    can be loaded and used without the code of the loss.

    name (str): of the function in registry.layers. settings (dict): its arguments.
    n_layers (int): how many nodes the Model of the loss has, by which Thinc recognizes what it saved.
    RAISES (ValueError): if it is trained, and no function of this name is registered.
    """
    if registry.has("layers", name):
        return registry.resolve({"loss": {"@layers": name, **(settings or {})}})["loss"]
    forward = partial(_unavailable, name=name)
    layers: list[Model] = [Model(name, forward) for _ in range(n_layers - 1)]
    return LossLayer(name, forward, layers=layers, n_members=[1, 2, 3], gold=None)


def _unavailable(model: Model, inputs: object, is_train: bool, *, name: str) -> object:
    raise ValueError(
        f"Cannot train with the loss '{name}', which no code in this process registers. Import its module before you "
        "load the pipeline, or give its file with --code."
    )


def saved_by_name(block: Any, interpolated: Any) -> Any:  # noqa: ANN401 (any part of a config)
    """Return the block of a config with LossByName in place of each function that no installed package provides.

    Losses with parameters stay as they are: without their code these could not be loaded.

    block (dict): of the loss, or anything in it. interpolated (dict): the same without variables.
    """
    if not isinstance(block, Mapping):
        return block
    replaced = {key: saved_by_name(value, interpolated[key]) for key, value in block.items()}
    name = block.get("@layers")
    layers: Any = registry.layers
    if name is None or "*" in block or layers.get_entry_point(name) is not None:
        return replaced
    nodes = list(registry.resolve({"loss": interpolated})["loss"].walk())
    if len(nodes) > _MOST_LAYERS or any(
        node.param_names or node.shims or node.dim_names or node.ref_names for node in nodes
    ):
        return replaced
    settings = {key: value for key, value in replaced.items() if key != "@layers"}
    return {"@layers": "spacy-sbert.LossByName.v1", "name": name, "settings": settings, "n_layers": len(nodes)}
