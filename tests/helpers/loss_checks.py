"""What all losses undergo: their gradient, float32, and agreement with a reference in PyTorch."""

import numpy
import pytest
import torch
from helpers.gradients import finite_differences, relative_error


def check_gradients(loss, members, gold):
    """Each member's gradient, with a factor, and each parameter's, is that of the value; float32
    stays float32.
    """
    check_float32(loss.copy(), members, gold)
    members = [member.copy() for member in members]
    for node in loss.walk():
        for name in node.param_names:
            node.set_param(name, node.get_param(name).astype("float64"))
    _, backprop = loss((members, gold), True)
    given = backprop(1.0)
    gradients = {
        (node, name): node.get_grad(name).copy() for node in loss.walk() for name in node.grad_names
    }
    for member, d_member in zip(members, given, strict=True):
        assert d_member.shape == member.shape
        assert d_member.dtype == member.dtype
        assert (
            relative_error(
                d_member, finite_differences(lambda _: loss((members, gold), True)[0], member)
            )
            < 1e-6
        )
    for (node, name), gradient in gradients.items():
        expected = finite_differences(
            lambda _: loss((members, gold), True)[0], node.get_param(name)
        )
        assert relative_error(gradient, expected) < 1e-6, name
    for d_member, twice in zip(given, backprop(-2.0), strict=True):
        assert numpy.allclose(-2 * d_member, twice, atol=1e-15)


def check_parity(loss, members, gold, reference, tolerance=1e-12):
    """Value and gradients are those of reference, which takes a list of tensors and returns a
    scalar tensor.
    """
    tensors = [torch.tensor(member, requires_grad=True) for member in members]
    expected = reference(tensors)
    expected.backward()
    value, backprop = loss((members, gold), True)
    assert value == pytest.approx(expected.item(), abs=tolerance, rel=tolerance)
    for given, tensor in zip(backprop(1.0), tensors, strict=True):
        assert numpy.allclose(given, tensor.grad.numpy(), atol=tolerance)


def check_float32(loss, members, gold):
    members = [member.astype("float32") for member in members]
    gold = gold.astype("float32") if isinstance(gold, numpy.ndarray) else gold
    value, backprop = loss((members, gold), True)
    assert type(value) is float
    gradients = [
        *backprop(),
        *(node.get_grad(name) for node in loss.walk() for name in node.grad_names),
    ]
    assert all(d.dtype == "float32" and numpy.isfinite(d).all() for d in gradients)


class Embedder(torch.nn.Module):
    """In the place of a SentenceTransformer: its "features" are the vectors themselves."""

    device = "cpu"

    def __init__(self, width):
        super().__init__()
        self.width = width

    def get_embedding_dimension(self):
        return self.width

    def forward(self, features):
        return {"sentence_embedding": features["vectors"]}
