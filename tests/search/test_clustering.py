"""Hierarchical clusters: parity with merging by hand, known groups, ties, and what is refused."""

import numpy
import pytest

from spacy_sbert.search import hierarchical_clusters

RNG = numpy.random.default_rng(0)
VECTORS = RNG.standard_normal((30, 8))
OF_CLUSTERS = {"average": numpy.mean, "complete": numpy.max, "single": numpy.min}


def by_brute_force(vectors, n_clusters, threshold, linkage):
    """Merge the two nearest clusters, found by comparing all, until enough are merged."""
    unit = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    clusters = [[i] for i in range(len(vectors))]
    while len(clusters) > (n_clusters or 1):
        pairs = [(a, b) for b in range(len(clusters)) for a in range(b)]
        between = [OF_CLUSTERS[linkage](distances[numpy.ix_(clusters[a], clusters[b])]) for a, b in pairs]
        if threshold is not None and min(between) > threshold:
            break
        a, b = pairs[numpy.argmin(between)]
        clusters[a] += clusters.pop(b)
    labels = numpy.empty(len(vectors), dtype="int64")
    for label, cluster in enumerate(sorted(clusters, key=min)):
        labels[cluster] = label
    return labels


@pytest.mark.parametrize("linkage", OF_CLUSTERS)
@pytest.mark.parametrize(("n_clusters", "threshold"), [(1, None), (4, None), (30, None), (None, 0.4), (None, 0.9)])
def test_parity_with_merging_by_hand(linkage, n_clusters, threshold):
    labels = hierarchical_clusters(VECTORS, n_clusters=n_clusters, threshold=threshold, linkage=linkage)
    assert labels.dtype == "int64"
    assert numpy.array_equal(labels, by_brute_force(VECTORS, n_clusters, threshold, linkage))


def test_known_groups_are_found():
    groups = RNG.integers(5, size=200)
    vectors = numpy.eye(5)[groups] * RNG.uniform(1, 9, (200, 1)) + RNG.normal(0, 0.05, (200, 5))
    order = {group: label for label, group in enumerate(dict.fromkeys(groups))}
    expected = [order[group] for group in groups]
    assert hierarchical_clusters(vectors, n_clusters=5).tolist() == expected
    assert hierarchical_clusters(vectors.astype("float32"), threshold=0.5).tolist() == expected


def test_blocks_do_not_matter(monkeypatch):
    whole = hierarchical_clusters(VECTORS, n_clusters=6)
    monkeypatch.setattr("spacy_sbert.search.clustering.BLOCK_BYTES", 8 * 30 * 7)  # seven rows at once
    assert numpy.array_equal(whole, hierarchical_clusters(VECTORS, n_clusters=6))


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_as_many_clusters_of_equal_vectors_as_asked_for(n_clusters):
    labels = hierarchical_clusters(numpy.ones((5, 3)), n_clusters=n_clusters)
    assert len(set(labels.tolist())) == n_clusters and labels[0] == 0


def test_zero_vectors_are_at_distance_one():
    vectors = [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    assert hierarchical_clusters(vectors, threshold=0.99).tolist() == [0, 1, 0]
    assert hierarchical_clusters(vectors, threshold=1.0).tolist() == [0, 0, 0]


def test_one_vector():
    assert hierarchical_clusters([[0.0, 1.0]], n_clusters=1).tolist() == [0]
    assert hierarchical_clusters([[0.0, 1.0]], threshold=0.1).tolist() == [0]


@pytest.mark.parametrize(
    ("vectors", "settings", "message"),
    [
        (VECTORS, {}, "n_clusters = None and threshold = None: expected exactly one"),
        (VECTORS, {"n_clusters": 2, "threshold": 0.5}, "n_clusters = 2 and threshold = 0.5: expected exactly one"),
        (VECTORS, {"n_clusters": 0}, "Cannot find 0 clusters of 30 vectors"),
        (VECTORS, {"n_clusters": 31}, "Cannot find 31 clusters of 30 vectors"),
        (VECTORS, {"threshold": float("nan")}, "Cannot use threshold = nan: expected a finite number"),
        (VECTORS, {"threshold": -0.1}, "up to the distance threshold = -0.1"),
        (VECTORS, {"n_clusters": 2, "linkage": "ward"}, "Cannot use linkage = 'ward': expected 'average', 'complete'"),
        (VECTORS[:0], {"n_clusters": 1}, r"Cannot search vectors of shape \(0, 8\)"),
        (VECTORS[0], {"n_clusters": 1}, r"Cannot search vectors of shape \(8,\)"),
        (VECTORS * numpy.nan, {"n_clusters": 1}, "Row 0 of the vectors is not finite"),
    ],
)
def test_refused(vectors, settings, message):
    with pytest.raises(ValueError, match=message):
        hierarchical_clusters(vectors, **settings)
