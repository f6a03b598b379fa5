"""Modules Dense of a folder of sentence-transformers, read and written."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from thinc.api import Model

from ..arrays import Arrays
from ..errors import Errors
from ..models import folder_files
from ..models.folder_keys import MODULE_KEYS
from ..models.pooling import SentencePooling
from ..models.private_attributes import forward_settings
from ..models.resolve import check_safetensors

# Activations of Dense, in its config.json, and here
_ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
_TORCH_NAMES = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
# Parameters of Dense, here and there
_WEIGHTS = {"W": "linear.weight", "b": "linear.bias"}


def dense_layers(pooling: SentencePooling, name: str) -> list[Model]:
    """Return the dense layers of a pipe. RAISES (ValueError): if one is of another kind."""
    if pooling.dense is None:
        return []
    layers = [node for node in pooling.dense.walk() if not node.layers]
    for layer in layers:
        if layer.name != "dense":
            raise ValueError(
                f"The dense layer of '{name}' has the layer '{layer.name}': expected "
                "spacy-sbert.Dense.v1 or a chain."
            )
        if not layer.has_param("W"):
            raise ValueError(Errors.DENSE_NOT_INITIALIZED)
    return layers


def write_dense(folder: Path, layer: Model) -> None:
    """Write a Dense module: config.json and model.safetensors."""
    config = {
        "in_features": layer.get_dim("nI"),
        "out_features": layer.get_dim("nO"),
        "bias": layer.has_param("b"),
        "activation_function": _TORCH_NAMES[str(forward_settings(layer)["activation"])],
    }
    write_json(folder / "config.json", config)
    arrays = {}
    for ours, theirs in _WEIGHTS.items():
        if layer.has_param(ours):
            array = layer.ops.to_numpy(layer.get_param(ours))
            arrays[theirs] = numpy.ascontiguousarray(array)
    save_file(arrays, folder / "model.safetensors")


class Dense(NamedTuple):
    """Module Dense of a folder.

    config: the settings of spacy-sbert.Dense.v1. weights: W, float32 (nO, nI), and b, float32
        (nO,), if there is one.
    """

    folder: Path
    config: dict[str, object]
    weights: Arrays


def read_dense(folder: Path) -> Dense:
    """Read a Dense module. RAISES (ValueError): if spacy-sbert.Dense.v1 cannot be such a layer."""
    file = folder / "config.json"
    if not file.is_file():
        raise _refused(folder, "it has no config.json")
    config = folder_files.read_object(file)
    folder_files.read_keys(file, MODULE_KEYS["Dense"])
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if activation not in _ACTIVATIONS:
        expected = ", ".join(_ACTIVATIONS)
        raise _refused(folder, f"its activation_function {activation} is none of {expected}")
    n_out = config.get("out_features")
    n_in = config.get("in_features")
    has_bias = config.get("bias", True)
    arrays = _read_weights(folder)
    shapes = {key: array.shape for key, array in arrays.items()}
    bias_shape = shapes.get("linear.bias", (n_out,))
    if shapes.get("linear.weight") != (n_out, n_in) or bias_shape != (n_out,):
        raise _refused(
            folder, f"its weights are {shapes}, its config says linear.weight of {(n_out, n_in)}"
        )
    if has_bias != ("linear.bias" in arrays):
        raise _refused(folder, f"its config says bias = {has_bias}, its weights are {shapes}")
    others = sorted(arrays.keys() - set(_WEIGHTS.values()))
    if others:
        raise _refused(folder, f"its weights have {others[0]}, which a dense layer has not")
    layer = {
        "@layers": "spacy-sbert.Dense.v1",
        "nO": n_out,
        "nI": n_in,
        "activation": _ACTIVATIONS[activation],
        "bias": has_bias,
    }
    weights = {ours: arrays[theirs] for ours, theirs in _WEIGHTS.items() if theirs in arrays}
    return Dense(folder, layer, weights)


def _read_weights(folder: Path) -> Arrays:
    file = folder / "model.safetensors"
    older = folder / "pytorch_model.bin"
    if file.is_file():
        check_safetensors(file)
        return _arrays(load_file(file))
    if not older.is_file():
        raise _refused(folder, "it has neither model.safetensors nor pytorch_model.bin")
    try:
        # Reads tensors, and runs no pickled code
        return _arrays(torch.load(older, map_location="cpu", weights_only=True))
    except Exception as error:
        # Its type depends on the bytes
        raise ValueError(Errors.BAD_WEIGHTS.format(file=older, reason=error)) from error


def _arrays(tensors: dict[str, torch.Tensor]) -> Arrays:
    # NumPy has no bfloat16
    return {key: tensor.float().numpy() for key, tensor in tensors.items()}


def dense_block(dense: list[Dense]) -> dict[str, object]:
    """Return the setting `dense`: a layer, or a chain of several."""
    if len(dense) == 1:
        return dense[0].config
    layers = {f"dense{number}": layer.config for number, layer in enumerate(dense, start=1)}
    return {"@layers": "chain.v1", "*": layers}


def load_dense(model: Model, dense: list[Dense], width: int) -> None:
    """Set the weights of the dense layers.

    RAISES (ValueError): if one takes vectors of another width.
    """
    layers = [node for node in model.walk() if node.name == "dense"]
    for layer, read in zip(layers, dense, strict=True):
        n_in = layer.get_dim("nI")
        if n_in != width:
            raise _refused(
                read.folder,
                f"it takes vectors of {n_in} numbers, and those before it have {width}",
            )
        width = layer.get_dim("nO")
        for key, value in read.weights.items():
            layer.set_param(key, layer.ops.asarray(value))  # type: ignore[arg-type]


def _refused(folder: Path, reason: str) -> ValueError:
    return ValueError(f"The Dense module {folder} cannot be imported: {reason}.")


def write_json(file: Path, content: object) -> None:
    """Write the config of a module, whose folder is made if need be."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2), encoding="utf8")
