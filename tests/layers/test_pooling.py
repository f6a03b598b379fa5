import numpy
import pytest
from gradients import finite_differences, relative_error

from spacy_sbert.models import POOLING

STATES = numpy.array([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]], [[5.0, 6.0], [7.0, 0.0], [-9.0, 1.0]]])
MASK = numpy.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
BY_HAND = {
    "mean": [[2.0, -3.0], [1.0, 7 / 3]],
    "max": [[3.0, -2.0], [7.0, 6.0]],
    "cls": [[1.0, -2.0], [5.0, 6.0]],
}


@pytest.mark.parametrize("name", POOLING)
def test_pooling_by_hand(name):
    pooled = POOLING[name]().predict((STATES, MASK))
    assert numpy.allclose(pooled, BY_HAND[name])
    assert pooled.dtype == STATES.dtype


@pytest.mark.parametrize("name", POOLING)
def test_padding_has_no_influence_and_no_gradient(name):
    layer = POOLING[name]()
    changed = STATES.copy()
    changed[0, 2] = 1e9
    assert numpy.array_equal(layer.predict((changed, MASK)), layer.predict((STATES, MASK)))
    _, backprop = layer.begin_update((STATES, MASK))
    assert not backprop(numpy.ones((2, 2)))[0, 2].any()


@pytest.mark.parametrize("name", POOLING)
def test_pooling_gradient(name):
    rng = numpy.random.default_rng(0)
    states, upstream = rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 4))
    mask = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], dtype="float64")
    layer = POOLING[name]()
    _, backprop = layer.begin_update((states, mask))
    expected = finite_differences(lambda x: float((layer.predict((x, mask)) * upstream).sum()), states)
    assert relative_error(backprop(upstream), expected) < 1e-6


def test_cls_with_padding_on_the_left():
    mask = numpy.array([[0.0, 1.0, 1.0]])
    assert POOLING["cls"]().predict((STATES[:1], mask)).tolist() == [[3.0, -4.0]]
