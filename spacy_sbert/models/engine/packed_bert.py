"""BERT and architectures like it on packed batches; see bert_families."""

import math
from types import SimpleNamespace

import numpy
import torch
from torch.nn import functional

from ..loading import Network
from ..private_attributes import Linear, linear, uses_amx
from ..tokenization import TokenizedBatch
from .bert_families import Module, activation_of, distance_bias, layers_of, weights_of
from .packing import PLACES_APART, Batch, lay_out, packed_batches, with_places


def position_ids(
    padding: int | None, ids: torch.Tensor, columns: torch.Tensor, windows: torch.Tensor
) -> torch.Tensor:
    """Return positions: columns, or for RoBERTa and MPNet those from padding + 1 on, spelled padding left out."""
    if padding is None:
        return columns
    # Whether there are any, a GPU would have to be asked
    spelled = ((ids == padding) & (windows >= 0)).long()
    # Before each place, in its row
    seen = spelled.cumsum(dim=1) - spelled
    window_starts = torch.arange(ids.shape[1], device=ids.device) - columns
    positions = columns + padding + 1 - (seen - seen.gather(1, window_starts))
    return positions.masked_fill(ids == padding, padding)


def attention_bias(
    windows: torch.Tensor, by_distance: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return what is added to the attention scores: minus infinity between windows, and within them by distance.

    windows: int64 (rows, width), see PackedBert; by_distance: see distance_bias.
    RETURNS (dtype (rows, heads or 1, width, width)).
    SOURCE: Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 2.1; in MPNet:
        Song et al. 2020.
    """
    same = windows[:, None, :, None] == windows[:, None, None, :]
    mask = torch.zeros(same.shape, dtype=dtype, device=windows.device).masked_fill_(
        ~same, -torch.inf
    )
    if by_distance is None:
        return mask
    # In the row: windows are in one piece, distances in them are the same
    places = torch.arange(windows.shape[1])
    buckets = _distance_buckets(places - places[:, None]).to(windows.device)
    return mask + functional.embedding(buckets, by_distance).permute(2, 0, 1).contiguous().to(dtype)


def _distance_buckets(distances: torch.Tensor) -> torch.Tensor:
    """Return the bucket of each distance, of 32: half of them to the right, the nearest 8 by themselves, to 128 by log.

    SOURCE: Raffel et al. 2020, section 2.1.
    """
    away = distances.abs()
    by_log = 8 + (torch.log(away.float() / 8) / math.log(128 / 8) * 8).long()
    return (distances > 0) * 16 + torch.where(away < 8, away, by_log.clamp(max=15))


class PackedBert:
    """The last hidden states of a BERT-like encoder, from the weights of a model as they are now.

    See is_packable.

    dtype (torch.dtype): of the arithmetic; the sums of embeddings and what is returned are float32.
    products (list[dict[str, Linear]]): of each layer, by the names of LINEARS; None for those of
        the model.
    """

    merges_equal = in_parallel = True

    def __init__(
        self, model: Network, dtype: torch.dtype, products: list[dict[str, Linear]] | None = None
    ):
        embeddings, project = model.embeddings, getattr(model, "embeddings_project", None)
        types, by_distance = (
            getattr(embeddings, "token_type_embeddings", None),
            distance_bias(model),
        )
        modules = layers_of(model)
        self.dtype = dtype
        self.padding = getattr(embeddings, "padding_idx", None)
        self.words = embeddings.word_embeddings.weight.detach()
        self.positions = embeddings.position_embeddings.weight.detach()
        self.types = types and types.weight.detach()
        self.norm = _LayerNorm(embeddings.LayerNorm)
        self.project = project and linear(project.weight, project.bias, dtype)
        self.by_distance = None if by_distance is None else by_distance.detach()
        if products is None:
            activations = {"widen": activation_of(model)}
            products = [
                {
                    name: linear(*both, dtype, activations.get(name))
                    for name, both in weights_of(parts).items()
                }
                for parts in modules
            ]
        self.layers = [_Layer(parts, own) for parts, own in zip(modules, products, strict=True)]

    @property
    def device(self) -> torch.device:
        return self.words.device

    def passes(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        return packed_batches(wordpieces.lengths, windows, budget, at_a_time=n_threads)

    @torch.inference_mode()
    def encode(self, wordpieces: TokenizedBatch, rows: Batch) -> torch.Tensor:
        ids, columns, types, owners = lay_out(wordpieces, rows, self.device)
        used = int((rows.starts + wordpieces.lengths[rows.windows]).max())
        return self(ids, columns, None if wordpieces.type_ids is None else types, owners, used)

    def __call__(
        self,
        ids: torch.Tensor,
        columns: torch.Tensor,
        types: torch.Tensor | None,
        windows: torch.Tensor,
        n_used: int | None = None,
    ) -> torch.Tensor:
        """Encode rows.

        ids: int64 (rows, width), wordpieces. columns: the place of each in its window, from 0.
            types: token types, None for 0. windows: the number of the window that a place belongs
                to, -1 for padding; all of the same shape.
        n_used (int): the places up to the last of a window; None for all.
        RETURNS (dtype (n_used, hidden), or some more): the states; those of padding mean nothing.
        """
        added = self.words[ids] + self.positions[position_ids(self.padding, ids, columns, windows)]
        if self.types is not None:
            added += self.types[0] if types is None else self.types[types]
        states = self.norm(added.flatten(0, 1)).to(self.dtype)
        states = with_places(states, _places_for(n_used or len(states)))
        if self.project is not None:
            states = self.project(states)
        added_scores = attention_bias(windows, self.by_distance, self.dtype)
        for layer in self.layers:
            states = layer(states, added_scores)
        return states[: ids.numel()]


def _places_for(n_used: int) -> int:
    """Return how many places products are made of.

    For a short text alone, which has a quarter of them, by 16.
    """
    apart = PLACES_APART if n_used > PLACES_APART else PLACES_APART // 4
    return apart * math.ceil(n_used / apart)


class _Layer:
    """A layer of a BERT-like encoder; linears: its products, by the names of LINEARS."""

    def __init__(self, parts: SimpleNamespace, linears: dict[str, Linear]):
        self.n_heads, self.linears = parts.n_heads, linears
        self.norm_mixed, self.norm_output = (
            _LayerNorm(parts.norm_mixed),
            _LayerNorm(parts.norm_output),
        )

    def __call__(self, states: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
        heads = self.linears["heads"](states).view(len(states), 3, self.n_heads, -1)
        mixed = self.linears["mix"](_attention(heads, added_scores))
        states = self.norm_mixed(mixed.add_(states))
        return self.norm_output(self.linears["narrow"](self.linears["widen"](states)).add_(states))


class _LayerNorm:
    """Layer norm whose factors stay float32 whatever the states are."""

    def __init__(self, norm: Module):
        self.weight, self.bias, self.eps = norm.weight.detach(), norm.bias.detach(), norm.eps

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        weight, bias = self.weight, self.bias
        # CUDA takes one dtype alone
        if not states.is_cpu:
            weight, bias = weight.to(states.dtype), bias.to(states.dtype)
        return functional.layer_norm(states, weight.shape, weight, bias, self.eps)


# Scores at a time, which stay in the cache of a core
_BLOCK = 2**19


def _attention(heads: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
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
    """(rows, width, heads, size), of what is (rows, heads, width, size)."""
    n_rows, n_heads, width, size = query.shape
    attended = query.new_empty(n_rows, width, n_heads, size)
    first, most = 0, _BLOCK // (n_heads * width**2)
    # In blocks of powers of two, the largest first: products of few shapes
    while first < n_rows:
        block = slice(first, first + 2 ** (max(1, min(n_rows - first, most)).bit_length() - 1))
        first = block.stop
        q, k, v = (part[block].reshape(-1, width, size) for part in (query, key, value))
        scores = torch.bmm(q, k.transpose(1, 2)).view(-1, n_heads, width, width)
        torch.add(added_scores[block], scores, alpha=size**-0.5, out=scores)
        mixed = torch.bmm(scores.softmax(-1).view(-1, width, width), v)
        attended[block] = mixed.view(-1, n_heads, width, size).transpose(1, 2)
    return attended
