"""Training of a transformer: its forward and backward pass, packed if it is BERT-like."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import cast

import numpy
import torch
from thinc.api import torch2xp
from thinc.types import Floats2d

from ..loading import Network
from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from ..transformers_versions import is_checkpointing
from .bert_families import is_packable
from .huggingface import call
from .packed_training import dense_gradient, packed_states
from .packing import single_batch

_Forward = tuple[list[TokenEmbeddings], Callable[[list[torch.Tensor]], None]]
# A CPU is busy with as many; rows of other lengths would be padding
CPU_ROWS = 8


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """Compute in half precision where PyTorch deems it safe; in float32 nothing changes."""
    if precision == "float32":
        return nullcontext()
    if precision == "float16" and device.type == "cpu":
        raise ValueError(
            'precision = "float16" needs a GPU, and the CPU is in use: set precision = "bfloat16" '
            'or "float32", or run on a GPU (--gpu-id 0).'
        )
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def plain_forward(model: Network, wordpieces: TokenizedBatch, *, precision: str) -> _Forward:
    """Encode windows, and keep what the backward pass needs.

    precision (str): "float32", "bfloat16" or "float16".
    RETURNS (list[TokenEmbeddings], Callable): float32; the callback takes the gradients of their
        values and adds to those of the parameters.
    """
    is_packed = _is_packed(model)
    states_of = packed_states if is_packed else _padded_states
    size = len(wordpieces.lengths)
    if model.device.type == "cpu" and not is_packed:
        size = CPU_ROWS
    groups = _by_length(wordpieces, size)
    # Around all groups: weights are cast once
    with autocast(model.device, precision):
        values = [states_of(model, wordpieces, windows).float() for windows in groups]
    states = [
        _embeddings(wordpieces, windows, own) for windows, own in zip(groups, values, strict=True)
    ]

    def backward(d_values: list[torch.Tensor]) -> None:
        _backward(model, values, d_values, is_packed=is_packed)

    return states, backward


def cached_forward(
    model: Network, wordpieces: TokenizedBatch, *, precision: str, mini_batch_size: int
) -> _Forward:
    """Encode a batch whose activations would not fit in memory: mini-batch by mini-batch, twice.

    The first pass keeps nothing but the states. The callback runs each mini-batch again, with the
    same dropout, and takes the gradient back before the next one: the gradient is that of the whole
    batch at once.

    mini_batch_size (int): the windows in a mini-batch. The others, and what is returned: see
        plain_forward.
    SOURCE: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited
        Setup, section 3.2.
    """
    is_packed = _is_packed(model)
    states_of = packed_states if is_packed else _padded_states
    groups = _by_length(wordpieces, mini_batch_size)
    states = []
    random_states = []
    for windows in groups:
        random_states.append(_random_states(model.device))
        with torch.no_grad(), autocast(model.device, precision):
            values = states_of(model, wordpieces, windows).float()
        states.append(_embeddings(wordpieces, windows, values))

    def backward(d_values: list[torch.Tensor]) -> None:
        for windows, random_state, d_own in zip(groups, random_states, d_values, strict=True):
            same_numbers = _same_random_numbers(model.device, random_state)
            with same_numbers, autocast(model.device, precision):
                values = states_of(model, wordpieces, windows).float()
            _backward(model, [values], [d_own], is_packed=is_packed)

    return states, backward


# The state of the CPU's generator, and that of a GPU's, if a model is on one
_RandomStates = tuple[torch.Tensor, torch.Tensor | None]


def _random_states(device: torch.device) -> _RandomStates:
    of_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return torch.get_rng_state(), of_gpu


@contextmanager
def _same_random_numbers(device: torch.device, states: _RandomStates) -> Iterator[None]:
    """Draw random numbers as after _random_states in a with block."""
    of_cpu, of_gpu = states
    with torch.random.fork_rng([] if of_gpu is None else [device]):
        torch.set_rng_state(of_cpu)
        if of_gpu is not None:
            torch.cuda.set_rng_state(of_gpu, device)
        yield


def _by_length(wordpieces: TokenizedBatch, size: int) -> list[numpy.ndarray]:
    """Return the windows, sorted by length, in groups of a size."""
    order = numpy.argsort(wordpieces.lengths, kind="stable")
    return [order[first : first + size] for first in range(0, len(order), size)]


def _padded_states(
    model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray
) -> torch.Tensor:
    """Return the states of windows, float (sum of lengths, hidden), by Hugging Face's own class."""
    batch = single_batch(wordpieces.lengths, windows)
    padded = call(model, wordpieces, batch).last_hidden_state
    places = batch.places(wordpieces.lengths[windows]).to(model.device)
    return padded.flatten(0, 1).index_select(0, places)


def _backward(
    model: Network, states: list[torch.Tensor], d_states: list[torch.Tensor], *, is_packed: bool
) -> None:
    """Add the gradients of the parameters to those that they have."""
    # Else every parameter is frozen
    if states[0].requires_grad:
        if is_packed:
            dense_gradient(model.embeddings.word_embeddings)
        torch.autograd.backward(states, d_states)


def _embeddings(
    wordpieces: TokenizedBatch, windows: numpy.ndarray, values: torch.Tensor
) -> TokenEmbeddings:
    """Return the states of some windows as arrays, without their graph of gradients."""
    array = cast(Floats2d, torch2xp(values.detach()))
    return TokenEmbeddings(windows, wordpieces.lengths[windows], array)


def _is_packed(model: Network) -> bool:
    return is_packable(model) and not is_checkpointing(model)
