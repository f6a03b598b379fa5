"""Operators of training on a CPU: values and gradients of PyTorch's, and dropout of the probability asked for."""

import numpy
import pytest
import torch
from torch.nn import functional

from spacy_sbert.encoder.engine import cpu_training
from spacy_sbert.encoder.engine.cpu_training import CpuOperators, training_operators


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(0)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


def leaf(tensor):
    return tensor.clone().requires_grad_()


def both(run, *given):
    """What a function gives and the gradients of its inputs, by PyTorch, and by the operators."""
    found = []
    for block in (torch.enable_grad(), CpuOperators()):
        leaves = [leaf(each) for each in given]
        with block:
            output = run(*leaves)
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        output.backward(weights.to(output.dtype))
        found.append([output.detach(), *(each.grad for each in leaves)])
    return found


def assert_equal(found, **tolerance):
    expected, given = found
    for ours, theirs in zip(given, expected, strict=True):
        assert ours.dtype == theirs.dtype and torch.allclose(ours, theirs, **tolerance)


def names_of(tensor):
    """The names of all that stands in the graph of a tensor."""
    found, ahead = set(), [tensor.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node.name() not in found:
            found.add(node.name())
            ahead += [next_node for next_node, _ in node.next_functions]
    return " ".join(found)


@pytest.mark.parametrize("has_bias", [True, False])
def test_linear(draw, has_bias):
    given = [draw(3, 4, 5), draw(7, 5), *([draw(7)] if has_bias else [])]
    assert_equal(both(functional.linear, *given), atol=1e-12)
    with CpuOperators():
        assert "_Linear" in names_of(functional.linear(*map(leaf, given)))


def test_linear_by_finite_differences(draw):
    given = [leaf(draw(2, 3)), leaf(draw(4, 3)), leaf(draw(4))]
    assert torch.autograd.gradcheck(lambda *each: cpu_training._linear(*each), given)


def test_linear_under_autocast(draw):
    given = [draw(6, 5, 16, dtype=torch.float32), draw(24, 16, dtype=torch.float32), draw(24, dtype=torch.float32)]

    def run(*leaves):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return functional.linear(*leaves)

    expected, found = both(run, *given)
    assert found[0].dtype == torch.bfloat16 and torch.equal(found[0], expected[0])
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert ours.dtype == torch.float32
        assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) > 0.9999


def test_embedding(draw):
    ids = torch.tensor([[3, 1, 3], [0, 2, 3]])
    for padding in (None, 0, 3):
        assert_equal(both(lambda table, pad=padding: functional.embedding(ids, table, pad), draw(6, 4)), atol=1e-12)


def test_embedding_adds_to_the_gradient_there_is_and_makes_no_other(draw):
    ids, table, weights = torch.tensor([4, 4, 1]), leaf(draw(6, 2)), draw(3, 2)
    table.grad = torch.ones_like(table)
    memory = table.grad.data_ptr()
    with CpuOperators():
        functional.embedding(ids, table).backward(weights)
    expected = torch.ones_like(table)
    expected[4] += weights[0] + weights[1]
    expected[1] += weights[2]
    assert torch.allclose(table.grad, expected) and table.grad.data_ptr() == memory


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}])
def test_other_embeddings_are_those_of_pytorch(draw, options):
    with CpuOperators():
        found = functional.embedding(torch.tensor([1, 1, 2]), leaf(draw(3, 2)), **options)
    assert "_Embedding" not in names_of(found)


def test_what_has_no_gradient_gets_none(draw):
    x, weight, table = draw(2, 3), leaf(draw(4, 3)), draw(5, 3)
    with CpuOperators():
        functional.linear(functional.embedding(torch.tensor([0, 1]), table) + x, weight).sum().backward()
        with torch.no_grad():
            assert functional.linear(x, weight).grad_fn is None
    assert weight.grad.any() and table.grad is None and x.grad is None


@pytest.mark.parametrize("p", [0.1, 0.5, 2.0**-16])
def test_dropout_drops_with_its_probability_and_keeps_the_mean(p):
    x = leaf(torch.ones(1000, 1003, dtype=torch.float64))
    torch.manual_seed(0)
    with CpuOperators():
        found = functional.dropout(x, p)
    steps = round(p * 2**16) / 2**16
    dropped = float((found == 0).double().mean())
    assert abs(dropped - steps) < 4 * (p * (1 - p) / x.numel()) ** 0.5
    assert set(found.unique().tolist()) == {0.0, 1 / (1 - steps)}
    found.sum().backward()
    assert torch.equal(x.grad, found.detach())
    torch.manual_seed(0)
    with CpuOperators():
        assert torch.equal(functional.dropout(x, p), found)
        assert not torch.equal(functional.dropout(x, p), found)


def test_dropped_numbers_are_independent():
    torch.manual_seed(0)
    kept = cpu_training._kept(torch.empty(200, 5000), 0.5).bool().numpy()
    shares = [
        kept[:, ::4].mean(),
        *(numpy.corrcoef(kept[:, :-lag].flat, kept[:, lag:].flat)[0, 1] for lag in (1, 2, 4)),
    ]
    assert shares == pytest.approx([0.5, 0, 0, 0], abs=0.005)


@pytest.mark.parametrize("options", [{"training": False}, {"p": 0.0}, {"p": 1.0}, {"inplace": True}])
def test_other_dropout_is_that_of_pytorch(options):
    found = []
    for block in (torch.enable_grad(), CpuOperators()):
        torch.manual_seed(0)
        with block:
            found.append(functional.dropout(torch.ones(100), **options))
    assert torch.equal(*found)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("mask", ["none", "added", "bool"])
def test_attention(draw, monkeypatch, mask, scale):
    """With dropout's draws given: softmax(q k' scale + mask) dropped out, times v, and its gradients."""
    kept = (torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(3)) > 0.3).double() / 0.7
    monkeypatch.setattr(cpu_training, "_kept", lambda like, p: kept.to(like.dtype))
    allowed = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]]).bool()
    added = {"none": None, "bool": allowed, "added": draw(2, 1, 4, 5)}[mask]

    def written_out(query, key, value):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * (scale or 8**-0.5)
        if mask == "bool":
            scores = torch.where(allowed, scores, -torch.inf)
        elif mask == "added":
            scores = scores + added
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1) * kept, value)

    def attend(query, key, value):
        options = {"attn_mask": added, "dropout_p": 0.3, "scale": scale}
        return functional.scaled_dot_product_attention(query, key, value, **options)

    given = draw(2, 3, 4, 8), draw(2, 3, 5, 8), draw(2, 3, 5, 8)
    assert_equal((both(written_out, *given)[0], both(attend, *given)[1]), atol=1e-12)


def test_attention_without_dropout_is_that_of_pytorch(draw):
    given = draw(1, 2, 4, 8), draw(1, 2, 4, 8), draw(1, 2, 4, 8)
    for options in ({}, {"is_causal": True}):
        expected, found = both(lambda *qkv, o=options: functional.scaled_dot_product_attention(*qkv, **o), *given)
        assert all(map(torch.equal, expected, found))


def test_they_serve_on_a_cpu_alone_and_not_with_checkpoints():
    class Network:
        def __init__(self, device, is_gradient_checkpointing=False):
            self.device, self.is_gradient_checkpointing = torch.device(device), is_gradient_checkpointing

    assert isinstance(training_operators(Network("cpu")), CpuOperators)
    for other in (Network("cuda"), Network("cpu", True)):
        assert not isinstance(training_operators(other), CpuOperators)
