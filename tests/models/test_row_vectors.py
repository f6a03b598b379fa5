"""From windows to rows: weighted by their wordpieces, single windows as they are, nothing for nothing."""

import numpy
import pytest
from gradients import finite_differences, relative_error
from thinc.api import NumpyOps

from spacy_sbert.models.heads import unit_length
from spacy_sbert.models.sentence_pooling import _row_vectors

ROW_OF = numpy.array([0, 0, 0, 1, 2, 3, 3, 4])  # three windows, one, one, two, one
WEIGHTS = numpy.array([22, 22, 6, 3, 0, 5, 0, 1])  # the third row has no text, nor has the last window of the fourth


def vectors_of(windows, row_of=ROW_OF, weights=WEIGHTS, normalize=False, is_train=False):
    finishing = [unit_length()] if normalize else []
    return _row_vectors(NumpyOps(), finishing, windows, row_of, weights, is_train=is_train)


def test_by_hand():
    windows = numpy.array([[1.0, 4.0], [3.0, 0.0], [9.0, 9.0], [2.0, -1.0]], dtype="float32")
    given, _ = vectors_of(windows, numpy.array([0, 0, 1, 2]), numpy.array([3, 1, 0, 5]))
    assert given.dtype == numpy.float32
    assert given.tolist() == [[1.5, 3.0], [0.0, 0.0], [2.0, -1.0]]
    unit, _ = vectors_of(windows, numpy.array([0, 0, 1, 2]), numpy.array([3, 1, 0, 5]), normalize=True)
    assert unit == pytest.approx(numpy.array([[1.5, 3.0], [0.0, 0.0], [2.0, -1.0]]) / [[11.25**0.5], [1], [5**0.5]])


@pytest.mark.parametrize("normalize", [False, True])
def test_each_row_is_the_average_of_its_windows(normalize):
    windows = numpy.random.default_rng(1).normal(size=(8, 5)).astype("float32")
    given, _ = vectors_of(windows, normalize=normalize)
    assert given.shape == (5, 5)
    for row in range(5):
        own = row == ROW_OF
        expected = numpy.zeros(5)
        if WEIGHTS[own].any():
            expected = numpy.average(windows[own], axis=0, weights=WEIGHTS[own])
            expected = expected / numpy.linalg.norm(expected) if normalize else expected
        assert given[row] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("n_rows", [8, 5])
def test_gradient(n_rows, normalize):
    """With a row for each window, too, which takes another way."""
    row_of = ROW_OF if n_rows == 5 else numpy.arange(8)
    rng = numpy.random.default_rng(2)
    windows, upstream = rng.normal(size=(8, 3)), rng.normal(size=(n_rows, 3))

    def value(x):
        return float((vectors_of(x, row_of, normalize=normalize)[0] * upstream).sum())

    _, backprop = vectors_of(windows, row_of, normalize=normalize, is_train=True)
    given = backprop(upstream)
    assert given.dtype == numpy.float64
    assert relative_error(given, finite_differences(value, windows)) < 1e-6
    assert not given[WEIGHTS == 0].any() and given[WEIGHTS > 0].all()
