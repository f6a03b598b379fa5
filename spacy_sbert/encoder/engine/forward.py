"""The forward pass of training: in the precision asked for, without work on padding, and within the memory there is."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, cast

import numpy
import torch
from thinc.api import torch2xp
from thinc.types import Floats2d

from ..errors import Errors
from ..hugging_face import Network
from ..states import States
from ..versions import recomputes_states
from ..wordpieces import Wordpieces
from .cpu_training import dense_gradient
from .layout import padded_inputs
from .packed_bert import is_packable
from .packed_training import packed_states
from .passes import one_pass
from .windows import spread

Backward = Callable[[list[torch.Tensor]], None]
CPU_ROWS = 8  # a CPU is busy with as many; rows of other lengths would be padding


class Forward(Protocol):
    def __call__(self, model: Network, wordpieces: Wordpieces, *, precision: str) -> tuple[list[States], Backward]: ...


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """Arithmetic in half precision where PyTorch deems it safe; nothing for float32.

    RAISES (ValueError): for float16 on a CPU.
    """
    if precision == "float32":
        return nullcontext()
    if precision == "float16" and device.type == "cpu":
        raise ValueError(Errors.FLOAT16_ON_CPU)
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def plain_forward(model: Network, wordpieces: Wordpieces, *, precision: str) -> tuple[list[States], Backward]:
    """Encode windows and keep what their backward pass needs. They are packed if is_packable says so; else on a CPU
    those of similar length are encoded together.

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
    model: Network, wordpieces: Wordpieces, *, precision: str, mini_batch_size: int
) -> tuple[list[States], Backward]:
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


def _by_length(wordpieces: Wordpieces, size: int) -> list[numpy.ndarray]:
    """The windows, sorted by length, in groups of a size."""
    order = numpy.argsort(wordpieces.lengths, kind="stable")
    return [order[first : first + size] for first in range(0, len(order), size)]


def _values_of(model: Network, wordpieces: Wordpieces, windows: numpy.ndarray, precision: str) -> torch.Tensor:
    """The states of some windows, float32 (sum of lengths, hidden)."""
    with autocast(model.device, precision):
        if _is_packed(model):
            return packed_states(model, wordpieces, windows).float()
        rows = one_pass(wordpieces.lengths, windows)
        padded = model(**padded_inputs(model, wordpieces, model.device, rows)).last_hidden_state
    places = torch.from_numpy(spread(rows.starts, wordpieces.lengths[windows])).to(model.device)
    return padded.float().flatten(0, 1).index_select(0, places)


def _backward(model: Network, states: list[torch.Tensor], d_states: list[torch.Tensor]) -> None:
    if _is_packed(model):
        dense_gradient(model.embeddings.word_embeddings)
    torch.autograd.backward(states, d_states)


def _states(wordpieces: Wordpieces, windows: numpy.ndarray, values: torch.Tensor) -> States:
    return States(windows, wordpieces.lengths[windows], cast(Floats2d, torch2xp(values.detach())))


def _is_packed(model: Network) -> bool:
    return is_packable(model) and not recomputes_states(model)
