"""Operators of training on a CPU: what PyTorch's give, with gradients and random numbers that take less time there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..hugging_face import Network
from ..versions import recomputes_states

STEPS = 2**16  # of the probability of dropout


def training_operators(model: Network) -> AbstractContextManager:
    """Those of CpuOperators, for a forward pass in a with block, where they serve.

    Not on a GPU, and not with gradient checkpointing, whose second pass is outside of the block and would drop other
    numbers than the first.
    """
    return nullcontext() if model.device.type != "cpu" or recomputes_states(model) else CpuOperators()


class CpuOperators(TorchFunctionMode):
    """In a with block: linear layers, embeddings, dropout and attention of PyTorch, made for a CPU's memory.

    linear: the gradient of a weight is made as the weight lies, (out, in). PyTorch makes (in, out), and to cast and to
        add this takes ten times as long.
    embedding: the gradient is added to the rows that were looked up, and autograd has nothing more to add. PyTorch
        makes a matrix for the whole vocabulary, of zeros for the most part.
    dropout: of 16 random bits a number, so that probabilities are multiples of 2^-16. PyTorch takes 64.
    attention: the same with dropout in it.

    Backward passes are those of `backward`, which adds to `.grad`; torch.autograd.grad does not see embeddings.
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        operator = OPERATORS.get(func)
        found = NotImplemented if operator is None else operator(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {})) if found is NotImplemented else found


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
    dtype = _dtype_of(x)
    is_cast = dtype != x.dtype or weight.dtype == dtype  # else PyTorch says what is wrong
    return _Linear.apply(x, weight, bias, dtype) if torch.is_grad_enabled() and is_cast else NotImplemented


def _embedding(
    ids: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    has_gradient = weight.is_leaf and weight.requires_grad and torch.is_grad_enabled()
    if not has_gradient or max_norm is not None or scale_grad_by_freq or sparse:
        return NotImplemented
    return _Embedding.apply(ids, weight, padding_idx)


def _dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return NotImplemented if inplace or not training or not 0.0 < p < 1.0 else x * _kept(x, p)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if is_causal or enable_gqa or not 0.0 < dropout_p < 1.0:
        return NotImplemented
    dtype = _dtype_of(query)
    query, key, value = (each.to(dtype) for each in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    with torch.autocast("cpu", enabled=False):
        scores = query * scale @ key.transpose(-2, -1)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask.to(dtype)
        weights = scores.softmax(-1)
        return weights * _kept(weights, dropout_p) @ value


OPERATORS: dict[Callable, Callable[..., Any]] = {
    functional.linear: _linear,
    functional.embedding: _embedding,
    functional.dropout: _dropout,
    functional.scaled_dot_product_attention: _attention,
}


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype
    ) -> torch.Tensor:
        ctx.given = x.dtype, weight.dtype
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, None if bias is None else bias.to(dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (x, weight), (x_dtype, weight_dtype) = ctx.saved_tensors, ctx.given
        d_rows = d_output.reshape(-1, weight.shape[0])
        d_x = d_weight = d_bias = None
        if ctx.needs_input_grad[0]:
            d_x = (d_rows @ weight).view_as(x).to(x_dtype)
        if ctx.needs_input_grad[1]:
            d_weight = (d_rows.t() @ x.reshape(-1, weight.shape[1])).to(weight_dtype)
        if ctx.needs_input_grad[2]:
            d_bias = d_rows.sum(0, dtype=weight_dtype)
        return d_x, d_weight, d_bias, None


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: torch.Tensor, weight: torch.Tensor, padding_idx: int | None) -> torch.Tensor:
        ctx.save_for_backward(ids)
        ctx.weight, ctx.padding_idx = weight, padding_idx  # not a copy: its gradient is added to
        return functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: torch.Tensor) -> tuple[None, None, None]:
        (ids,), weight = ctx.saved_tensors, ctx.weight
        if ctx.padding_idx is not None:
            d_output = d_output * (ids != ctx.padding_idx).unsqueeze(-1)
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_add_(0, ids.flatten(), d_output.reshape(-1, weight.shape[1]).to(weight.dtype))
        return None, None, None


def _dtype_of(x: torch.Tensor) -> torch.dtype:
    """In which PyTorch multiplies this: that of autocast, if it is on."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") and x.dtype != torch.float64 else x.dtype


def _kept(like: torch.Tensor, p: float) -> torch.Tensor:
    """0 with the probability p, else 1 / (1 - p); of the shape and dtype of like."""
    dropped, size = round(p * STEPS), like.numel()
    words = torch.empty((size + 3) // 4, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = words.view(torch.int16)[:size].view(like.shape)
    return (bits >= dropped - STEPS // 2).to(like.dtype) * (STEPS / (STEPS - dropped))
