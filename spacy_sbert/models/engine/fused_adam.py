"""Optimizer steps of a transformer on a CPU: Adam over all parameters at once."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

import numpy
import torch
from thinc.api import NumpyOps, Optimizer
from thinc.optimizers import KeyT
from torch.nn import Embedding
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim.adam import adam

_Parameters = Mapping[KeyT, torch.nn.Parameter]


def can_fuse(optimizer: object, parameters: _Parameters) -> bool:
    """Return whether update_fused does what the optimizer would: plain Adam, float32, CPU."""
    # A subclass may do otherwise
    if type(optimizer) is not Optimizer:
        return False
    if optimizer.use_radam or optimizer.averages is not None:
        return False
    if optimizer.b1 <= 0.0 or optimizer.b2 <= 0.0:
        return False
    return all(
        _is_plain(parameter) and _is_plain(cast(torch.Tensor, parameter.grad))
        for parameter in parameters.values()
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()


def clip_gradients(model: torch.nn.Module, max_norm: float) -> None:
    """Scale the gradients of a model down to a norm, as torch.nn.utils.clip_grad_norm_ does.

    g = g min(1, max_norm / (||g|| + 1e-6)), without the product where the factor is 1

    max_norm (float): the largest norm of all gradients together.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
    norm = get_total_norm([cast(torch.Tensor, parameter.grad) for parameter in parameters])
    # Also not a number is clipped, as there
    if not norm + 1e-6 <= max_norm:
        clip_grads_with_norm_(parameters, max_norm, norm)


@torch.no_grad()
def update_fused(optimizer: Optimizer, parameters: _Parameters) -> None:
    """Change parameters in place as the optimizer would, but for rounding.

        g = clip(g + L2 w),  m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g²
        w = w - lr √(1 - b2ᵗ) / (1 - b1ᵗ) · m / (√v + eps), or with L2 as weight decay, then w = w -
        lr L2 w

    The moments m, v and the step t of each parameter are kept in the optimizer, which may go on
    alone at any step.

    parameters (dict): see can_fuse. Their gradients g are changed too: zero them.
    SOURCE: Kingma and Ba 2015, Adam: A Method for Stochastic Optimization, the last lines of
        section 2; thinc.optimizers.Optimizer, thinc.backends.numpy_ops.
    """
    # A parameter without gradient makes no step, so that they differ
    by_step: dict[int, dict[KeyT, torch.nn.Parameter]] = defaultdict(dict)
    for key, parameter in parameters.items():
        optimizer.nr_update[key] += 1
        by_step[optimizer.nr_update[key]][key] = parameter
    for step, group in by_step.items():
        _update_group(optimizer, step, group)


def _update_group(optimizer: Optimizer, step: int, group: _Parameters) -> None:
    """Update parameters that are at the same step."""
    weights: list[torch.Tensor] = list(group.values())
    gradients = [cast(torch.Tensor, weight.grad) for weight in weights]
    decay = optimizer.L2
    if decay and not optimizer.L2_is_weight_decay:
        for gradient, weight in zip(gradients, weights, strict=True):
            gradient.add_(weight, alpha=decay)
    if optimizer.grad_clip:
        for gradient in gradients:
            # PyTorch's norm of as many values is off by 5e-4
            NumpyOps().clip_gradient(gradient.numpy(), optimizer.grad_clip)
    correction = (1 - optimizer.b2**step) ** 0.5 / (1 - optimizer.b1**step)
    # The learning rate is corrected already, and eps is not: at infinity 1 - b ** step = 1
    no_steps = [torch.tensor(torch.inf)] * len(group)
    adam(
        weights,
        gradients,
        [_moment(optimizer.mom1, key, parameter) for key, parameter in group.items()],
        [_moment(optimizer.mom2, key, parameter) for key, parameter in group.items()],
        [],
        no_steps,
        fused=True,
        amsgrad=False,
        # 1 - 0.999 in float32, as Thinc has it, is off by 1e-5
        beta1=float(numpy.float32(optimizer.b1)),
        beta2=float(numpy.float32(optimizer.b2)),
        lr=optimizer.learn_rate * correction,
        weight_decay=0.0,
        eps=optimizer.eps,
        maximize=False,
    )
    if decay and optimizer.L2_is_weight_decay:
        for weight in weights:
            weight.add_(weight, alpha=-optimizer.learn_rate * decay)


def _moment(moments: dict[KeyT, Any], key: KeyT, weights: torch.Tensor) -> torch.Tensor:
    """Return the optimizer's array, as a tensor on the same memory."""
    if key not in moments:
        moments[key] = numpy.zeros(weights.numel(), dtype="float32")
    return torch.from_numpy(moments[key]).view_as(weights)


def clear_gradients(model: torch.nn.Module) -> None:
    """Drop the gradients of a model, and set those of its tables to zero.

    The next gradient is then stored, instead of being added to zeros. To that of a table only the
    rows of a batch are added.
    """
    tables = {id(module.weight) for module in model.modules() if isinstance(module, Embedding)}
    for parameter in model.parameters():
        if id(parameter) in tables and parameter.grad is not None:
            parameter.grad.zero_()
        else:
            parameter.grad = None
