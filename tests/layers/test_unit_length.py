import numpy
from gradients import finite_differences, relative_error

from spacy_sbert.layers.unit_length import unit_length


def test_unit_length():
    Y = unit_length().predict(numpy.array([[3.0, 4.0], [0.0, 0.0]]))
    assert numpy.allclose(Y, [[0.6, 0.8], [0.0, 0.0]])


def test_gradient():
    rng = numpy.random.default_rng(1)
    X, upstream = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    layer = unit_length()
    _, backprop = layer.begin_update(X)
    expected = finite_differences(lambda x: float((layer.predict(x) * upstream).sum()), X)
    assert relative_error(backprop(upstream), expected) < 1e-6


def test_zero_row_gets_no_gradient():
    _, backprop = unit_length().begin_update(numpy.zeros((1, 3)))
    assert backprop(numpy.ones((1, 3))).tolist() == [[0.0, 0.0, 0.0]]
