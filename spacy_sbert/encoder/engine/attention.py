"""Attention of heads that are computed together, without a graph."""

from collections.abc import Iterator

import torch
from torch.nn import functional

from .layout import with_places
from .private_torch import uses_amx

BLOCK = 2**19  # scores at a time, which stay in the cache of a core


def attention(heads: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """softmax(Q K' / sqrt(size) + added) V for each head.

    In bfloat16 on a CPU without AMX as products of their own for a few rows at a time: PyTorch's fused kernel takes a
    quarter more time there. Scores are then rounded to bfloat16 before the softmax.

    heads: (places, 3, heads, size), queries, keys and values; places are those of rows, one row after another, maybe
        without the last of them, which mean nothing, or with more behind them.
    added_scores: (rows, 1 or heads, width, width), of the same dtype: -inf where a place does not attend to another.
    RETURNS ((places, heads * size)): what each place attends to; 0 behind the rows.
    SOURCE: Vaswani et al. 2017, section 3.2.
    """
    n_rows, width = added_scores.shape[::3]
    rows = with_places(heads, n_rows * width).view(n_rows, width, *heads.shape[1:])
    query, key, value = (rows[:, :, i].transpose(1, 2) for i in range(3))  # (rows, heads, width, size)
    if heads.is_cpu and heads.dtype == torch.bfloat16 and not uses_amx():
        attended = _by_products(query, key, value, added_scores)
    else:
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=added_scores).transpose(1, 2)
    return with_places(attended.reshape(n_rows * width, -1), len(heads))


def _by_products(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, added_scores: torch.Tensor
) -> torch.Tensor:
    """(rows, width, heads, size), of what is (rows, heads, width, size)."""
    n_rows, n_heads, width, size = query.shape
    attended = query.new_empty(n_rows, width, n_heads, size)
    for block in _blocks(n_rows, BLOCK // (n_heads * width**2)):
        q, k, v = (part[block].reshape(-1, width, size) for part in (query, key, value))
        scores = torch.bmm(q, k.transpose(1, 2)).view(-1, n_heads, width, width)
        torch.add(added_scores[block], scores, alpha=size**-0.5, out=scores)
        mixed = torch.bmm(scores.softmax(-1).view(-1, width, width), v)
        attended[block] = mixed.view(-1, n_heads, width, size).transpose(1, 2)
    return attended


def _blocks(n_rows: int, most: int) -> Iterator[slice]:
    """Rows in blocks of powers of two, the largest first: products of few shapes, see passes."""
    first = 0
    while first < n_rows:
        size = 2 ** (max(1, min(n_rows - first, most)).bit_length() - 1)
        yield slice(first, first + size)
        first += size
