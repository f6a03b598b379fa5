"""Cluster vectors: hierarchical clusters and k-means; `pairs` finds groups of similar vectors."""

from typing import Annotated, Literal

import numpy
from numpy.typing import ArrayLike
from pydantic import Field
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as merge

from ..errors import import_extra
from ..similarity import check_count, checked, unit_length
from ..validation import Seed, validated
from .exact import BLOCK_BYTES, slices

# Tries of k-means, each of which takes as long as the first
_MAX_INITS = 10_000


@validated
def hierarchical_clusters(
    vectors: ArrayLike,
    *,
    n_clusters: int | None = None,
    threshold: float | None = None,
    linkage: Literal["average", "complete", "single"] = "average",
) -> numpy.ndarray:
    """Clusters that begin as single vectors and are merged, the two nearest first.

    d(A, B) = mean of 1 - cos(a, b) over a in A, b in B (average linkage; complete: maximum, single:
    minimum)

    The distances of all pairs take 4 n (n - 1) bytes, 400 MB for 10,000 vectors, and SciPy makes a
    copy of them.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    n_clusters (int): merge until so many are left, from 1 to the number of different vectors.
        threshold (float): merge while the distance is at most this, from 0 to 2. Exactly one of
            them is given.
    linkage (str): "average", "complete" or "single".
    RETURNS (int64 array of shape (n,)): the cluster of each vector, numbered from 0 in the order of
        appearance.
    RAISES (ValueError): if the array is of another shape, a number is not finite, an argument is
        out of range, or equal vectors would have to be in different clusters.
    SOURCE: Müllner 2011, Modern hierarchical, agglomerative clustering algorithms, section 2.
    """
    rows = unit_length(checked(vectors, "vectors", "float64"))
    n = len(rows)
    if (n_clusters is None) == (threshold is None):
        given = f"n_clusters = {n_clusters} and threshold = {threshold}"
        raise ValueError(f"Cannot cluster with {given}: expected exactly one of them.")
    if n_clusters is not None:
        check_count(n_clusters, n, f"clusters of {n} vectors", "n_clusters")
    if threshold is not None and not 0 <= threshold <= 2:
        raise ValueError(
            f"Cannot merge clusters up to threshold = {threshold}: expected a distance from 0 to 2."
        )
    if n == 1:
        return numpy.zeros(1, dtype="int64")
    # (n - 1, 4), by distance, which is in the third column
    merges = merge(_distances(rows), method=linkage)
    if n_clusters is not None:
        is_of_equal = merges[:, 2] == 0
        n_different = n - int(numpy.count_nonzero(is_of_equal))
        # The first merge that is not made must be of different vectors
        if n_clusters > 1 and is_of_equal[n - n_clusters]:
            raise ValueError(
                f"Cannot find n_clusters = {n_clusters} among {n_different} different vectors, of "
                f"which equal ones belong together. Give at most {n_different}."
            )
        # Merges are counted, as equal distances would give fewer clusters
        merges[:, 2] = numpy.arange(1, n)
        threshold = n - n_clusters
    return _by_appearance(fcluster(merges, threshold, criterion="distance"))


def _by_appearance(labels: numpy.ndarray) -> numpy.ndarray:
    """Return the same clusters, int64 (n,), numbered from 0 in the order of appearance."""
    _, first, inverse = numpy.unique(labels, return_index=True, return_inverse=True)
    return numpy.argsort(numpy.argsort(first))[inverse]


def _distances(rows: numpy.ndarray) -> numpy.ndarray:
    """Return 1 - cos of every two rows i < j, by i and then j: float64 (n (n - 1) / 2,)."""
    n = len(rows)
    filled = 0
    distances = numpy.empty(n * (n - 1) // 2)
    for block in slices(n, max(1, BLOCK_BYTES // (8 * n))):
        products = rows[block] @ rows[block.start :].T
        for i, row in enumerate(products, 1):
            above = distances[filled : filled + len(row) - i]
            numpy.subtract(1, row[i:], out=above)
            filled += len(above)
    # Rounding makes the distance of equal vectors a little more than 0
    rounding = rows.shape[1] * numpy.finfo("float64").eps
    distances[distances < rounding] = 0
    return distances


def import_kmeans() -> type:
    """Return scikit-learn's k-means. RAISES (ImportError): if scikit-learn is not installed."""
    return import_extra("sklearn.cluster", "k-means needs scikit-learn", "search").KMeans


@validated
def kmeans_clusters(
    vectors: ArrayLike,
    *,
    n_clusters: int,
    seed: Seed = 0,
    n_init: Annotated[int, Field(ge=1, le=_MAX_INITS)] = 10,
) -> numpy.ndarray:
    """Clusters whose vectors, made of length 1, are as near to their mean as k-means finds them.

    minimise sum_i ||v_i / ||v_i|| - m_c(i)||^2, where m_c is the mean of cluster c

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    n_clusters (int): how many clusters, from 1 to n; of equal vectors scikit-learn finds fewer, and
        warns.
    seed (int): of the means to begin with. n_init (int): how many are tried, of which the best is
        kept.
    RETURNS (int64 array of shape (n,)): the cluster of each vector, numbered from 0 in the order of
        appearance.
    RAISES (ValueError): if the array is of another shape, a number is not finite, or a count is out
        of range. (ImportError): if scikit-learn is not installed.
    SOURCE: Lloyd 1982; Arthur and Vassilvitskii 2007, k-means++, for the beginnings.
    """
    rows = unit_length(checked(vectors, "vectors"))
    check_count(n_clusters, len(rows), f"clusters of {len(rows)} vectors", "n_clusters")
    kmeans = import_kmeans()(n_clusters, n_init=n_init, random_state=seed)
    return _by_appearance(kmeans.fit(rows).labels_)
