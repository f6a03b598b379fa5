"""Projections: identities of principal components, and their agreement with scikit-learn's."""

import numpy
import pytest

from spacy_sbert.similarity import unit_length
from spacy_sbert.visual import projection
from spacy_sbert.visual.projection import pca, tsne

RNG = numpy.random.default_rng(0)


@pytest.mark.parametrize("shape", [(50, 8), (5, 40), (3, 3)])
def test_pca_as_scikit_learn(shape):
    decomposition = pytest.importorskip("sklearn.decomposition")
    vectors = RNG.normal(size=shape)
    points, shares = pca(vectors)
    model = decomposition.PCA(2, svd_solver="full").fit(unit_length(vectors))
    expected = model.transform(unit_length(vectors))
    numpy.testing.assert_allclose(
        points, expected * numpy.sign(expected[0]) * numpy.sign(points[0]), atol=1e-12
    )
    numpy.testing.assert_allclose(shares, model.explained_variance_ratio_, atol=1e-12)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]], "All 3 vectors have the same direction"),
        ([[0.0, 0.0], [0.0, 0.0]], "All 2 vectors have the same direction"),
        ([[1.0, numpy.nan]], "Row 0 of the vectors is not finite"),
        ([1.0, 2.0], r"shape \(2,\)"),
    ],
)
def test_refused(vectors, message):
    with pytest.raises(ValueError, match=message):
        pca(vectors)


def test_tsne_of_few_and_of_many(monkeypatch):
    """The others are placed among their neighbours, and none of them changes what the sample looks
    like.
    """
    pytest.importorskip("sklearn")
    for n in (2, 5):
        points = tsne(RNG.normal(size=(n, 4)))
        assert points.shape == (n, 2)
        assert numpy.isfinite(points).all()
    monkeypatch.setattr(projection, "MAX_TSNE", 40)
    group = numpy.arange(60) % 2
    vectors = numpy.eye(4)[group] + RNG.normal(scale=0.05, size=(60, 4))
    points = tsne(vectors, seed=1)
    chosen = numpy.sort(numpy.random.default_rng(1).permutation(60)[:40])
    numpy.testing.assert_array_equal(points[chosen], tsne(unit_length(vectors)[chosen], seed=1))
    middles = numpy.stack([points[chosen][group[chosen] == one].mean(axis=0) for one in (0, 1)])
    nearest = numpy.linalg.norm(points[:, None] - middles, axis=2).argmin(axis=1)
    numpy.testing.assert_array_equal(nearest, group)


def test_pca_does_not_depend_on_length_order_or_direction():
    vectors = RNG.normal(size=(20, 6))
    points, shares = pca(vectors)
    order = RNG.permutation(20)
    again, same = pca((vectors * RNG.uniform(0.1, 9, size=(20, 1)))[order])
    numpy.testing.assert_allclose(again, points[order], atol=1e-12)
    numpy.testing.assert_allclose(same, shares, atol=1e-12)
    points, shares = pca([[0, 0, 1], [0.1, 0, 1], [0, 0.6, -1.0]])
    assert shares.sum() == pytest.approx(1)
    assert points[0, 0] > 0 > points[2, 0]
    turned, _ = pca([[0, 0, -1], [-0.1, 0, -1], [0, -0.6, 1.0]])
    numpy.testing.assert_allclose(numpy.abs(turned), numpy.abs(points), atol=1e-12)
