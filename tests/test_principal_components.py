"""Principal components: agreement of both ways with one another, with NumPy and with scikit-learn; signs; rank."""

import numpy
import pytest

from spacy_sbert.similarity import components_of_covariance, flip_signs, principal_components

RNG = numpy.random.default_rng(0)
SHAPES = [(50, 8), (5, 40), (3, 3), (1, 4), (7, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_components_of_rows(shape, dtype):
    rows = (RNG.normal(size=shape) * numpy.arange(1, shape[1] + 1) + 3).astype(dtype)
    mean, (axes, variances, rank) = principal_components(rows)
    numpy.testing.assert_allclose(mean, rows.astype("float64").mean(axis=0), atol=1e-12)
    assert rank == min(shape[0] - 1, shape[1])
    assert (numpy.diff(variances) <= 0).all()
    numpy.testing.assert_allclose(axes @ axes.T, numpy.eye(min(shape)), atol=1e-12)
    points = (rows - mean) @ axes.T
    scatter = numpy.diag(variances) * max(shape[0] - 1, 1)
    numpy.testing.assert_allclose(points.T @ points, scatter, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_as_scikit_learn(shape):
    decomposition = pytest.importorskip("sklearn.decomposition")
    rows = RNG.normal(size=shape)
    theirs = decomposition.PCA(2, svd_solver="full").fit(rows)
    _, ours = principal_components(rows)
    numpy.testing.assert_allclose(flip_signs(ours.axes[:2]), flip_signs(theirs.components_), atol=1e-10)
    numpy.testing.assert_allclose(ours.variances[:2], theirs.explained_variance_, atol=1e-12)


@pytest.mark.parametrize("shape", [(50, 8), (6, 9)])
def test_both_ways_agree(shape):
    rows = RNG.normal(size=shape)
    _, of_rows = principal_components(rows)
    of_covariance = components_of_covariance(numpy.cov(rows.T))
    rank = min(shape[0] - 1, shape[1])
    assert of_rows.rank == of_covariance.rank == rank
    numpy.testing.assert_allclose(of_covariance.variances[:rank], of_rows.variances[:rank], atol=1e-10)
    numpy.testing.assert_allclose(flip_signs(of_covariance.axes[:rank]), flip_signs(of_rows.axes[:rank]), atol=1e-7)


def test_signs():
    axes = numpy.array([[0.0, -2.0, 1.0], [3.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    assert flip_signs(axes).tolist() == [[0.0, 2.0, -1.0], [3.0, -3.0, 0.0], [0.0, 0.0, 0.0]]


def test_rows_that_do_not_vary_have_no_components():
    assert principal_components(numpy.full((4, 3), 0.1))[1].rank == 0
