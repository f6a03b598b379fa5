"""The forward pass of training for BERT-like encoders: packed rows, dropout and gradients."""

from typing import Any, TypeAlias

import numpy
import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..encoder_checks import padding_id
from ..loading import Network
from ..tokenization import TokenizedBatch
from .bert_families import (
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    N_HEADS,
    NORMS,
    OUTPUT,
    QUERY_KEY_VALUE,
    Layer,
    TorchModule,
    layers_of,
    relative_bias_of,
)
from .packed_bert import BertForward, BertLayer
from .packing import Batch, lay_out, pack, places_for, width_for, with_places

# An autograd.function.FunctionCtx, with attributes of the function
_Context: TypeAlias = Any
# Of the probability of dropout
_STEPS = 2**16


def _linear(module: TorchModule, x: torch.Tensor) -> torch.Tensor:
    """X W' + b. The gradient of W is made as it lies in memory, in a tenth of the time."""
    if not x.is_cpu:
        return module(x)
    dtype = x.dtype
    if torch.is_autocast_enabled("cpu") and dtype != torch.float64:
        dtype = torch.get_autocast_dtype("cpu")
    return _Linear.apply(x, module.weight, module.bias, dtype)


class _Linear(torch.autograd.Function):
    """X W' + b in a dtype, and the gradients in the dtypes of X and W."""

    @staticmethod
    def forward(
        ctx: _Context,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        ctx.x_dtype = x.dtype
        ctx.weight_dtype = weight.dtype
        x = x.to(dtype)
        weight = weight.to(dtype)
        if bias is not None:
            bias = bias.to(dtype)
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, d_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_rows = d_output.reshape(-1, weight.shape[0])
        d_x = None
        d_weight = None
        d_bias = None
        if ctx.needs_input_grad[0]:
            d_x = (d_rows @ weight).view_as(x).to(ctx.x_dtype)
        if ctx.needs_input_grad[1]:
            d_weight = (d_rows.t() @ x.reshape(-1, weight.shape[1])).to(ctx.weight_dtype)
        if ctx.needs_input_grad[2]:
            d_bias = d_rows.sum(0, dtype=ctx.weight_dtype)
        return d_x, d_weight, d_bias, None


def _embedding(module: TorchModule, ids: torch.Tensor) -> torch.Tensor:
    """Return rows of a table; only theirs are added to its gradient, see dense_gradient."""
    if not ids.is_cpu:
        return module(ids)
    return functional.embedding(ids, module.weight, module.padding_idx, sparse=True)


def dense_gradient(module: TorchModule) -> None:
    """Give a table a gradient of zeros if it has none, to which sparse ones are added in place."""
    if module.weight.is_cpu and module.weight.requires_grad and module.weight.grad is None:
        module.weight.grad = torch.zeros_like(module.weight)


def _dropout(module: TorchModule, x: torch.Tensor) -> torch.Tensor:
    """Drop out by 16 random bits a number (PyTorch: 64); probabilities are multiples of 2^-16."""
    drops = module.training and isinstance(module, torch.nn.Dropout) and 0.0 < module.p < 1.0
    if not x.is_cpu or not drops:
        return module(x)
    return x * _kept(x, module.p)


def _kept(like: torch.Tensor, p: float) -> torch.Tensor:
    """0 with the probability p, else 1 / (1 - p); of the shape and dtype of like."""
    n_dropped = round(p * _STEPS)
    size = like.numel()
    words = torch.empty((size + 3) // 4, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = words.view(torch.int16)[:size].view(like.shape)
    is_kept = bits >= n_dropped - _STEPS // 2
    return is_kept.to(like.dtype).mul_(_STEPS / (_STEPS - n_dropped))


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, p: float
) -> torch.Tensor:
    """softmax(q k' / √d + mask) v, with dropout of the softmax by p.

    q, k, v: (rows, heads, width, d).
    """
    if not query.is_cpu or not 0.0 < p < 1.0:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=p
        )
    with torch.autocast("cpu", enabled=False):
        scores = query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1) + mask
        weights = scores.softmax(-1)
        return weights * _kept(weights, p) @ value


def packed_states(
    model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray
) -> torch.Tensor:
    """Return the states of windows, float (sum of lengths, hidden), several windows a row."""
    lengths = wordpieces.lengths[windows]
    packing = pack(lengths, one_width=True)
    n_rows = len(packing.widths)
    width = int((packing.column_of + lengths).max())
    n_places = n_rows * width
    # Of those who multiply, only oneDNN, in bfloat16 on the CPU, keeps a kernel for each shape.
    if torch.is_autocast_enabled("cpu"):
        width = width_for(width)
        n_places = places_for(n_rows * width)
    batch = Batch(windows, packing.row_of * width + packing.column_of, (n_rows, width))
    ids, columns, types, owners = lay_out(wordpieces, batch, model.device, padding_id(model))
    padding = getattr(model.embeddings, "padding_idx", None)
    states = _BertInTraining(model).forward(
        ids, columns, types, owners, padding=padding, n_places=n_places
    )
    return states.index_select(0, batch.places(lengths).to(model.device))


class _BertInTraining(BertForward):
    """The forward pass with dropout and with gradients, by the modules of a Hugging Face model."""

    def __init__(self, model: Network):
        self.model = model
        self.layers = [_LayerInTraining(layer) for layer in layers_of(model)]
        self.relative_bias = relative_bias_of(model)

    def embed(
        self, ids: torch.Tensor, positions: torch.Tensor, types: torch.Tensor | None
    ) -> torch.Tensor:
        embeddings = self.model.embeddings
        added = _embedding(embeddings.word_embeddings, ids)
        if hasattr(embeddings, "token_type_embeddings"):
            added = added + embeddings.token_type_embeddings(types)
        added = added + embeddings.position_embeddings(positions)
        return _dropout(embeddings.dropout, embeddings.LayerNorm(added))

    def project(self, states: torch.Tensor) -> torch.Tensor:
        if not hasattr(self.model, "embeddings_project"):
            return states
        return _linear(self.model.embeddings_project, states)


class _LayerInTraining(BertLayer):
    def __init__(self, layer: Layer):
        self.modules = layer
        self.attention_norm, self.output_norm = (layer[name] for name in NORMS)

    def attend(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        n_rows, width = added_scores.shape[::3]
        n_places = n_rows * width
        query, key, value = (
            _linear(self.modules[name], states)[:n_places]
            .view(n_rows, width, self.modules[N_HEADS], -1)
            .transpose(1, 2)
            for name in QUERY_KEY_VALUE
        )
        dropout = self.modules["attention.self.dropout"]
        p = dropout.p if dropout.training else 0.0
        attended = _attention(query, key, value, added_scores.to(query.dtype), p)
        return with_places(attended.transpose(1, 2).reshape(n_places, -1), len(states))

    def attention_output(self, attended: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        mixed = _linear(self.modules[ATTENTION_OUTPUT], attended)
        return _dropout(self.modules["attention.output.dropout"], mixed) + states

    def intermediate(self, states: torch.Tensor) -> torch.Tensor:
        activation = self.modules["intermediate.intermediate_act_fn"]
        return activation(_linear(self.modules[INTERMEDIATE], states))

    def output(self, widened: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        narrowed = _linear(self.modules[OUTPUT], widened)
        return _dropout(self.modules["output.dropout"], narrowed) + states
