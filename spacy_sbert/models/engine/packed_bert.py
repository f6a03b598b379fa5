"""The forward pass of BERT-like encoders on packed rows, and how it is computed in use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy
import torch
from torch.nn import functional

from ..loading import Network
from ..private_attributes import Linear, linear, uses_amx
from ..tokenization import TokenizedBatch
from .bert_families import (
    ATTENTION,
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    N_HEADS,
    NORMS,
    OUTPUT,
    Layer,
    TorchModule,
    activation_of,
    layers_of,
    relative_bias_of,
    weights_of,
)
from .packing import Batch, lay_out, packed_batches, places_for, with_places


def position_ids(
    padding: int | None, ids: torch.Tensor, columns: torch.Tensor, windows: torch.Tensor
) -> torch.Tensor:
    """Return columns, or for RoBERTa and MPNet positions from padding + 1 on."""
    if padding is None:
        return columns
    # Wordpieces of texts that spell the padding have no position of their own. All rows are
    # computed: to know whether there are any, the host would wait for the GPU.
    spelled = ((ids == padding) & (windows >= 0)).long()
    # Before each place, in its row
    seen = spelled.cumsum(dim=1) - spelled
    window_starts = torch.arange(ids.shape[1], device=ids.device) - columns
    positions = columns + padding + 1 - (seen - seen.gather(1, window_starts))
    return positions.masked_fill(ids == padding, padding)


def attention_bias(
    windows: torch.Tensor, by_distance: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return what is added to scores: minus infinity between windows, a bias within them.

    windows: int64 (rows, width), see BertForward; by_distance: see relative_bias_of.
    RETURNS (dtype (rows, heads or 1, width, width)).
    SOURCE: Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 2.1; in MPNet:
        Song et al. 2020.
    """
    same = windows[:, None, :, None] == windows[:, None, None, :]
    mask = torch.zeros(same.shape, dtype=dtype, device=windows.device)
    mask.masked_fill_(~same, -torch.inf)
    if by_distance is None:
        return mask
    # Distances in the row: a window lies in one piece, so that they are those in the window
    places = torch.arange(windows.shape[1])
    buckets = distance_buckets(places - places[:, None]).to(windows.device)
    bias = functional.embedding(buckets, by_distance).permute(2, 0, 1)
    return mask + bias.contiguous().to(dtype)


def distance_buckets(distances: torch.Tensor) -> torch.Tensor:
    """Return the bucket, of 32, of each distance: 16 to the right, 8 each exact, to 128 by log.

    SOURCE: Raffel et al. 2020, section 2.1.
    """
    away = distances.abs()
    by_log = 8 + (torch.log(away.float() / 8) / math.log(128 / 8) * 8).long()
    return (distances > 0) * 16 + torch.where(away < 8, away, by_log.clamp(max=15))


