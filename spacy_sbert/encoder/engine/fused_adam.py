"""Thinc's Adam on all parameters of a PyTorch model at once, by PyTorch's kernel, which uses all of a CPU's threads."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from thinc.api import NumpyOps, Optimizer
from thinc.optimizers import KeyT
from torch.optim.adam import adam

Parameters = Mapping[KeyT, torch.nn.Parameter]


def can_fuse(optimizer: Any, parameters: Parameters) -> bool:
    """Whether update_fused does what the optimizer would: it is Adam without averages, of float32 on a CPU.

    optimizer (Optimizer): or whatever else is called with key, weights and gradient.
    parameters (dict): by the optimizer's key; all have a gradient.
    RETURNS (bool): False for RAdam, averages, gradient descent (b1 or b2 is 0), or anything that is not Thinc's own.
    """
    return (
        type(optimizer) is Optimizer  # a subclass may do otherwise
        and not optimizer.use_radam
        and optimizer.averages is None
        and optimizer.b1 > 0.0
        and optimizer.b2 > 0.0
        and all(_is_plain(tensor) for p in parameters.values() for tensor in (p, p.grad))
    )


@torch.no_grad()
def update_fused(optimizer: Optimizer, parameters: Parameters) -> None:
    """Change parameters in place as the optimizer would, but for rounding.

        g = clip(g + L2 w),  m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g²
        w = w - lr √(1 - b2ᵗ) / (1 - b1ᵗ) · m / (√v + eps),  or with L2 as weight decay, then w = w - lr L2 w

    The moments m, v and the step t of each parameter are kept in the optimizer, which may go on alone at any step.

    optimizer (Optimizer): with the settings of this step; see can_fuse.
    parameters (dict): float32, by the optimizer's key. Their gradients g are changed too: zero them.
    SOURCE: Kingma and Ba 2015, Adam: A Method for Stochastic Optimization, the last lines of section 2;
        thinc.optimizers.Optimizer, thinc.backends.numpy_ops.
    """
    steps: dict[int, dict[KeyT, torch.nn.Parameter]] = defaultdict(dict)
    for key, parameter in parameters.items():
        optimizer.nr_update[key] += 1
        steps[optimizer.nr_update[key]][key] = parameter  # a parameter without gradient makes no step
    for step, group in steps.items():
        _update_group(optimizer, step, group)


def _update_group(optimizer: Optimizer, step: int, group: Parameters) -> None:
    weights: list[torch.Tensor] = list(group.values())
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if optimizer.L2 and not optimizer.L2_is_weight_decay:
        for gradient, weight in zip(gradients, weights, strict=True):
            gradient.add_(weight, alpha=optimizer.L2)
    if optimizer.grad_clip:
        for gradient in gradients:  # PyTorch's norm of as many values is off by 5e-4
            NumpyOps().clip_gradient(gradient.numpy(), optimizer.grad_clip)
    correction = (1 - optimizer.b2**step) ** 0.5 / (1 - optimizer.b1**step)
    adam(
        weights,
        gradients,
        [_moment(optimizer.mom1, key, parameter) for key, parameter in group.items()],
        [_moment(optimizer.mom2, key, parameter) for key, parameter in group.items()],
        [],
        [torch.tensor(torch.inf)] * len(group),  # steps: 1 - b ** inf = 1, as lr is corrected already, and eps is not
        fused=True,
        amsgrad=False,
        beta1=float(numpy.float32(optimizer.b1)),  # 1 - 0.999 in float32, as Thinc has it, is off by 1e-5
        beta2=float(numpy.float32(optimizer.b2)),
        lr=optimizer.learn_rate * correction,
        weight_decay=0.0,
        eps=optimizer.eps,
        maximize=False,
    )
    if optimizer.L2 and optimizer.L2_is_weight_decay:
        for weight in weights:
            weight.add_(weight, alpha=-optimizer.learn_rate * optimizer.L2)


def _moment(moments: dict[KeyT, Any], key: KeyT, weights: torch.Tensor) -> torch.Tensor:
    """The optimizer's array, as a tensor on the same memory."""
    if key not in moments:
        moments[key] = numpy.zeros(weights.numel(), dtype="float32")
    return torch.from_numpy(moments[key]).view_as(weights)


def _is_plain(tensor: Any) -> bool:
    return tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()
