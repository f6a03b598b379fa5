"""Packed forward pass of BERT in training."""

from typing import Any, TypeAlias

import numpy
import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..tokenization import TokenizedBatch
from ..versions import Module, Network
from .packed_bert import LayerModules, attention_bias, distance_bias, layers_of, position_padding
from .packing import (
    PLACES_APART,
    Batch,
    lay_out,
    on_device,
    pack,
    positions_after,
    ragged_arange,
    width_for,
    with_places,
)

Context: TypeAlias = Any  # an autograd.function.FunctionCtx, with attributes of the function
STEPS = 2**16  # of the probability of dropout


def linear(module: Module, x: torch.Tensor) -> torch.Tensor:
    """X W' + b, whose gradient of W is made as it lies in memory, (out, in).

    PyTorch makes (in, out), and to cast and to add this takes ten times as long.

    module (torch.nn.Linear): W and b.
    """
    return _Linear.apply(x, module.weight, module.bias, _dtype_of(x)) if x.is_cpu else module(x)


def embedding(module: Module, ids: torch.Tensor) -> torch.Tensor:
    """Return the rows of a table, to whose gradient those of the rows alone are added.

    PyTorch's dense gradient is as large as the vocabulary, of zeros for the most part. Call dense_gradient before the
    backward pass.

    module (torch.nn.Embedding): the table.
    """
    return functional.embedding(ids, module.weight, module.padding_idx, sparse=True) if ids.is_cpu else module(ids)


def dense_gradient(module: Module) -> None:
    """Give a table a gradient of zeros if it has none, to which sparse ones are added in place."""
    if module.weight.is_cpu and module.weight.requires_grad and module.weight.grad is None:
        module.weight.grad = torch.zeros_like(module.weight)


def dropout(module: Module, x: torch.Tensor) -> torch.Tensor:
    """Drop out by 16 random bits a number, where PyTorch takes 64: probabilities are multiples of 2^-16.

    module (torch.nn.Dropout): its probability and its mode; or an Identity.
    """
    p = module.p if module.training and isinstance(module, torch.nn.Dropout) else 0.0
    return x * _kept(x, p) if x.is_cpu and 0.0 < p < 1.0 else module(x)


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, p: float
) -> torch.Tensor:
    """softmax(q k' / √d + mask) v, with dropout of the softmax.

    query, key, value: (rows, heads, width, d). mask: of the same dtype. p (float): the probability of dropout.
    """
    if not query.is_cpu or not 0.0 < p < 1.0:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)
    with torch.autocast("cpu", enabled=False):
        scores = query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1) + mask
        weights = scores.softmax(-1)
        return weights * _kept(weights, p) @ value


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype
    ) -> torch.Tensor:
        ctx.given = x.dtype, weight.dtype
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, None if bias is None else bias.to(dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, d_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
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


def _dtype_of(x: torch.Tensor) -> torch.dtype:
    """In which PyTorch multiplies this: that of autocast, if it is on."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") and x.dtype != torch.float64 else x.dtype


def _kept(like: torch.Tensor, p: float) -> torch.Tensor:
    """0 with the probability p, else 1 / (1 - p); of the shape and dtype of like."""
    dropped, size = round(p * STEPS), like.numel()
    words = torch.empty((size + 3) // 4, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = words.view(torch.int16)[:size].view(like.shape)
    return (bits >= dropped - STEPS // 2).to(like.dtype) * (STEPS / (STEPS - dropped))


def packed_states(model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray) -> torch.Tensor:
    """Encode windows without padding: several of them stand in a row.

    model: see is_packable; its dropout is as its mode says.
    windows (int64 (k,)): which of the wordpieces' windows.
    RETURNS (float (sum of lengths, hidden)): their states, one window after another, part of the graph.
    """
    lengths = wordpieces.lengths[windows]
    packing = pack(lengths, one_width=True)
    longest = (packing.column_of + lengths).max()
    # Of those who multiply, only oneDNN, in bfloat16 on the CPU, keeps a kernel for each shape.
    few_shapes = torch.is_autocast_enabled("cpu")
    width = width_for(longest) if few_shapes else int(longest)
    rows = Batch(windows, packing.row_of * width + packing.column_of, (len(packing.widths), width))
    arrays = lay_out(wordpieces, rows, model.config.pad_token_id or 0)
    ids, columns, types, owners = on_device(arrays, model.device)
    states = _embed(model, ids, columns, types, owners).flatten(0, 1)
    states = with_places(states, len(states) + (-len(states) % PLACES_APART if few_shapes else 0))
    added_scores = attention_bias(owners, distance_bias(model), states.dtype)
    for parts in layers_of(model):
        states = _layer(parts, states, added_scores)
    return states.index_select(0, torch.from_numpy(ragged_arange(rows.starts, lengths)).to(model.device))


def _embed(
    model: Network, ids: torch.Tensor, columns: torch.Tensor, types: torch.Tensor, owners: torch.Tensor
) -> torch.Tensor:
    embeddings, padding = model.embeddings, position_padding(model)
    positions = columns if padding is None else positions_after(padding, ids, columns, owners)
    added = embedding(embeddings.word_embeddings, ids)
    if hasattr(embeddings, "token_type_embeddings"):
        added = added + embeddings.token_type_embeddings(types)
    states = dropout(embeddings.dropout, embeddings.LayerNorm(added + embeddings.position_embeddings(positions)))
    return linear(model.embeddings_project, states) if hasattr(model, "embeddings_project") else states


def _layer(parts: LayerModules, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """states: (places, hidden), those of the rows and maybe more; added_scores: (rows, 1 or heads, width, width)."""
    n_rows, width = added_scores.shape[::3]
    n_places, projections = n_rows * width, (parts.query, parts.key, parts.value)
    query, key, value = (
        linear(projection, states)[:n_places].view(n_rows, width, parts.n_heads, -1).transpose(1, 2)
        for projection in projections
    )
    p = parts.drop_scores.p if parts.drop_scores.training else 0.0
    attended = attention(query, key, value, added_scores.to(query.dtype), p)
    attended = with_places(attended.transpose(1, 2).reshape(n_places, -1), len(states))
    mixed = parts.norm_mixed(dropout(parts.drop_mixed, linear(parts.mix, attended)) + states)
    widened = parts.activate(linear(parts.widen, mixed))
    return parts.norm_output(dropout(parts.drop_output, linear(parts.narrow, widened)) + mixed)
