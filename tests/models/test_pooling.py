import numpy
import pytest
from gradients import finite_differences, relative_error
from thinc.api import Ragged

from spacy_sbert.models.pooling import POOLING, make_pooling

STATES = numpy.array([[1.0, -2.0], [3.0, -4.0], [5.0, 6.0], [7.0, 0.0], [-9.0, 1.0]])
LENGTHS = numpy.array([2, 3], dtype="i")
BY_HAND = {
    "mean": [[2.0, -3.0], [1.0, 7 / 3]],
    "max": [[3.0, -2.0], [7.0, 6.0]],
    "cls": [[1.0, -2.0], [5.0, 6.0]],
    "mean_sqrt_len": [[4 / 2**0.5, -6 / 2**0.5], [3 / 3**0.5, 7 / 3**0.5]],
    "weightedmean": [[7 / 3, -10 / 3], [-8 / 6, 9 / 6]],
    "lasttoken": [[3.0, -4.0], [-9.0, 1.0]],
    "cls+mean": [[1.0, -2.0, 2.0, -3.0], [5.0, 6.0, 1.0, 7 / 3]],
    "mean+max": [[2.0, -3.0, 3.0, -2.0], [1.0, 7 / 3, 7.0, 6.0]],
}


@pytest.mark.parametrize("name", {**BY_HAND, **POOLING})
def test_pooling_by_hand(name):
    pooled = make_pooling(name).predict(Ragged(STATES, LENGTHS))
    assert numpy.allclose(pooled, BY_HAND[name])
    assert pooled.dtype == STATES.dtype


@pytest.mark.parametrize("name", BY_HAND)
def test_pooling_gradient(name):
    rng = numpy.random.default_rng(0)
    states, upstream = rng.normal(size=(44, 4)), rng.normal(size=(3, 4 * len(name.split("+"))))
    lengths = numpy.array([3, 40, 1], dtype="i")  # sums are made of stretches of 16
    layer = make_pooling(name)
    _, backprop = layer.begin_update(Ragged(states, lengths))
    expected = finite_differences(lambda x: float((layer.predict(Ragged(x, lengths)) * upstream).sum()), states)
    given = backprop(upstream)
    assert relative_error(given.dataXd, expected) < 1e-6
    assert given.lengths.tolist() == lengths.tolist()


def test_the_gradient_of_a_maximum_goes_to_the_first():
    states = numpy.array([[1.0], [2.0], [2.0]])
    _, backprop = make_pooling("max").begin_update(Ragged(states, numpy.array([3], dtype="i")))
    assert backprop(numpy.ones((1, 1))).dataXd.tolist() == [[0.0], [1.0], [0.0]]
