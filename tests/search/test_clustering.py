"""Clusters: hierarchical ones equal scikit-learn's, communities those of sentence-transformers;
k-means; groups.
"""

import numpy
import pytest
import sentence_transformers
from packaging.version import Version
from sentence_transformers.util import community_detection
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score

from spacy_sbert.search import (
    communities,
    hierarchical_clusters,
    kmeans_clusters,
    pairs_above,
    similar_groups,
)

RNG = numpy.random.default_rng(0)
VECTORS = RNG.standard_normal((30, 8))


def in_order(labels):
    """The same clusters, numbered in the order of appearance."""
    order = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return [order[label] for label in labels]


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
@pytest.mark.parametrize(
    ("n_clusters", "threshold"), [(1, None), (4, None), (30, None), (None, 0.4), (None, 0.9)]
)
def test_hierarchical_clusters_equal_scikit_learn(linkage, n_clusters, threshold, monkeypatch):
    labels = hierarchical_clusters(
        VECTORS, n_clusters=n_clusters, threshold=threshold, linkage=linkage
    )
    theirs = AgglomerativeClustering(
        n_clusters, distance_threshold=threshold, metric="cosine", linkage=linkage
    )
    assert labels.dtype == "int64"
    assert labels.tolist() == in_order(theirs.fit(VECTORS).labels_)
    # Seven rows at once
    monkeypatch.setattr("spacy_sbert.search.clustering.BLOCK_BYTES", 8 * 30 * 7)
    again = hierarchical_clusters(
        VECTORS, n_clusters=n_clusters, threshold=threshold, linkage=linkage
    )
    assert numpy.array_equal(labels, again)


GROUPS = RNG.integers(5, size=200)
GROUPED = numpy.eye(5)[GROUPS] * RNG.uniform(1, 9, (200, 1)) + RNG.normal(0, 0.05, (200, 5))


def test_known_groups_are_found():
    expected = in_order(GROUPS)
    assert hierarchical_clusters(GROUPED, n_clusters=5).tolist() == expected
    assert hierarchical_clusters(GROUPED.astype("float32"), threshold=0.5).tolist() == expected
    labels = kmeans_clusters(GROUPED, n_clusters=5)
    assert labels.dtype == "int64"
    assert labels.tolist() == expected


def test_equal_vectors_are_in_one_cluster():
    """By every method, at any threshold, whatever their lengths are and the cosine with itself is
    rounded to.
    """
    rng = numpy.random.default_rng(0)
    vectors = rng.normal(size=(40, 48)).astype("float32")
    numbers = rng.permutation(numpy.repeat(numpy.arange(40), 5))
    copies = (vectors * rng.uniform(0.1, 9, size=(40, 1)).astype("float32"))[numbers]
    by_method = {
        "average": hierarchical_clusters(copies, threshold=0.0),
        "complete": hierarchical_clusters(copies, threshold=0.0, linkage="complete"),
        "single": hierarchical_clusters(copies, n_clusters=40, linkage="single"),
        "kmeans": kmeans_clusters(copies, n_clusters=40, n_init=50),
    }
    for name, groups in {
        "communities": communities(copies, threshold=1.0, min_size=2),
        "groups": similar_groups(copies, 1.0),
    }.items():
        by_method[name] = numpy.full(200, -1)
        for number, group in enumerate(groups):
            by_method[name][group] = number
    for name, labels in by_method.items():
        of_vectors = [set(labels[numbers == number].tolist()) for number in range(40)]
        assert all(len(own) == 1 for own in of_vectors), name
        assert name == "kmeans" or len(set.union(*of_vectors)) == 40, name
    assert len(pairs_above(copies, 1.0)[0]) == 40 * 10
    assert hierarchical_clusters(numpy.ones((5, 3)), n_clusters=1).tolist() == [0] * 5
    with pytest.raises(ValueError, match="n_clusters = 2 among 1 different vectors"):
        hierarchical_clusters(numpy.ones((5, 3)), n_clusters=2)


