"""Layers of training on a CPU: values and gradients of PyTorch's, and dropout of the probability
asked for.
"""

import numpy
import pytest
import torch
from torch.nn import functional

from spacy_sbert.models.engine import packed_training
from spacy_sbert.models.engine.packed_training import (
    _attention,
    _dropout,
    _embedding,
    _linear,
    dense_gradient,
)


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(0)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


def results(run, *given):
    """What a function gives, and the gradients of its inputs."""
    leaves = [each.clone().requires_grad_() for each in given]
    output = run(*leaves)
    weights = torch.randn(
        output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    output.backward(weights.to(output.dtype))
    return [output.detach(), *(each.grad for each in leaves)]


def assert_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.allclose(ours, theirs, atol=1e-12)


def make_linear(weight, bias=None):
    module = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    del module.weight
    # A tensor in place of a parameter: its gradient is looked at
    module.weight = weight
    if bias is not None:
        del module.bias
        module.bias = bias
    return module


def of_module(x, weight, bias=None):
    return _linear(make_linear(weight, bias), x)


@pytest.mark.parametrize("has_bias", [True, False])
def test_linear(draw, has_bias):
    given = [draw(3, 4, 5), draw(7, 5), *([draw(7)] if has_bias else [])]
    assert_equal(results(of_module, *given), results(functional.linear, *given))
    leaves = [each.requires_grad_() for each in given]
    assert "_Linear" in of_module(*leaves).grad_fn.name()
    assert torch.autograd.gradcheck(of_module, leaves)


def test_linear_under_autocast(draw):
    given = [
        draw(6, 5, 16, dtype=torch.float32),
        draw(24, 16, dtype=torch.float32),
        draw(24, dtype=torch.float32),
    ]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = results(of_module, *given)
        expected = results(functional.linear, *given)
    assert found[0].dtype == torch.bfloat16
    assert torch.equal(found[0], expected[0])
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert ours.dtype == torch.float32
        assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) > 0.9999


@pytest.mark.parametrize("padding", [None, 0, 3])
def test_embedding(draw, padding):
    """Its gradient is added to what is there, in place, and is no matrix of its own."""
    table = torch.nn.Embedding(6, 4, padding_idx=padding, dtype=torch.float64)
    ids = torch.tensor([[3, 1, 3], [0, 2, 3]])
    weights = draw(2, 3, 4)
    expected = functional.embedding(ids, table.weight, padding)
    expected.backward(weights)
    of_pytorch = table.weight.grad
    table.weight.grad = torch.ones(6, 4, dtype=torch.float64)
    memory = table.weight.grad.data_ptr()
    found = _embedding(table, ids)
    dense_gradient(table)
    found.backward(weights)
    assert torch.equal(found, expected)
    assert torch.allclose(table.weight.grad, of_pytorch + 1, atol=1e-12)
    assert table.weight.grad.data_ptr() == memory
    assert not table.weight.grad.is_sparse


def test_what_is_frozen_gets_no_gradient(draw):
    x = draw(2, 3)
    layer = make_linear(draw(4, 3).requires_grad_())
    table = torch.nn.Embedding(5, 3, dtype=torch.float64)
    table.weight.requires_grad_(False)
    dense_gradient(table)
    _linear(layer, _embedding(table, torch.tensor([0, 1])) + x).sum().backward()
    with torch.no_grad():
        assert _linear(layer, x).grad_fn is None
    assert layer.weight.grad.any()
    assert table.weight.grad is None
    assert x.grad is None


@pytest.mark.parametrize("p", [0.1, 0.5, 2.0**-16])
def test_dropout_drops_with_its_probability_and_keeps_the_mean(p):
    x = torch.ones(1000, 1003, dtype=torch.float64, requires_grad=True)
    module = torch.nn.Dropout(p)
    torch.manual_seed(0)
    found = _dropout(module, x)
    steps = round(p * 2**16) / 2**16
    dropped = float((found == 0).double().mean())
    assert abs(dropped - steps) < 4 * (p * (1 - p) / x.numel()) ** 0.5
    assert set(found.unique().tolist()) == {0.0, 1 / (1 - steps)}
    found.sum().backward()
    assert torch.equal(x.grad, found.detach())
    torch.manual_seed(0)
    assert torch.equal(_dropout(module, x), found)
    assert not torch.equal(_dropout(module, x), found)


def test_dropped_numbers_are_independent():
    torch.manual_seed(0)
    kept = packed_training._kept(torch.empty(200, 5000), 0.5).bool().numpy()
    shares = [
        kept[:, ::4].mean(),
        *(numpy.corrcoef(kept[:, :-lag].flat, kept[:, lag:].flat)[0, 1] for lag in (1, 2, 4)),
    ]
    assert shares == pytest.approx([0.5, 0, 0, 0], abs=0.005)
    for module in (
        torch.nn.Dropout(0.5).eval(),
        torch.nn.Dropout(0.0),
        torch.nn.Dropout(1.0),
        torch.nn.Identity(),
    ):
        assert torch.equal(_dropout(module, torch.ones(100)), module(torch.ones(100))), (
            "that of PyTorch"
        )


def test_attention(draw, monkeypatch):
    """With dropout's draws given: softmax(q k' / √d + mask) dropped out, times v, and its
    gradients.
    """
    kept = (torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(3)) > 0.3).double() / 0.7
    monkeypatch.setattr(packed_training, "_kept", lambda like, p: kept.to(like.dtype))
    added = draw(2, 1, 4, 5)
    added[0, 0, :, 2] = -torch.inf

    def written_out(query, key, value):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * 8**-0.5 + added
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1) * kept, value)

    given = draw(2, 3, 4, 8), draw(2, 3, 5, 8), draw(2, 3, 5, 8)
    found = results(lambda query, key, value: _attention(query, key, value, added, 0.3), *given)
    assert_equal(found, results(written_out, *given))
    expected = results(
        lambda *qkv: functional.scaled_dot_product_attention(*qkv, attn_mask=added), *given
    )
    assert all(
        map(torch.equal, results(lambda *qkv: _attention(*qkv, added, 0.0), *given), expected)
    )
