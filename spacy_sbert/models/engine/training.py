"""Training of a transformer: forward pass, gradients and steps, packed if it is BERT-like."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias, cast

import numpy
import torch
from thinc.api import NumpyOps, Optimizer, torch2xp
from thinc.optimizers import KeyT
from thinc.types import Floats2d
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.optim.adam import adam

from ..encoder_checks import padding_id
from ..loading import Network
from ..span_batch import TokenEmbeddings
from ..tokenization import TokenizedBatch
from ..transformers_versions import is_checkpointing
from .bert_families import (
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    N_HEADS,
    NORMS,
    OUTPUT,
    QUERY_KEY_VALUE,
    Layer,
    Module,
    is_packable,
    layers_of,
    relative_bias_of,
)
from .huggingface import call
from .packed_bert import BertForward, BertLayer
from .packing import (
    PLACES_APART,
    Batch,
    lay_out,
    pack,
    ragged_arange,
    single_batch,
    width_for,
    with_places,
)

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
            "or "
            '"float32", or run on a GPU (--gpu-id 0).'
        )
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def plain_forward(model: Network, wordpieces: TokenizedBatch, *, precision: str) -> _Forward:
    """Encode windows, and keep what the backward pass needs.

    precision (str): "float32", "bfloat16" or "float16".
    RETURNS (list[TokenEmbeddings], Callable): float32; the callback takes the gradients of their
        values and adds to those of the parameters.
    """
    n = len(wordpieces.lengths)
    groups = _by_length(
        wordpieces, CPU_ROWS if model.device.type == "cpu" and not _is_packed(model) else n
    )
    # Around all groups: weights are cast once
    with autocast(model.device, precision):
        found = [_values_of(model, wordpieces, windows, precision) for windows in groups]

    def backward(d_values: list[torch.Tensor]) -> None:
        _backward(model, found, d_values)

    return [
        _states(wordpieces, windows, values) for windows, values in zip(groups, found, strict=True)
    ], backward


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
    groups = _by_length(wordpieces, mini_batch_size)
    devices = [model.device] if model.device.type == "cuda" else []
    states, generators = [], []
    for windows in groups:
        generators.append(
            (torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices])
        )
        with torch.no_grad():
            states.append(
                _states(wordpieces, windows, _values_of(model, wordpieces, windows, precision))
            )

    def backward(d_values: list[torch.Tensor]) -> None:
        for windows, (generator, of_devices), d_own in zip(
            groups, generators, d_values, strict=True
        ):
            with torch.random.fork_rng(devices):
                torch.set_rng_state(generator)
                for device, state in zip(devices, of_devices, strict=True):
                    torch.cuda.set_rng_state(state, device)
                found = _values_of(model, wordpieces, windows, precision)
            _backward(model, [found], [d_own])

    return states, backward


def _by_length(wordpieces: TokenizedBatch, size: int) -> list[numpy.ndarray]:
    """Return the windows, sorted by length, in groups of a size."""
    order = numpy.argsort(wordpieces.lengths, kind="stable")
    return [order[first : first + size] for first in range(0, len(order), size)]


def _values_of(
    model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray, precision: str
) -> torch.Tensor:
    """Return the states of some windows, float32 (sum of lengths, hidden)."""
    with autocast(model.device, precision):
        if _is_packed(model):
            return _packed_states(model, wordpieces, windows).float()
        batch = single_batch(wordpieces.lengths, windows)
        padded = call(model, wordpieces, batch).last_hidden_state
    places = _places_of(batch, wordpieces).to(model.device)
    return padded.float().flatten(0, 1).index_select(0, places)


def _backward(model: Network, states: list[torch.Tensor], d_states: list[torch.Tensor]) -> None:
    # Else every parameter is frozen
    if states[0].requires_grad:
        if _is_packed(model):
            _dense_gradient(model.embeddings.word_embeddings)
        torch.autograd.backward(states, d_states)


def _states(
    wordpieces: TokenizedBatch, windows: numpy.ndarray, values: torch.Tensor
) -> TokenEmbeddings:
    return TokenEmbeddings(
        windows, wordpieces.lengths[windows], cast(Floats2d, torch2xp(values.detach()))
    )


def _is_packed(model: Network) -> bool:
    return is_packable(model) and not is_checkpointing(model)


# Packed rows

# An autograd.function.FunctionCtx, with attributes of the function
_Context: TypeAlias = Any
# Of the probability of dropout
_STEPS = 2**16


def _linear(module: Module, x: torch.Tensor) -> torch.Tensor:
    """X W' + b. The gradient of W is made as it lies in memory, in a tenth of the time."""
    if not x.is_cpu:
        return module(x)
    is_cast = torch.is_autocast_enabled("cpu") and x.dtype != torch.float64
    return _Linear.apply(
        x, module.weight, module.bias, torch.get_autocast_dtype("cpu") if is_cast else x.dtype
    )


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _Context,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        ctx.given = x.dtype, weight.dtype
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, None if bias is None else bias.to(dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, d_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
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


def _embedding(module: Module, ids: torch.Tensor) -> torch.Tensor:
    """Return rows of a table; only theirs are added to its gradient, see _dense_gradient."""
    return (
        functional.embedding(ids, module.weight, module.padding_idx, sparse=True)
        if ids.is_cpu
        else module(ids)
    )


def _dense_gradient(module: Module) -> None:
    """Give a table a gradient of zeros if it has none, to which sparse ones are added in place."""
    if module.weight.is_cpu and module.weight.requires_grad and module.weight.grad is None:
        module.weight.grad = torch.zeros_like(module.weight)


def _dropout(module: Module, x: torch.Tensor) -> torch.Tensor:
    """Drop out by 16 random bits a number (PyTorch: 64); probabilities are multiples of 2^-16."""
    p = module.p if module.training and isinstance(module, torch.nn.Dropout) else 0.0
    return x * _kept(x, p) if x.is_cpu and 0.0 < p < 1.0 else module(x)


def _kept(like: torch.Tensor, p: float) -> torch.Tensor:
    """0 with the probability p, else 1 / (1 - p); of the shape and dtype of like."""
    dropped, size = round(p * _STEPS), like.numel()
    words = torch.empty((size + 3) // 4, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = words.view(torch.int16)[:size].view(like.shape)
    return (bits >= dropped - _STEPS // 2).to(like.dtype) * (_STEPS / (_STEPS - dropped))


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


def _places_of(batch: Batch, wordpieces: TokenizedBatch) -> torch.Tensor:
    """Return where the wordpieces of a batch are among its places, int64 (sum of lengths,)."""
    return torch.from_numpy(ragged_arange(batch.starts, wordpieces.lengths[batch.windows]))


def _packed_states(
    model: Network, wordpieces: TokenizedBatch, windows: numpy.ndarray
) -> torch.Tensor:
    """Return the states of windows, float (sum of lengths, hidden), several windows a row."""
    lengths = wordpieces.lengths[windows]
    packing = pack(lengths, one_width=True)
    longest = (packing.column_of + lengths).max()
    # Of those who multiply, only oneDNN, in bfloat16 on the CPU, keeps a kernel for each shape.
    few_shapes = torch.is_autocast_enabled("cpu")
    width = width_for(longest) if few_shapes else int(longest)
    starts = packing.row_of * width + packing.column_of
    batch = Batch(windows, starts, (len(packing.widths), width))
    n_places = len(packing.widths) * width
    if few_shapes:
        n_places = PLACES_APART * math.ceil(n_places / PLACES_APART)
    ids, columns, types, owners = lay_out(wordpieces, batch, model.device, padding_id(model))
    padding = getattr(model.embeddings, "padding_idx", None)
    states = _BertInTraining(model).forward(
        ids, columns, types, owners, padding=padding, n_places=n_places
    )
    return states.index_select(0, _places_of(batch, wordpieces).to(model.device))


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


# Optimizer steps

_Parameters = Mapping[KeyT, torch.nn.Parameter]


def can_fuse(optimizer: object, parameters: _Parameters) -> bool:
    """Return whether update_fused does what the optimizer would: plain Adam, float32, CPU."""
    if type(optimizer) is not Optimizer or optimizer.use_radam or optimizer.averages is not None:
        # A subclass may do otherwise
        return False
    tensors: list[Any] = [
        tensor for parameter in parameters.values() for tensor in (parameter, parameter.grad)
    ]
    is_plain = all(
        tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()
        for tensor in tensors
    )
    return optimizer.b1 > 0.0 and optimizer.b2 > 0.0 and is_plain


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
    steps: dict[int, dict[KeyT, torch.nn.Parameter]] = defaultdict(dict)
    for key, parameter in parameters.items():
        optimizer.nr_update[key] += 1
        steps[optimizer.nr_update[key]][key] = (
            # A parameter without gradient makes no step
            parameter
        )
    for step, group in steps.items():
        _update_group(optimizer, step, group)


def _update_group(optimizer: Optimizer, step: int, group: _Parameters) -> None:
    decay, is_decay = optimizer.L2, optimizer.L2_is_weight_decay
    weights: list[torch.Tensor] = list(group.values())
    gradients = [cast(torch.Tensor, weight.grad) for weight in weights]
    for gradient, weight in zip(gradients, weights, strict=True):
        if decay and not is_decay:
            gradient.add_(weight, alpha=decay)
        # PyTorch's norm of as many values is off by 5e-4
        if optimizer.grad_clip:
            NumpyOps().clip_gradient(gradient.numpy(), optimizer.grad_clip)
    correction = (1 - optimizer.b2**step) ** 0.5 / (1 - optimizer.b1**step)
    # 1 - 0.999 in float32, as Thinc has it, is off by 1e-5
    adam(
        weights,
        gradients,
        [_moment(optimizer.mom1, key, parameter) for key, parameter in group.items()],
        [_moment(optimizer.mom2, key, parameter) for key, parameter in group.items()],
        [],
        [torch.tensor(torch.inf)]
        # steps: 1 - b ** inf = 1, as lr is corrected already, and eps is not
        * len(group),
        fused=True,
        amsgrad=False,
        beta1=float(numpy.float32(optimizer.b1)),
        beta2=float(numpy.float32(optimizer.b2)),
        lr=optimizer.learn_rate * correction,
        weight_decay=0.0,
        eps=optimizer.eps,
        maximize=False,
    )
    if decay and is_decay:
        for weight in weights:
            weight.add_(weight, alpha=-optimizer.learn_rate * decay)


def _moment(moments: dict[KeyT, Any], key: KeyT, weights: torch.Tensor) -> torch.Tensor:
    """Return the optimizer's array, as a tensor on the same memory."""
    if key not in moments:
        moments[key] = numpy.zeros(weights.numel(), dtype="float32")
    return torch.from_numpy(moments[key]).view_as(weights)