def test_a_zero_vector_is_at_the_distance_of_one():
    # A zero vector is at the distance 1
    vectors = [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    assert hierarchical_clusters(vectors, threshold=0.99).tolist() == [0, 1, 0]
    assert hierarchical_clusters(vectors, threshold=1.0).tolist() == [0, 0, 0]


def test_kmeans_equals_scikit_learn():
    unit = (GROUPED / numpy.linalg.norm(GROUPED, axis=1, keepdims=True)).astype("float32")
    expected = KMeans(3, n_init=4, random_state=7).fit(unit).labels_
    assert (
        adjusted_rand_score(kmeans_clusters(GROUPED, n_clusters=3, seed=7, n_init=4), expected)
        == 1.0
    )


@pytest.mark.parametrize(("block_bytes", "n"), [(4, 20), (100, 60), (2**23, 60)])
@pytest.mark.parametrize("least", [0.45, 0.7, 0.8, 0.9])
def test_similar_groups_are_those_of_single_linkage(least, block_bytes, n):
    vectors = numpy.random.default_rng(2).normal(size=(n, 5))
    # Duplicates
    vectors[[3, n // 2, n // 2 + 1]] = vectors[7]
    labels = hierarchical_clusters(vectors, threshold=1 - least, linkage="single")
    expected = [numpy.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)]
    found = [group.tolist() for group in similar_groups(vectors, least, block_bytes=block_bytes)]
    assert found == sorted(
        (group for group in expected if len(group) > 1), key=lambda group: (-len(group), group[0])
    )


OF_GROUPS = numpy.random.default_rng(0)
CENTRES = OF_GROUPS.standard_normal((30, 16))
NEAR = (
    CENTRES[OF_GROUPS.integers(30, size=500)] + 0.6 * OF_GROUPS.standard_normal((500, 16))
).astype("f4")


def reference(vectors, threshold, min_size):
    """The definition, over all similarities at once."""
    units = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    taken = set()
    groups = []
    for centre in numpy.argsort(-(cosines >= threshold).sum(axis=1), kind="stable").tolist():
        near = [
            j
            for j in numpy.argsort(-cosines[centre], kind="stable").tolist()
            if cosines[centre, j] >= threshold
        ]
        group = [centre, *(j for j in near if j != centre and j not in taken)]
        if centre not in taken and len(group) >= min_size:
            taken.update(group)
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.75])
@pytest.mark.parametrize("min_size", [1, 5, 20])
def test_parity_with_sentence_transformers(threshold, min_size):
    expected = reference(NEAR, threshold, min_size)
    # before, groups could lack their centres
    if Version(sentence_transformers.__version__).major >= 6:
        assert expected == community_detection(
            NEAR, threshold=threshold, min_community_size=min_size
        )
    for block_bytes in (4 * 61**2, 2**23):
        found = communities(NEAR, threshold=threshold, min_size=min_size, block_bytes=block_bytes)
        assert [group.tolist() for group in found] == expected
        assert len(found) > 1
    assert all(group.dtype == "int64" for group in found)


def test_communities_by_hand():
    # Neighbours are up to 25 degrees apart
    angles = numpy.radians([0, 20, 40, 60, 200, 210])
    vectors = numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1) * [
        [1],
        [2],
        [3],
        [4],
        [5],
        [6],
    ]
    threshold = float(numpy.cos(numpy.radians(25)))
    # 3 is near to 2, taken
    for min_size, expected in (
        (2, [[1, 0, 2], [4, 5]]),
        (1, [[1, 0, 2], [4, 5], [3]]),
    ):
        for block_bytes in (4, 2**23):
            found = communities(
                vectors, threshold=threshold, min_size=min_size, block_bytes=block_bytes
            )
            assert [group.tolist() for group in found] == expected
    # Equal ones, at the threshold
    vectors = numpy.repeat(RNG.standard_normal((2, 384)), 20, axis=0)
    found = communities(vectors, threshold=1 - 1e-6, min_size=20)
    assert [group.tolist() for group in found] == [list(range(20)), list(range(20, 40))]
