"""Clusters: hierarchical ones equal merging by hand, communities those of sentence-transformers; k-means; groups."""

import numpy
import pytest
import sentence_transformers
from packaging.version import Version
from sentence_transformers.util import community_detection
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from spacy_sbert.search import communities, hierarchical_clusters, kmeans_clusters, similar_groups

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


GROUPS = RNG.integers(5, size=200)
GROUPED = numpy.eye(5)[GROUPS] * RNG.uniform(1, 9, (200, 1)) + RNG.normal(0, 0.05, (200, 5))


def test_kmeans_finds_known_groups():
    order = {group: label for label, group in enumerate(dict.fromkeys(GROUPS))}
    labels = kmeans_clusters(GROUPED, n_clusters=5)
    assert labels.dtype == "int64" and labels.tolist() == [order[group] for group in GROUPS]


def test_kmeans_equals_scikit_learn():
    unit = (GROUPED / numpy.linalg.norm(GROUPED, axis=1, keepdims=True)).astype("float32")
    expected = KMeans(3, n_init=4, random_state=7).fit(unit).labels_
    assert adjusted_rand_score(kmeans_clusters(GROUPED, n_clusters=3, seed=7, n_init=4), expected) == 1.0


@pytest.mark.parametrize("block_bytes", [4, 100, 2**23])
@pytest.mark.parametrize("least", [0.45, 0.7, 0.8, 0.9])
def test_similar_groups_are_those_of_single_linkage(least, block_bytes):
    vectors = numpy.random.default_rng(2).normal(size=(60, 5))
    vectors[[3, 30, 31]] = vectors[7]  # duplicates
    labels = hierarchical_clusters(vectors, threshold=1 - least, linkage="single")
    expected = [numpy.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)]
    found = [group.tolist() for group in similar_groups(vectors, least, block_bytes=block_bytes)]
    assert found == sorted((group for group in expected if len(group) > 1), key=lambda group: (-len(group), group[0]))


def test_more_pairs_than_can_be_kept():
    """3000 equal vectors have 4.5 million pairs, which pairs_above refuses."""
    (group,) = similar_groups(numpy.ones((3000, 2)), 0.9)
    assert group.tolist() == list(range(3000))


OF_GROUPS = numpy.random.default_rng(0)
CENTRES = OF_GROUPS.standard_normal((30, 16))
NEAR = (CENTRES[OF_GROUPS.integers(30, size=500)] + 0.6 * OF_GROUPS.standard_normal((500, 16))).astype("f4")


def reference(vectors, threshold, min_size):
    """The definition, over all similarities at once."""
    units = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, taken, groups = units @ units.T, set(), []
    for centre in numpy.argsort(-(cosines >= threshold).sum(axis=1), kind="stable").tolist():
        near = [j for j in numpy.argsort(-cosines[centre], kind="stable").tolist() if cosines[centre, j] >= threshold]
        group = [centre, *(j for j in near if j != centre and j not in taken)]
        if centre not in taken and len(group) >= min_size:
            taken.update(group)
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.75])
@pytest.mark.parametrize("min_size", [1, 5, 20])
def test_parity_with_sentence_transformers(threshold, min_size):
    expected = reference(NEAR, threshold, min_size)
    if Version(sentence_transformers.__version__).major >= 6:  # before, groups could lack their centres
        assert expected == community_detection(NEAR, threshold=threshold, min_community_size=min_size)
    found = communities(NEAR, threshold=threshold, min_size=min_size)
    assert [group.tolist() for group in found] == expected and len(found) > 1
    assert all(group.dtype == "int64" for group in found)


@pytest.mark.parametrize("block_bytes", [4, 4 * 7**2, 4 * 301])
def test_communities_in_blocks(block_bytes):
    whole = communities(NEAR[:100], threshold=0.6, min_size=3)
    parts = communities(NEAR[:100], threshold=0.6, min_size=3, block_bytes=block_bytes)
    assert len(whole) > 1
    assert [group.tolist() for group in whole] == [group.tolist() for group in parts]


def test_communities_by_hand():
    angles = numpy.radians([0, 20, 40, 60, 200, 210])  # neighbours are up to 25 degrees apart
    vectors = numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1) * [[1], [2], [3], [4], [5], [6]]
    found = communities(vectors, threshold=float(numpy.cos(numpy.radians(25))), min_size=2)
    assert [group.tolist() for group in found] == [[1, 0, 2], [4, 5]]  # 3 is near to 2 alone, which is taken
    found = communities(vectors, threshold=float(numpy.cos(numpy.radians(25))), min_size=1)
    assert [group.tolist() for group in found] == [[1, 0, 2], [4, 5], [3]]


def test_communities_of_equal_vectors_at_the_threshold():
    vectors = numpy.repeat(RNG.standard_normal((2, 384)), 20, axis=0)
    found = communities(vectors, threshold=1 - 1e-6, min_size=20)
    assert [group.tolist() for group in found] == [list(range(20)), list(range(20, 40))]
