import numpy
import pytest
from gradients import finite_differences, relative_error

from spacy_sbert import similarity
from spacy_sbert.models.heads import unit_length


def test_gradient():
    rng = numpy.random.default_rng(1)
    X, upstream = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    layer = unit_length()
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
    rng = numpy.random.default_rng(2)
    plain, upstream = rng.normal(size=(4, 5)), rng.normal(size=(4, 5)).astype(dtype)
    unit = plain / numpy.linalg.norm(plain, axis=1, keepdims=True)
    d_unit = upstream - (upstream * unit).sum(axis=1, keepdims=True) * unit
    eps = 16 * float(numpy.finfo(dtype).eps)
    for scale in SCALES:
        if not float(numpy.finfo(dtype).tiny) < scale < float(numpy.finfo(dtype).max):
            continue
        X = (plain * scale).astype(dtype)
        Y, backprop = unit_length().begin_update(X)
        for found in (Y, similarity.unit_length(X)):
            assert found.dtype == dtype and found == pytest.approx(unit, abs=eps), scale
        dX = backprop(upstream).astype("float64") * numpy.linalg.norm(X.astype("f8") / scale, axis=1)[:, None] * scale
        assert dX == pytest.approx(d_unit, abs=eps), scale


@pytest.mark.filterwarnings("error")
def test_denormal_rows_have_a_direction_and_no_gradient():
    X = numpy.full((1, 4), 1e-42, dtype="float32")
    Y, backprop = unit_length().begin_update(X)
    assert Y.tolist() == [[0.5] * 4]
    assert backprop(numpy.ones((1, 4), dtype="float32")).tolist() == [[0.0] * 4]


def test_ordinary_rows_are_what_they_were():
    X = numpy.random.default_rng(3).normal(size=(400, 37)).astype("float32")
    X[7] = 0
    X[9] *= 1e30  # and do not change beside odd ones
    plain = numpy.delete(X, 9, axis=0)
    norms = numpy.sqrt((plain * plain).sum(axis=1, keepdims=True))
    inverse = numpy.where(norms > 0, 1 / numpy.where(norms > 0, norms, 1), 0).astype("float32")
    Y, backprop = unit_length().begin_update(X)
    assert numpy.array_equal(numpy.delete(Y, 9, axis=0), plain * inverse)
    assert numpy.array_equal(
        numpy.delete(similarity.unit_length(X), 9, axis=0), plain / numpy.where(norms > 0, norms, 1)
    )
    dY = numpy.ones_like(X)
    expected = (1 - (plain * inverse).sum(axis=1, keepdims=True) * (plain * inverse)) * inverse
    assert numpy.array_equal(numpy.delete(backprop(dY), 9, axis=0), expected)
