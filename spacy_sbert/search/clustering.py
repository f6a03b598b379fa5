"""Hierarchical clusters of a collection."""

from math import isfinite
from typing import Literal

import numpy
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as merge

from ..errors.checks import validated
from ..similarity import unit_length
from ..similarity.rows import check_count, checked
from .blocks import BLOCK_BYTES, slices
from .errors import Errors

Linkage = Literal["average", "complete", "single"]


@validated
def hierarchical_clusters(
    vectors: ArrayLike, *, n_clusters: int | None = None, threshold: float | None = None, linkage: Linkage = "average"
) -> numpy.ndarray:
    """Clusters that begin as single vectors and are merged, the two nearest first.

    d(A, B) = mean of 1 - cos(a, b) over a in A, b in B (average linkage; complete: maximum, single: minimum)

    The distances of all pairs take 4 n (n - 1) bytes, 400 MB for 10,000 vectors, and SciPy makes a copy of them.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    n_clusters (int): merge until so many are left, from 1 to n. threshold (float): merge while the distance is at most
        this, from 0 to 2. Exactly one of them is given.
    linkage (str): "average", "complete" or "single".
    RETURNS (int64 array of shape (n,)): the cluster of each vector, numbered from 0 in the order of appearance.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or an
        argument is out of range.
    SOURCE: Müllner 2011, Modern hierarchical, agglomerative clustering algorithms, section 2. Reimers and Gurevych
        2019, section 1, name it as a task for sentence vectors.
    """
    rows = unit_length(checked(vectors, "vectors", "float64"))
    n = len(rows)
    if (n_clusters is None) == (threshold is None):
        raise ValueError(Errors.CLUSTERS_OR_THRESHOLD.format(n_clusters=n_clusters, threshold=threshold))
    if n_clusters is not None:
        check_count(n_clusters, n, f"clusters of {n} vectors", "n_clusters")
    if threshold is not None and not (isfinite(threshold) and 0 <= threshold <= 2):
        raise ValueError(Errors.BAD_THRESHOLD.format(given=threshold))
    if n == 1:
        return numpy.zeros(1, dtype="int64")
    merges = merge(_distances(rows), method=linkage)  # (n - 1, 4), by distance, which is in the third column
    if n_clusters is not None:
        merges[:, 2] = numpy.arange(1, n)  # merges are counted, for equal distances would give fewer clusters
        threshold = n - n_clusters
    return by_appearance(fcluster(merges, threshold, criterion="distance"))


def by_appearance(labels: numpy.ndarray) -> numpy.ndarray:
    """The same clusters, int64 (n,), numbered from 0 in the order of appearance."""
    _, first, inverse = numpy.unique(labels, return_index=True, return_inverse=True)
    return numpy.argsort(numpy.argsort(first))[inverse]


def _distances(rows: numpy.ndarray) -> numpy.ndarray:
    """1 - cos of every two rows i < j, by i and then j: float64 (n (n - 1) / 2,)."""
    n, size, filled = len(rows), max(1, BLOCK_BYTES // (8 * len(rows))), 0
    distances, products = numpy.empty(n * (n - 1) // 2), numpy.empty((min(n, size), n))
    for block in slices(n, size):
        right = products[: block.stop - block.start, block.start :]
        numpy.matmul(rows[block], rows[block.start :].T, out=right)
        for first, row in enumerate(right, 1):
            above = distances[filled : filled + len(row) - first]
            numpy.subtract(1, row[first:], out=above)
            filled += len(above)
    return numpy.maximum(distances, 0, out=distances)  # that of equal vectors may be rounded to less
