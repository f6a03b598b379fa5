import numpy
import pytest
from gradients import finite_differences, relative_error

from spacy_sbert.losses.cosine_similarity import CosineSimilarityLoss

RNG = numpy.random.default_rng(2)
U, V, GOLD = RNG.normal(size=(6, 5)), RNG.normal(size=(6, 5)), RNG.uniform(size=6)


def test_value_by_hand():
    u, v = numpy.array([[1.0, 0.0], [1.0, 1.0]]), numpy.array([[0.0, 2.0], [3.0, 3.0]])
    value, _ = CosineSimilarityLoss()(([u, v], numpy.array([0.5, 0.8])), True)  # cosines 0 and 1
    assert value == pytest.approx((0.25 + 0.04) / 2)


@pytest.mark.parametrize("member", [0, 1])
def test_gradient_is_that_of_the_reported_loss(member):
    loss = CosineSimilarityLoss()
    inputs = [U.copy(), V.copy()]
    _, backprop = loss((inputs, GOLD), True)
    given = backprop(1.0)[member]
    expected = finite_differences(lambda x: loss((inputs, GOLD), True)[0], inputs[member])
    assert relative_error(given, expected) < 1e-6


def test_backprop_takes_a_factor():
    _, backprop = CosineSimilarityLoss()(([U, V], GOLD), True)
    assert numpy.allclose(backprop(3.0)[0], 3 * backprop(1.0)[0])


def test_zero_vector_has_cosine_zero_and_no_gradient():
    u = numpy.zeros((1, 3))
    value, backprop = CosineSimilarityLoss()(([u, numpy.ones((1, 3))], numpy.array([1.0])), True)
    assert value == 1.0
    assert not any(d.any() for d in backprop(1.0))


def test_agrees_with_sentence_transformers():
    torch = pytest.importorskip("torch")
    u, v = (torch.tensor(x, requires_grad=True) for x in (U, V))
    expected = torch.nn.functional.mse_loss(torch.cosine_similarity(u, v), torch.tensor(GOLD))
    expected.backward()
    value, backprop = CosineSimilarityLoss()(([U, V], GOLD), True)
    assert value == pytest.approx(expected.item(), abs=1e-12)
    for given, tensor in zip(backprop(1.0), (u, v), strict=True):
        assert numpy.allclose(given, tensor.grad.numpy(), atol=1e-12)


def test_unpaired_rows_are_refused():
    with pytest.raises(ValueError, match="got 6, 5 and 6"):
        CosineSimilarityLoss()(([U, V[:5]], GOLD), True)
