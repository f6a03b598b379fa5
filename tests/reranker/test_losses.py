"""The objectives by hand, and their gradients by finite differences in float64."""

import math

import numpy
import pytest
import torch
from gradients import finite_differences, relative_error

from spacy_sbert.models.heads import sigmoid
from spacy_sbert.reranker.component import _binary_cross_entropy, _label_cross_entropy, _mean_squared_error

RNG = numpy.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 1), scale=3)
GOLD = numpy.array([0.0, 1.0, 0.3, 0.5, 0.9])


def test_sigmoid():
    assert sigmoid(numpy.zeros(1)) == 0.5
    extreme = sigmoid(numpy.array([-1000.0, 1000.0, -100.0], dtype="float32"))
    assert extreme.dtype == "float32" and numpy.allclose(extreme, [0, 1, math.exp(-100)])


def test_losses_by_hand():
    loss, d_logits = _binary_cross_entropy(numpy.array([[0.0], [math.log(3)]]), numpy.array([1.0, 0.0]))
    assert loss == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert numpy.allclose(d_logits, [[-0.25], [0.375]])
    logits, gold = numpy.array([[0.0], [2.0]]), numpy.array([1.0, 0.5])
    loss, d_logits = _mean_squared_error(logits, gold)
    assert loss == (1 + 2.25) / 2 and numpy.array_equal(d_logits, [[-1.0], [1.5]])
    loss, d_logits = _mean_squared_error(logits[:1], gold[:1], "sigmoid")
    assert loss == 0.25 and numpy.array_equal(d_logits, [[2 * -0.5 * 0.25]])


LOSSES = {
    "cross-entropy": (_binary_cross_entropy, torch.nn.functional.binary_cross_entropy_with_logits),
    "squared error": (lambda x, gold: _mean_squared_error(x, gold, "identity"), torch.nn.functional.mse_loss),
    "squared error of sigmoids": (
        lambda x, gold: _mean_squared_error(x, gold, "sigmoid"),
        lambda x, gold: torch.nn.functional.mse_loss(x.sigmoid(), gold),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_parity_with_pytorch(name):
    ours, theirs = LOSSES[name]
    logits = torch.tensor(LOGITS[:, 0], requires_grad=True)
    expected = theirs(logits, torch.tensor(GOLD))
    expected.backward()
    loss, d_logits = ours(LOGITS, GOLD)
    assert loss == pytest.approx(expected.item(), abs=1e-12)
    assert numpy.allclose(d_logits[:, 0], logits.grad.numpy(), atol=1e-12)
    slopes = finite_differences(lambda x: ours(x, GOLD)[0], LOGITS.copy())
    assert relative_error(d_logits, slopes) < 1e-8


def test_label_cross_entropy():
    """Equal outputs: ln of the number of labels."""
    targets = numpy.array([0, 2, 1])
    assert _label_cross_entropy(numpy.zeros((3, 4)), targets)[0] == pytest.approx(math.log(4))
    logits = RNG.normal(size=(3, 4))
    expected = finite_differences(lambda x: _label_cross_entropy(x, targets)[0], logits.copy())
    assert relative_error(_label_cross_entropy(logits, targets)[1], expected) < 1e-8
