"""Weights that are not finite: what a training that diverged leaves."""

from collections.abc import Iterable

import torch
from thinc.api import Model, PyTorchShim

from ..files.serialization import params_not_finite


def weights_not_finite(model: Model) -> str | None:
    """Return the name of a parameter of a model, or of a PyTorch model in it, that is not finite.

    None if all are.
    """
    found = params_not_finite(model)
    shims = (shim for node in model.walk() for shim in node.shims if isinstance(shim, PyTorchShim))
    for shim in shims if found is None else ():
        # `weights`: of an encoder of this package, which may have no PyTorch model yet
        weights = shim.weights if hasattr(shim, "weights") else shim._model  # noqa: SLF001 (Thinc has no public name)
        found = found or (
            None if weights is None else tensors_not_finite(weights.state_dict().items())
        )
    return found


def tensors_not_finite(named: Iterable[tuple[str, torch.Tensor]]) -> str | None:
    """Return the name of a tensor that is not finite; None if all are."""
    for name, tensor in named:
        # A sum takes a fraction of the time, and is not finite if a number is not; or if it
        # overflows.
        if (
            tensor.is_floating_point()
            and not tensor.sum().isfinite()
            and not tensor.isfinite().all()
        ):
            return name
    return None
