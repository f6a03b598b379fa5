"""What an optimizer knows of each parameter, by names that are the same in every process."""

from collections.abc import Iterator, Mapping
from typing import cast

import numpy
from spacy.language import Language
from thinc.api import Model, Optimizer, PyTorchGradScaler, PyTorchShim, get_current_ops, to_numpy
from thinc.optimizers import KeyT
from thinc.types import Floats1d

from .errors import Errors

MOMENTS = ("mom1", "mom2", "averages")  # of an optimizer: dicts by parameter
Arrays = dict[str, numpy.ndarray]


def moments_of(nlp: Language, optimizer: Optimizer) -> tuple[Arrays, dict[str, int]]:
    """The moments and moving averages of all parameters, and how often each was changed.

    RETURNS (dict, dict): arrays by names like "mom1/sbert/2/W", and numbers by "sbert/2/W": the component, the number
        of the layer in it, the parameter.
    RAISES (ValueError): if a parameter is in no component.
    """
    names = {key: name for name, key in _keys(nlp).items()}

    def name_of(key: KeyT) -> str:
        if key not in names:
            raise ValueError(Errors.CHECKPOINT_OF_UNKNOWN.format(given=key[1], number=key[0]))
        return names[key]

    arrays = {}
    for kind in MOMENTS:
        for key, values in (getattr(optimizer, kind) or {}).items():
            arrays[f"{kind}/{name_of(key)}"] = numpy.ascontiguousarray(to_numpy(values))
    return arrays, {name_of(key): count for key, count in optimizer.nr_update.items()}


def set_moments(
    nlp: Language, optimizer: Optimizer, arrays: Mapping[str, numpy.ndarray], updates: Mapping[str, int]
) -> None:
    """Give an optimizer what moments_of found; other arrays are passed over."""
    keys, ops = _keys(nlp), get_current_ops()
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind in MOMENTS:
            getattr(optimizer, kind)[keys[rest]] = ops.asarray(
                cast(Floats1d, values.copy())
            )  # which is changed in place
    optimizer.nr_update.update({keys[name]: count for name, count in updates.items()})


def scalers_of(nlp: Language) -> dict[str, PyTorchGradScaler]:
    """What scales the gradients of each PyTorch model in float16, by the same names."""
    found = {name: shim._grad_scaler for name, shim in _shims(nlp)}
    return {name: scaler for name, scaler in found.items() if scaler._enabled}


def _keys(nlp: Language) -> dict[str, KeyT]:
    """By names, what an optimizer knows parameters by: with the number of a layer or shim, which differ by process."""
    found = {
        f"{name}/{parameter}": (node.id, parameter) for name, node in _nodes(nlp) for parameter in node.param_names
    }
    for name, shim in _shims(nlp):
        for parameter, _ in [] if shim._model is None else shim._model.named_parameters():
            found[f"{name}/{parameter}"] = (shim.id, parameter)
    return found


def _nodes(nlp: Language) -> Iterator[tuple[str, Model]]:
    """All layers of the components that have a model, in an order that is the same in every process."""
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for number, node in enumerate(model.walk() if isinstance(model, Model) else ()):
            yield f"{name}/{number}", node


def _shims(nlp: Language) -> Iterator[tuple[str, PyTorchShim]]:
    for name, node in _nodes(nlp):
        for number, shim in enumerate(node.shims):
            if isinstance(shim, PyTorchShim):
                yield f"{name}.{number}", shim
