"""Layers after pooling: dense, unit length, truncation and the sigmoid, by hand and by finite
differences.
"""

import numpy
import pytest
from helpers.gradients import finite_differences, relative_error
from scipy import special

from spacy_sbert import similarity
from spacy_sbert.models.heads import ACTIVATIONS, Dense, normalization, sigmoid, truncation

RNG = numpy.random.default_rng(0)


def dense_in_float64(*args, **settings):
    layer = Dense(*args, **settings)
    layer.initialize()
    for name in layer.param_names:
        layer.set_param(name, RNG.normal(size=layer.get_param(name).shape))
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_dense(activation, bias):
    layer = dense_in_float64(4, 3, activation=activation, bias=bias)
    assert layer.has_param("b") == bias
    x = RNG.normal(size=(5, 4))
    upstream = RNG.normal(size=(5, 3))
    _, backprop = layer.begin_update(x)
    given = backprop(upstream)

    def value(of):
        return float((layer.predict(of) * upstream).sum())

    assert relative_error(given, finite_differences(value, x)) < 1e-6
    for name in ("W", "b") if bias else ("W",):
        kept = layer.get_param(name).copy()

        def of_parameter(parameter, name=name):
            layer.set_param(name, parameter)
            return value(x)

        assert relative_error(layer.get_grad(name), finite_differences(of_parameter, kept)) < 1e-6


def test_truncation_and_errors():
    x = RNG.normal(size=(3, 5))
    upstream = RNG.normal(size=(3, 2))
    kept, backprop = truncation(2).begin_update(x)
    assert numpy.array_equal(kept, x[:, :2])
    assert numpy.array_equal(backprop(upstream), numpy.pad(upstream, ((0, 0), (0, 3))))
    with pytest.raises(ValueError, match="6 dimensions: they have 5"):
        truncation(6).predict(x)
    with pytest.raises(
        ValueError,
        match=r"activation 'gelu' .*: expected one of identity, tanh",
    ):
        Dense(3, 2, activation="gelu")
    with pytest.raises(ValueError, match="nO = 0"):
        Dense(3, 0)
    with pytest.raises(ValueError, match="has no weights yet"):
        Dense(3, 2).predict(numpy.zeros((1, 3)))
    with pytest.raises(ValueError, match="width 3, but the pooled ones have width 4"):
        dense_in_float64(3, 2).predict(numpy.zeros((1, 4)))


# Unit length


def test_gradient_of_unit_length():
    X = RNG.normal(size=(4, 5))
    upstream = RNG.normal(size=(4, 5))
    layer = normalization()
    _, backprop = layer.begin_update(X)
    expected = finite_differences(lambda x: float((layer.predict(x) * upstream).sum()), X)
    assert relative_error(backprop(upstream), expected) < 1e-6
    Y, backprop = layer.begin_update(numpy.array([[3.0, 4.0], [0.0, 0.0]]))
    assert numpy.allclose(Y, [[0.6, 0.8], [0.0, 0.0]])
    assert not backprop(numpy.ones((2, 2)))[1].any()


SCALES = (1e-300, 1e-200, 1e-30, 1e-15, 1.0, 1e15, 1e30, 1e200, 1e300)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_and_tiny_rows(dtype):
    plain = RNG.normal(size=(4, 5))
    upstream = RNG.normal(size=(4, 5)).astype(dtype)
    unit = plain / numpy.linalg.norm(plain, axis=1, keepdims=True)
    d_unit = upstream - (upstream * unit).sum(axis=1, keepdims=True) * unit
    eps = 16 * float(numpy.finfo(dtype).eps)
    for scale in SCALES:
        if not float(numpy.finfo(dtype).tiny) < scale < float(numpy.finfo(dtype).max):
            continue
        X = (plain * scale).astype(dtype)
        Y, backprop = normalization().begin_update(X)
        for found in (Y, similarity.unit_length(X)):
            assert found.dtype == dtype and found == pytest.approx(unit, abs=eps), scale
        dX = (
            backprop(upstream).astype("float64")
            * numpy.linalg.norm(X.astype("f8") / scale, axis=1)[:, None]
            * scale
        )
        assert dX == pytest.approx(d_unit, abs=eps), scale

    # Denormal rows have a direction and no gradient.
    X = numpy.full((1, 4), 1e-42, dtype="float32")
    Y, backprop = normalization().begin_update(X)
    assert Y.tolist() == [[0.5] * 4]
    assert backprop(numpy.ones((1, 4), dtype="float32")).tolist() == [[0.0] * 4]


def test_ordinary_rows_are_divided_by_their_norms():
    X = RNG.normal(size=(400, 37)).astype("float32")
    X[7] = 0
    # And do not change beside odd ones
    X[9] *= 1e30
    plain = numpy.delete(X, 9, axis=0)
    norms = numpy.sqrt((plain * plain).sum(axis=1, keepdims=True))
    inverse = numpy.where(norms > 0, 1 / numpy.where(norms > 0, norms, 1), 0).astype("float32")
    Y, backprop = normalization().begin_update(X)
    assert numpy.array_equal(numpy.delete(Y, 9, axis=0), plain * inverse)
    of_similarity = numpy.delete(similarity.unit_length(X), 9, axis=0)
    assert numpy.array_equal(of_similarity, plain / numpy.where(norms > 0, norms, 1))
    expected = (1 - (plain * inverse).sum(axis=1, keepdims=True) * (plain * inverse)) * inverse
    assert numpy.array_equal(numpy.delete(backprop(numpy.ones_like(X)), 9, axis=0), expected)


# Sigmoid

EXTREME = [
    0.0,
    -0.0,
    1e-30,
    15.9,
    88.0,
    88.8,
    89.0,
    103.0,
    709.0,
    710.0,
    745.0,
    1000.0,
    1e30,
    numpy.inf,
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_is_that_of_scipy(dtype):
    drawn = RNG.normal(size=2000) * 30
    x = numpy.concatenate([EXTREME, numpy.negative(EXTREME), drawn]).astype(dtype)[:, None]
    found = sigmoid(x)
    assert found.dtype == dtype
    expected = special.expit(x.astype("float64"))
    tiny = numpy.finfo(dtype).tiny
    assert numpy.allclose(found, expected, rtol=4 * numpy.finfo(dtype).eps, atol=tiny)
    x = numpy.random.default_rng(1).normal(size=(500, 8)).astype("float32") * 20
    assert numpy.array_equal(sigmoid(x), 1 / (1 + numpy.exp(-x)))
    assert numpy.array_equal(ACTIVATIONS["sigmoid"][0](x), sigmoid(x))
