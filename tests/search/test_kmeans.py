"""k-means: known groups, parity with scikit-learn on vectors of length 1, and what is refused."""

import numpy
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from spacy_sbert.search import kmeans_clusters

RNG = numpy.random.default_rng(0)
GROUPS = RNG.integers(5, size=200)
VECTORS = numpy.eye(5)[GROUPS] * RNG.uniform(1, 9, (200, 1)) + RNG.normal(0, 0.05, (200, 5))


def test_known_groups_are_found_whatever_their_length():
    order = {group: label for label, group in enumerate(dict.fromkeys(GROUPS))}
    labels = kmeans_clusters(VECTORS, n_clusters=5)
    assert labels.dtype == "int64" and labels.tolist() == [order[group] for group in GROUPS]


def test_parity_with_scikit_learn():
    unit = (VECTORS / numpy.linalg.norm(VECTORS, axis=1, keepdims=True)).astype("float32")
    expected = KMeans(3, n_init=4, random_state=7).fit(unit).labels_
    assert adjusted_rand_score(kmeans_clusters(VECTORS, n_clusters=3, seed=7, n_init=4), expected) == 1.0
