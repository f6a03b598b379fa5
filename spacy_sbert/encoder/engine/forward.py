"""The forward pass of training: in the precision asked for, without work on padding, and within the memory there is."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from transformers.file_utils import ModelOutput

from ..errors import Errors
from .packed_bert import is_packable
from .packed_training import packed_states

Backward = Callable[[torch.Tensor], None]
Inputs = dict[str, torch.Tensor]
CPU_ROWS = 8  # a CPU is busy with as many; rows of other lengths would be padding


class Forward(Protocol):
    def __call__(self, model: Any, inputs: Inputs, *, precision: str) -> tuple[ModelOutput, Backward]: ...


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """Arithmetic in half precision where PyTorch deems it safe; nothing for float32.

    RAISES (ValueError): for float16 on a CPU.
    """
    if precision == "float32":
        return nullcontext()
    if precision == "float16" and device.type == "cpu":
        raise ValueError(Errors.FLOAT16_ON_CPU)
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def plain_forward(model: Any, inputs: Inputs, *, precision: str) -> tuple[ModelOutput, Backward]:
    """Encode a batch and keep what its backward pass needs. Rows are packed if the encoder is like BERT; else on a CPU
    those of similar length are encoded together.

    inputs (dict): input_ids, attention_mask and the like, int64 (rows, wordpieces).
    precision (str): "float32", "bfloat16" or "float16".
    RETURNS (ModelOutput, Callable): with last_hidden_state, float32 (rows, wordpieces, width), without meaning at
        padding; the callback takes the gradient of it, zero at padding, and adds to those of the parameters.
    """
    n_rows = len(inputs["input_ids"])
    parts = _parts(inputs, CPU_ROWS if model.device.type == "cpu" and not _is_packed(model) else n_rows)
    with autocast(model.device, precision):  # around all parts: weights are cast once
        found = [_states_of(model, inputs, part, precision) for part in parts]
    states = _empty_states(model, inputs)
    for part, of_part in zip(parts, found, strict=True):
        states[part, : of_part.shape[1]] = of_part.detach()

    def backward(d_states: torch.Tensor) -> None:
        if found[0].requires_grad:  # not if every parameter is frozen
            gradients = [d_states[part, : of_part.shape[1]] for part, of_part in zip(parts, found, strict=True)]
            torch.autograd.backward(found, gradients)

    return ModelOutput(last_hidden_state=states), backward


def cached_forward(model: Any, inputs: Inputs, *, precision: str, mini_batch_size: int) -> tuple[ModelOutput, Backward]:
    """Encode a batch whose activations would not fit in memory: mini-batch by mini-batch, twice.

    The first pass keeps nothing but the states. The callback runs each mini-batch again, with the same dropout, and
    takes the gradient back before the next one: the gradient is that of the whole batch at once.

    mini_batch_size (int): the rows in a mini-batch.
    The others, and what is returned: see plain_forward.
    SOURCE: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, section 3.2.
    """
    parts = _parts(inputs, mini_batch_size)
    devices = [model.device] if model.device.type == "cuda" else []
    states = _empty_states(model, inputs)
    generators = []
    for part in parts:
        generators.append((torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices]))
        with torch.no_grad():
            found = _states_of(model, inputs, part, precision)
        states[part, : found.shape[1]] = found

    def backward(d_states: torch.Tensor) -> None:
        for part, (generator, cuda_generators) in zip(parts, generators, strict=True):
            with torch.random.fork_rng(devices):
                torch.set_rng_state(generator)
                for device, state in zip(devices, cuda_generators, strict=True):
                    torch.cuda.set_rng_state(state, device)
                found = _states_of(model, inputs, part, precision)
            if found.requires_grad:
                torch.autograd.backward([found], [d_states[part, : found.shape[1]]])

    return ModelOutput(last_hidden_state=states), backward


def _parts(inputs: Inputs, size: int) -> list[torch.Tensor]:
    """The rows, sorted by length, in parts of a size."""
    lengths = inputs["attention_mask"].sum(dim=1)
    return list(torch.argsort(lengths, stable=True).split(size))


def _empty_states(model: Any, inputs: Inputs) -> torch.Tensor:
    return torch.zeros(*inputs["input_ids"].shape, model.config.hidden_size, device=model.device)


def _states_of(model: Any, inputs: Inputs, rows: torch.Tensor, precision: str) -> torch.Tensor:
    """The states of some rows, float32, without the padding that only other rows need."""
    used = inputs["attention_mask"][rows].any(dim=0).nonzero()
    kept = int(used.max()) + 1  # a row has its special tokens at least
    part = {key: value[rows, :kept] for key, value in inputs.items()}
    with autocast(model.device, precision):
        states = packed_states(model, part) if _is_packed(model) else model(**part).last_hidden_state
    return states.float()


def _is_packed(model: Any) -> bool:
    return is_packable(model) and not model.is_gradient_checkpointing
