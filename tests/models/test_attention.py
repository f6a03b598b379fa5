"""Attention by products of its own against the formula in float64, and block by block against all rows at once."""

import pytest
import torch

from spacy_sbert.models.engine import packed_bert as module


def inputs(n_rows, width, n_added, *, n_heads=3, size=8):
    """Heads, and what hides half of a row from the other half."""
    torch.manual_seed(n_rows)
    heads = torch.randn(n_rows, width, 3, n_heads, size)
    halves = torch.arange(width) < width // 2
    hidden = torch.zeros(width, width).masked_fill(halves[:, None] != halves, -torch.inf)
    return heads, hidden + (torch.randn(n_rows, n_added, width, width) if n_added > 1 else torch.zeros(n_rows, 1, 1, 1))


def attended(heads, added, n_more=0):
    """(rows, width, heads * size); behind the rows are as many places more, which must come back as 0."""
    n_rows, width, _, n_heads, size = heads.shape
    places = torch.cat([heads.flatten(0, 1), heads.new_full((n_more, 3, n_heads, size), 9.0)])
    found = module._attention(places, added)
    assert found.shape == (n_rows * width + n_more, n_heads * size) and not found[n_rows * width :].any()
    return found[: n_rows * width].view(n_rows, width, -1)


def by_formula(heads, added):
    query, key, value = heads.double().permute(2, 0, 3, 1, 4)
    scores = query @ key.transpose(-1, -2) / heads.shape[-1] ** 0.5 + added
    return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("n_rows", "width", "n_added", "n_more"), [(5, 12, 1, 4), (3, 40, 3, 0), (2, 7, 1, 0)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.03)])
def test_the_formula(n_rows, width, n_added, n_more, dtype, tolerance):
    heads, added = inputs(n_rows, width, n_added)
    found = attended(heads.to(dtype), added.to(dtype), n_more)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), by_formula(heads, added), atol=tolerance, rtol=tolerance)


def test_nothing_is_seen_of_the_other_half():
    heads, added = inputs(4, 10, 1)
    heads, added = heads.to(torch.bfloat16), added.to(torch.bfloat16)
    before = attended(heads, added)
    heads[:, 5:] = 7.0
    torch.testing.assert_close(attended(heads, added)[:, :5], before[:, :5], atol=0, rtol=0)


def test_blocks_give_what_all_rows_at_once_do(monkeypatch):
    heads, added = inputs(7, 16, 1)
    heads, added = heads.to(torch.bfloat16), added.to(torch.bfloat16)
    whole = attended(heads, added)
    for block in (1, 3 * 16 * 16 * 2, 3 * 16 * 16 * 3):  # a row, two, three at a time
        monkeypatch.setattr(module, "_BLOCK", block)
        torch.testing.assert_close(attended(heads, added), whole, atol=0, rtol=0)
