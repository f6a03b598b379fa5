"""The weights and gradients of models, of PyTorch and of Thinc, as the ranks that train them send them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from thinc.api import Model, PyTorchShim, torch2xp, xp2torch
from thinc.types import FloatsXd

from .ranks import Ranks


@dataclass(frozen=True)
class OfTorch:
    """A parameter of a PyTorch model."""

    parameter: torch.nn.Parameter

    @property
    def weights(self) -> torch.Tensor:
        return self.parameter.data

    @property
    def gradient(self) -> torch.Tensor | None:
        return self.parameter.grad

    def set_gradient(self, gradient: torch.Tensor) -> None:
        self.parameter.grad = gradient.to(self.parameter)


@dataclass(frozen=True)
class OfThinc:
    """A parameter of a layer of Thinc's."""

    node: Model
    name: str

    @property
    def weights(self) -> torch.Tensor:
        """On the same memory."""
        return xp2torch(self.node.get_param(self.name))

    @property
    def gradient(self) -> torch.Tensor | None:
        return xp2torch(self.node.get_grad(self.name)) if self.node.has_grad(self.name) else None

    def set_gradient(self, gradient: torch.Tensor) -> None:
        self.node.set_grad(self.name, cast(FloatsXd, torch2xp(gradient.to(self.weights))))


Parameter = OfTorch | OfThinc


def sum_gradients(models: Sequence[Model], ranks: Ranks) -> None:
    """Give every rank the sum of the gradients of all, in one message.

    A parameter that has a gradient on some rank gets one on all; where the gradient of one has overflowed in float16,
    none makes a step.

    models (Sequence[Model]): encoders, of the same shapes on all ranks.
    """
    parameters = [one for one in parameters_of(models) if one.weights.is_floating_point()]
    scalers = [shim._grad_scaler for shim in shims_of(models)]
    found = [one.gradient for one in parameters]
    flags = [float(gradient is not None) for gradient in found] + [float(scaler.found_inf) for scaler in scalers]
    parts = [
        torch.zeros(one.weights.numel()) if gradient is None else gradient.detach().flatten().float()
        for one, gradient in zip(parameters, found, strict=True)
    ]
    flat = ranks.sum(torch.cat([part.to(ranks.device) for part in (torch.tensor(flags), *parts)]))
    has_gradient, has_overflown, rest = flat.split([len(parameters), len(scalers), len(flat) - len(flags)])
    sums = rest.split([len(part) for part in parts])
    for one, total, has in zip(parameters, sums, has_gradient.tolist(), strict=True):
        if has:
            one.set_gradient(total.view(one.weights.shape))
    for scaler, has in zip(scalers, has_overflown.tolist(), strict=True):
        scaler._found_inf = bool(has)


def share_drawn(models: Sequence[Model], ranks: Ranks) -> None:
    """Give every rank the weights of Thinc's layers, heads above all, that rank 0 has drawn."""
    for one in parameters_of(models):
        if isinstance(one, OfThinc):
            one.weights.copy_(ranks.from_first(one.weights.to(ranks.device)))


def bytes_of(models: Sequence[Model]) -> Iterator[bytes]:
    """All weights, to be compared."""
    for one in parameters_of(models):
        yield one.weights.cpu().contiguous().view(torch.uint8).numpy().tobytes()


def parameters_of(models: Iterable[Model]) -> Iterator[Parameter]:
    """All that learn, in an order that is the same on all ranks."""
    for node in (node for model in models for node in model.walk()):
        for shim in node.shims:
            if isinstance(shim, PyTorchShim):
                yield from (OfTorch(each) for each in shim._model.parameters() if each.requires_grad)
        yield from (OfThinc(node, name) for name in node.param_names if node.has_param(name))


def shims_of(models: Iterable[Model]) -> list[PyTorchShim]:
    nodes = (node for model in models for node in model.walk())
    return [shim for node in nodes for shim in node.shims if isinstance(shim, PyTorchShim)]
