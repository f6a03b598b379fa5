"""Cluster vectors: community detection, k-means, hierarchical."""

from typing import TYPE_CHECKING, Annotated, Literal

import numpy
from numpy.typing import ArrayLike
from pydantic import Field
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as merge
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..similarity import check_count, checked, unit_length
from ..validation import Cosine, Positive, Seed, validated
from .exact import BLOCK_BYTES, BlockBytes, blocks_above, rounding, scores_of, slices, upper_blocks

if TYPE_CHECKING:
    from sklearn.cluster import KMeans


@validated
def hierarchical_clusters(
    vectors: ArrayLike,
    *,
    n_clusters: int | None = None,
    threshold: float | None = None,
    linkage: Literal["average", "complete", "single"] = "average",
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
        raise ValueError(
            f"Cannot cluster with n_clusters = {n_clusters} and threshold = {threshold}: expected exactly one of them."
        )
    if n_clusters is not None:
        check_count(n_clusters, n, f"clusters of {n} vectors", "n_clusters")
    if threshold is not None and not 0 <= threshold <= 2:
        raise ValueError(
            f"Cannot merge clusters up to the distance threshold = {threshold}: expected a cosine distance from 0 to 2."
        )
    if n == 1:
        return numpy.zeros(1, dtype="int64")
    merges = merge(_distances(rows), method=linkage)  # (n - 1, 4), by distance, which is in the third column
    if n_clusters is not None:
        merges[:, 2] = numpy.arange(1, n)  # merges are counted, for equal distances would give fewer clusters
        threshold = n - n_clusters
    return _by_appearance(fcluster(merges, threshold, criterion="distance"))


def _by_appearance(labels: numpy.ndarray) -> numpy.ndarray:
    """Return the same clusters, int64 (n,), numbered from 0 in the order of appearance."""
    _, first, inverse = numpy.unique(labels, return_index=True, return_inverse=True)
    return numpy.argsort(numpy.argsort(first))[inverse]


def _distances(rows: numpy.ndarray) -> numpy.ndarray:
    """Return 1 - cos of every two rows i < j, by i and then j: float64 (n (n - 1) / 2,)."""
    n, size, filled = len(rows), max(1, BLOCK_BYTES // (8 * len(rows))), 0
    distances, products = numpy.empty(n * (n - 1) // 2), numpy.empty((min(n, size), n))
    for block in slices(n, size):
        right = products[: block.stop - block.start, block.start :]
        numpy.matmul(rows[block], rows[block.start :].T, out=right)
        for first, row in enumerate(right, 1):
            above = distances[filled : filled + len(row) - first]
            numpy.subtract(1, row[first:], out=above)
            filled += len(above)
    return numpy.maximum(distances, 0, out=distances)  # rounding of equal vectors


@validated
def communities(
    vectors: ArrayLike, *, threshold: float = 0.75, min_size: Positive = 10, block_bytes: BlockBytes = BLOCK_BYTES
) -> list[numpy.ndarray]:
    """Find groups of vectors that are all similar to one of them, the centre, exactly; no vector is in two groups.

    N(i) = {j: cos(v_i, v_j) >= threshold}; by falling |N(i)|, and of equal ones the lower i first, each N(i) whose
    centre i is in no earlier group is a group, without the members of earlier ones, if at least min_size are left.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    threshold (float): the least cosine similarity to the centre, from -1 to 1.
    min_size (int): how many vectors make a group, 1 or more.
    block_bytes (int): bytes of similarities computed at once; beside a copy of the vectors of unit length a few times
        as much is held.
    RETURNS (list of int64 arrays): the groups, the largest first; in each the rows of its members: the centre, then
        the others, the most similar to it first.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or an
        argument is out of range.
    SOURCE: the fast clustering of sentence-transformers, util.community_detection, as it is from version 6 on: before,
        a group could lack its centre.
    """
    rows = unit_length(checked(vectors, "vectors"))
    if not -1 <= threshold <= 1:
        raise ValueError(f"Cannot use the threshold {threshold}: expected a cosine similarity from -1 to 1.")
    counts = _count_neighbours(rows, threshold, block_bytes)
    centres = numpy.argsort(-counts, kind="stable")
    centres = centres[counts[centres] >= min_size]
    free = numpy.ones(len(rows), dtype=bool)
    groups: list[numpy.ndarray] = []
    for block in slices(len(centres), max(1, block_bytes // (4 * len(rows)))):
        left = numpy.flatnonzero(free)
        if len(left) < min_size:
            break
        close = _close(rows[centres[block]], rows[left], threshold, block_bytes)
        for centre, near in zip(centres[block], close, strict=True):
            group = left[near & free[left]]
            if free[centre] and len(group) >= min_size:
                free[group] = False
                others = group[group != centre]
                scores = scores_of(rows, rows, numpy.full(len(others), centre), others, block_bytes)
                groups.append(numpy.concatenate([[centre], others[numpy.argsort(-scores, kind="stable")]]))
    return sorted(groups, key=len, reverse=True)


def _count_neighbours(rows: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """Return |N(i)| of each row, including itself: int64 (n,)."""
    counts = numpy.zeros(len(rows), dtype="int64")
    for left, right in upper_blocks(len(rows), block_bytes):
        close = _close(rows[left], rows[right], threshold, block_bytes)
        counts[left] += numpy.count_nonzero(close, axis=1)
        if left != right:
            counts[right] += numpy.count_nonzero(close, axis=0)
    return counts


def _close(u: numpy.ndarray, v: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """Return whether cos(u_i, v_j) >= threshold, bool (len(u), len(v)): the same whatever the blocks."""
    products = u @ v.T
    margin = rounding(u.shape[1])
    close = products > threshold - margin
    i, j = numpy.nonzero(close & (products < threshold + margin))
    close[i, j] = scores_of(u, v, i, j, block_bytes) >= threshold
    return close


@validated
def similar_groups(
    vectors: ArrayLike, min_score: Cosine, *, block_bytes: BlockBytes = BLOCK_BYTES, progress: bool = False
) -> list[numpy.ndarray]:
    """Find groups of similar vectors, exactly: the connected components over the pairs of pairs_above.

    A vector is in the group of every vector that it is similar to, so two members of a group may be less similar. The
    groups are those of single linkage. Pairs are not kept, so there may be any number of them.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    min_score (float): the least cosine similarity of a pair, from -1 to 1.
    block_bytes (int), progress (bool): see most_similar_pairs.
    RETURNS (list of int64 arrays): the rows of each group of two or more, ascending; the largest group first, and of
        equal ones that of the lower row.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite.
    """
    rows = unit_length(checked(vectors, "vectors"))
    groups = numpy.arange(len(rows))

    def apart(i: numpy.ndarray, j: numpy.ndarray) -> numpy.ndarray:
        return groups[i] != groups[j]

    for _, i, j in blocks_above(rows, min_score, wanted=apart, block_bytes=block_bytes, progress=progress):
        if len(i):
            edges = coo_array((numpy.ones(len(i), dtype=bool), (groups[i], groups[j])), shape=(len(rows), len(rows)))
            groups = connected_components(edges, directed=False)[1][groups]
    order = numpy.argsort(groups, kind="stable")
    parts = numpy.split(order, numpy.flatnonzero(numpy.diff(groups[order])) + 1)
    return sorted((part for part in parts if len(part) > 1), key=lambda part: (-len(part), part[0]))


_MAX_INITS = 10_000  # each takes as long as the first


def import_kmeans() -> "type[KMeans]":
    """Return scikit-learn's k-means. RAISES (ImportError): if scikit-learn is not installed."""
    try:
        from sklearn.cluster import KMeans  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("k-means needs scikit-learn. Install it: pip install 'spacy-sbert[search]'.") from error
    return KMeans


@validated
def kmeans_clusters(
    vectors: ArrayLike, *, n_clusters: int, seed: Seed = 0, n_init: Annotated[int, Field(ge=1, le=_MAX_INITS)] = 10
) -> numpy.ndarray:
    """Clusters whose vectors, made of length 1, are as near to their mean as k-means can bring them.

    minimise sum_i ||v_i / ||v_i|| - m_c(i)||^2, where m_c is the mean of cluster c

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    n_clusters (int): how many clusters, from 1 to n; of equal vectors scikit-learn finds fewer, and warns.
    seed (int): of the means to begin with. n_init (int): how many are tried, of which the best is kept.
    RETURNS (int64 array of shape (n,)): the cluster of each vector, numbered from 0 in the order of appearance.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or a count
        is out of range; (ImportError): if scikit-learn is not installed.
    SOURCE: Lloyd 1982; Arthur and Vassilvitskii 2007, k-means++, for the beginnings.
    """
    rows = unit_length(checked(vectors, "vectors"))
    check_count(n_clusters, len(rows), f"clusters of {len(rows)} vectors", "n_clusters")
    kmeans = import_kmeans()
    return _by_appearance(kmeans(n_clusters, n_init=n_init, random_state=seed).fit(rows).labels_)