class BertLayer(ABC):
    """A layer of a BERT-like encoder; subclasses compute its steps in use and in training.

    States are (places, hidden): those of the rows, one after another, and maybe more. added_scores:
    see attention_bias.
    SOURCE: Devlin et al. 2019, BERT; Vaswani et al. 2017, Attention Is All You Need, section 3.
    """

    attention_norm: Linear
    output_norm: Linear

    def __call__(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        attended = self.attend(states, added_scores)
        mixed = self.attention_norm(self.attention_output(attended, states))
        return self.output_norm(self.output(self.intermediate(mixed), mixed))

    @abstractmethod
    def attend(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        """Return the values of all heads that each place attends to, (places, hidden)."""

    @abstractmethod
    def attention_output(self, attended: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Return the linear layer behind the heads, and the states added to it."""

    @abstractmethod
    def intermediate(self, states: torch.Tensor) -> torch.Tensor:
        """Return the widening linear layer and its activation, (places, inner size)."""

    @abstractmethod
    def output(self, widened: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Return the narrowing linear layer, and the states added to it."""


class BertForward(ABC):
    """The forward pass of a BERT-like encoder; subclasses say how its steps are computed."""

    layers: Sequence[BertLayer]
    # See relative_bias_of
    relative_bias: torch.Tensor | None

    @abstractmethod
    def embed(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        types: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the normalized sums of embeddings, (rows, width, their width)."""

    @abstractmethod
    def project(self, states: torch.Tensor) -> torch.Tensor:
        """Return embeddings in the width of the layers, which is another one in some ELECTRAs."""

    def forward(
        self,
        ids: torch.Tensor,
        columns: torch.Tensor,
        types: torch.Tensor | None,
        windows: torch.Tensor,
        *,
        padding: int | None,
        n_places: int,
    ) -> torch.Tensor:
        """Encode rows.

        ids: int64 (rows, width), wordpieces. columns: the place of each in its window, from 0.
            types: token types, None for 0. windows: the number of the window that a place belongs
            to, -1 for padding; all of the same shape.
        padding (int): see position_ids. n_places (int): how many places layers compute, those
            behind the rows, and in use those behind the last window, being zeros or left out.
        RETURNS ((n_places, hidden)): the states; those of padding mean nothing.
        """
        embedded = self.embed(ids, position_ids(padding, ids, columns, windows), types)
        states = self.project(with_places(embedded.flatten(0, 1), n_places))
        added_scores = attention_bias(windows, self.relative_bias, states.dtype)
        for layer in self.layers:
            states = layer(states, added_scores)
        return states


class PackedRows:
    """Part of a backend that encodes several windows in a row; words: the word embeddings."""

    merges_equal = True
    in_parallel = True
    words: torch.Tensor

    @property
    def device(self) -> torch.device:
        return self.words.device

    def batches(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        return packed_batches(wordpieces.lengths, windows, budget, at_a_time=n_threads)


class PackedBert(PackedRows, BertForward):
    """The last hidden states of a BERT-like encoder, from the weights of a model as they are now.

    See is_packable.

    dtype (torch.dtype): of the arithmetic; the sums of embeddings and what is returned are float32.
    """

    def __init__(self, model: Network, dtype: torch.dtype):
        self.dtype = dtype
        self.hidden_size: int = model.config.hidden_size
        embeddings = model.embeddings
        self.padding = getattr(embeddings, "padding_idx", None)
        self.words = embeddings.word_embeddings.weight.detach()
        self.positions = embeddings.position_embeddings.weight.detach()
        self.types: torch.Tensor | None = None
        if hasattr(embeddings, "token_type_embeddings"):
            self.types = embeddings.token_type_embeddings.weight.detach()
        self.norm = LayerNorm(embeddings.LayerNorm)
        self.projection: Linear | None = None
        if hasattr(model, "embeddings_project"):
            projection = model.embeddings_project
            self.projection = linear(projection.weight, projection.bias, dtype)
        bias = relative_bias_of(model)
        self.relative_bias = None if bias is None else bias.detach()
        activation = activation_of(model)
        self.layers: list[_PackedLayer] = [
            _PackedLayer(layer, dtype, activation) for layer in layers_of(model)
        ]

    @torch.inference_mode()
    def encode(self, wordpieces: TokenizedBatch, batch: Batch) -> torch.Tensor:
        ids, columns, types, owners = lay_out(wordpieces, batch, self.device)
        n_used = int((batch.starts + wordpieces.lengths[batch.windows]).max())
        known_types = None if wordpieces.type_ids is None else types
        return self(ids, columns, known_types, owners, n_used)

    def __call__(
        self,
        ids: torch.Tensor,
        columns: torch.Tensor,
        types: torch.Tensor | None,
        windows: torch.Tensor,
        n_used: int | None = None,
    ) -> torch.Tensor:
        """Encode rows; for the arguments see BertForward.

        n_used (int): the places up to the last of a window; None for all.
        RETURNS (dtype (n_used, hidden), or some more): the states; those of padding mean nothing.
        """
        n_places = places_for(n_used or ids.numel(), of_short_text=True)
        states = self.forward(ids, columns, types, windows, padding=self.padding, n_places=n_places)
        return states[: ids.numel()]

    def embed(
        self, ids: torch.Tensor, positions: torch.Tensor, types: torch.Tensor | None
    ) -> torch.Tensor:
        added = self.words[ids] + self.positions[positions]
        if self.types is not None:
            of_types = 0 if types is None else types
            added += self.types[of_types]
        return self.norm(added).to(self.dtype)

    def project(self, states: torch.Tensor) -> torch.Tensor:
        return states if self.projection is None else self.projection(states)


class _PackedLayer(BertLayer):
    """A layer in use; linears: its products, by the names of LINEARS. Sums are made in place."""

    def __init__(self, layer: Layer, dtype: torch.dtype, activation: str):
        self.n_heads: int = layer[N_HEADS]
        activations = {INTERMEDIATE: activation}
        self.linears = {
            name: linear(weight, bias, dtype, activations.get(name))
            for name, (weight, bias) in weights_of(layer).items()
        }
        self.attention_norm, self.output_norm = (LayerNorm(layer[name]) for name in NORMS)

    def attend(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        heads = self.linears[ATTENTION](states).view(len(states), 3, self.n_heads, -1)
        return attention(heads, added_scores)

    def attention_output(self, attended: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        return self.linears[ATTENTION_OUTPUT](attended).add_(states)

    def intermediate(self, states: torch.Tensor) -> torch.Tensor:
        return self.linears[INTERMEDIATE](states)

    def output(self, widened: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        return self.linears[OUTPUT](widened).add_(states)


class LayerNorm:
    """Layer norm whose factors stay float32 whatever the states are; it may have no bias."""

    def __init__(self, norm: TorchModule):
        self.weight: torch.Tensor = norm.weight.detach()
        self.bias: torch.Tensor | None = None if norm.bias is None else norm.bias.detach()
        self.eps: float = norm.eps

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        weight = self.weight
        bias = self.bias
        # CUDA takes one dtype alone
        if not states.is_cpu:
            weight = weight.to(states.dtype)
            bias = None if bias is None else bias.to(states.dtype)
        return functional.layer_norm(states, weight.shape, weight, bias, self.eps)


# Scores at a time, which stay in the cache of a core
_BLOCK = 2**19


def attention(heads: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """softmax(Q K' / sqrt(size) + added) V for each head.

    In bfloat16 on a CPU without AMX as products of their own: PyTorch's fused kernel takes a
    quarter more time there.

    heads: (places, 3, heads, size), queries, keys and values, row after row, maybe without the last
        or with more.
    added_scores: (rows, 1 or heads, width, width), of the same dtype: -inf where a place does not
        attend to another.
    RETURNS ((places, heads * size)): what each place attends to; 0 behind the rows.
    SOURCE: Vaswani et al. 2017, section 3.2.
    """
    n_rows, width = added_scores.shape[::3]
    rows = with_places(heads, n_rows * width).view(n_rows, width, *heads.shape[1:])
    # (rows, heads, width, size)
    query, key, value = (rows[:, :, i].transpose(1, 2) for i in range(3))
    if heads.is_cpu and heads.dtype == torch.bfloat16 and not uses_amx():
        attended = _by_products(query, key, value, added_scores)
    else:
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=added_scores
        ).transpose(1, 2)
    return with_places(attended.reshape(n_rows * width, -1), len(heads))


def _by_products(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, added_scores: torch.Tensor
) -> torch.Tensor:
    """Return the same, (rows, width, heads, size), of what is (rows, heads, width, size)."""
    n_rows, n_heads, width, size = query.shape
    attended = query.new_empty(n_rows, width, n_heads, size)
    most = _BLOCK // (n_heads * width**2)
    first = 0
    # In blocks of powers of two, the largest first: products of few shapes
    while first < n_rows:
        n_fitting = max(1, min(n_rows - first, most))
        block = slice(first, first + 2 ** (n_fitting.bit_length() - 1))
        first = block.stop
        q, k, v = (part[block].reshape(-1, width, size) for part in (query, key, value))
        scores = torch.bmm(q, k.transpose(1, 2)).view(-1, n_heads, width, width)
        torch.add(added_scores[block], scores, alpha=size**-0.5, out=scores)
        mixed = torch.bmm(scores.softmax(-1).view(-1, width, width), v)
        attended[block] = mixed.view(-1, n_heads, width, size).transpose(1, 2)
    return attended
