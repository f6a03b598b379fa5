"""Dense layers, truncation, and rows pooled behind a prompt: by hand, and by finite differences."""

import numpy
import pytest
from gradients import finite_differences, relative_error
from thinc.api import NumpyOps, chain

from spacy_sbert.models.heads import ACTIVATIONS, Dense, truncation
from spacy_sbert.models.sentence_pooling import _row_vectors, _without_leading

RNG = numpy.random.default_rng(0)


def in_float64(layer):
    layer.initialize()
    for node in layer.walk():
        for name in node.param_names:
            node.set_param(name, RNG.normal(size=node.get_param(name).shape))
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients(activation, bias):
    layer = in_float64(Dense(4, 3, activation=activation, bias=bias))
    assert layer.has_param("b") == bias
    x, upstream = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 3))
    _, backprop = layer.begin_update(x)
    given = backprop(upstream)

    def value(of):
        return float((layer.predict(of) * upstream).sum())

    assert relative_error(given, finite_differences(value, x)) < 1e-6
    for name in ("W", "b") if bias else ("W",):
        kept = layer.get_param(name).copy()

        def of_parameter(parameter, name=name):
            layer.set_param(name, parameter)
            return float((layer.predict(x) * upstream).sum())

        assert relative_error(layer.get_grad(name), finite_differences(of_parameter, kept)) < 1e-6


def test_truncation_has_the_gradient_of_what_is_kept():
    x, upstream = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 2))
    kept, backprop = truncation(2).begin_update(x)
    assert numpy.array_equal(kept, x[:, :2])
    assert numpy.array_equal(backprop(upstream), numpy.pad(upstream, ((0, 0), (0, 3))))
    with pytest.raises(ValueError, match="6 dimensions: they have 5"):
        truncation(6).predict(x)


def test_rows_through_layers():
    """Windows averaged, two dense layers, truncation; a row without text stays zero in spite of the bias."""
    layers = [in_float64(chain(Dense(3, 4), Dense(4, 4, activation="identity"))), truncation(2)]
    windows, row_of, weights = RNG.normal(size=(4, 3)), numpy.array([0, 0, 1, 2]), numpy.array([1, 3, 0, 2])
    upstream = RNG.normal(size=(3, 2))

    def vectors(of):
        return _row_vectors(NumpyOps(), layers, of, row_of, weights, is_train=True)

    given, backprop = vectors(windows)
    average = (windows[:1] + 3 * windows[1:2]) / 4
    assert numpy.allclose(given[0], layers[0].predict(average)[0, :2])
    assert not given[1].any()
    expected = finite_differences(lambda of: float((vectors(of)[0] * upstream).sum()), windows)
    assert relative_error(backprop(upstream), expected) < 1e-6


def test_leading_wordpieces_are_left_out():
    states = numpy.arange(14.0).reshape(7, 2)
    kept, lengths, backprop = _without_leading(states, numpy.array([4, 1, 2]), 2)
    assert kept.tolist() == [states[2].tolist(), states[3].tolist(), states[4].tolist(), states[6].tolist()]
    assert lengths.tolist() == [2, 1, 1]  # never none
    assert backprop(numpy.ones((4, 2)))[:, 0].tolist() == [0, 0, 1, 1, 1, 0, 1]


def test_errors():
    with pytest.raises(ValueError, match="Unknown activation 'gelu' of a dense layer: expected one of identity, tanh"):
        Dense(3, 2, activation="gelu")
    with pytest.raises(ValueError, match="nO = 0"):
        Dense(3, 0)
    with pytest.raises(ValueError, match="has no weights yet"):
        Dense(3, 2).predict(numpy.zeros((1, 3)))
    with pytest.raises(ValueError, match="width 3, but the pooled ones have width 4"):
        in_float64(Dense(3, 2)).predict(numpy.zeros((1, 4)))
