"""Forward pass, gradients and optimizer steps of a transformer in training."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy
import torch
from thinc.api import NumpyOps, Optimizer, torch2xp
from thinc.optimizers import KeyT
from thinc.types import Floats2d
from torch.optim.adam import adam

from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from ..versions import Network, recomputes_states
from .packed_bert import is_packable
from .packed_training import dense_gradient, packed_states
from .packing import padded_inputs, ragged_arange, single_batch

Backward = Callable[[list[torch.Tensor]], None]
CPU_ROWS = 8  # a CPU is busy with as many; rows of other lengths would be padding


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """Arithmetic in half precision where PyTorch deems it safe; nothing for float32.

    RAISES (ValueError): for float16 on a CPU.
    """
    if precision == "float32":
        return nullcontext()
    if precision == "float16" and device.type == "cpu":
        raise ValueError(
            'precision = "float16" needs a GPU, and the CPU is in use: set precision = "bfloat16" or '
            '"float32", or run on a GPU (--gpu-id 0).'
        )
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def plain_forward(
    model: Network, wordpieces: TokenizedBatch, *, precision: str
) -> tuple[list[TokenEmbeddings], Backward]:
    """Encode windows and keep what their backward pass needs.

    They are packed if is_packable is true; else on a CPU those of similar length are encoded together.

    precision (str): "float32", "bfloat16" or "float16".
    RETURNS (list[States], Callable): float32; the callback takes the gradients of their values and adds to those of the
        parameters.
    """
    n = len(wordpieces.lengths)
    groups = _by_length(wordpieces, CPU_ROWS if model.device.type == "cpu" and not _is_packed(model) else n)
    with autocast(model.device, precision):  # around all groups: weights are cast once
        found = [_values_of(model, wordpieces, windows, precision) for windows in groups]

    def backward(d_values: list[torch.Tensor]) -> None:
        if found[0].requires_grad:  # not if every parameter is frozen
            _backward(model, found, d_values)

    return [_states(wordpieces, windows, values) for windows, values in zip(groups, found, strict=True)], backward


def cached_forward(
    model: Network, wordpieces: TokenizedBatch, *, precision: str, mini_batch_size: int
) -> tuple[list[TokenEmbeddings], Backward]:
    """Encode a batch whose activations would not fit in memory: mini-batch by mini-batch, twice.

    The first pass keeps nothing but the states. The callback runs each mini-batch again, with the same dropout, and
    takes the gradient back before the next one: the gradient is that of the whole batch at once.

    mini_batch_size (int): the windows in a mini-batch.
    The others, and what is returned: see plain_forward.
    SOURCE: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, section 3.2.
    """
    groups = _by_length(wordpieces, mini_batch_size)
    devices = [model.device] if model.device.type == "cuda" else []
    states, generators = [], []
    for windows in groups:
        generators.append((torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices]))
        with torch.no_grad():
            states.append(_states(wordpieces, windows, _values_of(model, wordpieces, windows, precision)))

    def backward(d_values: list[torch.Tensor]) -> None:
        for windows, (generator, cuda_generators), d_own in zip(groups, generators, d_values, strict=True):
            with torch.random.fork_rng(devices):
                torch.set_rng_state(generator)
                for device, state in zip(devices, cuda_generators, strict=True):
                    torch.cuda.set_rng_state(state, device)
                found = _values_of(model, wordpieces, windows, precision)
            if found.requires_grad:
                _backward(model, [found], [d_own])

    return states, backward


def _by_length(wordpieces: TokenizedBatch, size: int) -> list[numpy.ndarray]:
    """Return the windows, sorted by length, in groups of a size."""
    order = numpy.argsort(wordpieces.lengths, kind="stable")
    return [order[first : first + size] for first in range(0, len(order), size)]


def _values_of(model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray, precision: str) -> torch.Tensor:
    """Return the states of some windows, float32 (sum of lengths, hidden)."""
    with autocast(model.device, precision):
        if _is_packed(model):
            return packed_states(model, wordpieces, windows).float()
        rows = single_batch(wordpieces.lengths, windows)
        padded = model(**padded_inputs(model, wordpieces, model.device, rows)).last_hidden_state
    places = torch.from_numpy(ragged_arange(rows.starts, wordpieces.lengths[windows])).to(model.device)
    return padded.float().flatten(0, 1).index_select(0, places)


def _backward(model: Network, states: list[torch.Tensor], d_states: list[torch.Tensor]) -> None:
    if _is_packed(model):
        dense_gradient(model.embeddings.word_embeddings)
    torch.autograd.backward(states, d_states)


def _states(wordpieces: TokenizedBatch, windows: numpy.ndarray, values: torch.Tensor) -> TokenEmbeddings:
    return TokenEmbeddings(windows, wordpieces.lengths[windows], cast(Floats2d, torch2xp(values.detach())))


def _is_packed(model: Network) -> bool:
    return is_packable(model) and not recomputes_states(model)


Parameters = Mapping[KeyT, torch.nn.Parameter]


def can_fuse(optimizer: object, parameters: Parameters) -> bool:
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
    """Return the optimizer's array, as a tensor on the same memory."""
    if key not in moments:
        moments[key] = numpy.zeros(weights.numel(), dtype="float32")
    return torch.from_numpy(moments[key]).view_as(weights)


def _is_plain(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()
