"""Attention of heads that are computed together, without a graph."""

import torch
from torch.nn import functional

from .private_torch import uses_amx

BLOCK = 2**19  # scores at a time, which stay in the cache of a core


def attention(heads: torch.Tensor, added_scores: torch.Tensor) -> torch.Tensor:
    """softmax(Q K' / sqrt(size) + added) V for each head.

    In bfloat16 on a CPU without AMX as products of their own for a few rows at a time: PyTorch's fused kernel takes a
    quarter more time there. Scores are then rounded to bfloat16 before the softmax.

    heads: (rows, width, 3, heads, size), queries, keys and values.
    added_scores: (rows, 1 or heads, width, width), of the same dtype: -inf where a place does not attend to another.
    RETURNS ((rows, width, heads * size)): what each place attends to.
    SOURCE: Vaswani et al. 2017, section 3.2.
    """
    n_rows, width = heads.shape[:2]
    query, key, value = (heads[:, :, i].transpose(1, 2) for i in range(3))  # (rows, heads, width, size)
    if not (heads.is_cpu and heads.dtype == torch.bfloat16) or uses_amx():
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=added_scores)
        return attended.transpose(1, 2).reshape(n_rows, width, -1)
    n_heads, size = heads.shape[3:]
    attended = heads.new_empty(n_rows, width, n_heads, size)
    step = max(1, BLOCK // (n_heads * width**2))
    for first in range(0, n_rows, step):
        q, k, v = (part[first : first + step].reshape(-1, width, size) for part in (query, key, value))
        scores = torch.bmm(q, k.transpose(1, 2)).view(-1, n_heads, width, width)
        torch.add(added_scores[first : first + step], scores, alpha=size**-0.5, out=scores)
        mixed = torch.bmm(scores.softmax(-1).view(-1, width, width), v)
        attended[first : first + step] = mixed.view(-1, n_heads, width, size).transpose(1, 2)
    return attended.view(n_rows, width, -1)
