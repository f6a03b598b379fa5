"""The order of texts in which neighbours are similar."""

import numpy
from scipy.cluster.hierarchy import linkage

ORDERS = ("similarity", "given")


def similarity_order(cosines: numpy.ndarray) -> list[int]:
    """The order of the leaves of a dendrogram: of all that it allows the one whose neighbours are the most similar.

    d(i, j) = 1 - cos(i, j), average linkage; minimise sum_k d(o_k, o_(k + 1)) over the orders o of the leaves

    An order and its reverse are equally good: the first text comes before the last one.

    cosines (float array of shape (n, n)): the similarity of every two texts.
    RETURNS (list of int): n places of texts, from 0.
    SOURCE: Bar-Joseph, Gifford and Jaakkola 2001, Fast optimal leaf ordering for hierarchical clustering.
    """
    n = len(cosines)
    if n < 3:
        return list(range(n))
    distances = numpy.maximum(1 - cosines, 0.0)
    merges = linkage(distances[numpy.triu_indices(n, 1)], "average")  # (n - 1, 4), two clusters in front
    order = _shortest(merges[:, :2].astype("int64").tolist(), distances)
    return order if order.index(0) < order.index(n - 1) else order[::-1]


def _shortest(merges: list[list[int]], distances: numpy.ndarray) -> list[int]:
    """The shortest of the orders that merges allow. SciPy's optimal_leaf_ordering misses it at times (1.17).

    An order of a merged cluster goes from u to m in one part, and from k to w in the other; the best is found for all
    ends u and w. lengths: of each cluster, float64 (size, size) by ends, infinite where they are not ends of an order.
    """
    leaves = [[leaf] for leaf in range(len(distances))]
    lengths = [numpy.zeros((1, 1)) for _ in leaves]
    orders = {(leaf, leaf): [leaf] for leaf in range(len(distances))}
    for left, right in merges:
        a, b = leaves[left], leaves[right]
        to_k = lengths[left][:, :, None] + distances[numpy.ix_(a, b)]  # (u, m, k)
        to_w = to_k.min(axis=1)[:, :, None] + lengths[right]  # (u, k, w)
        best_m, best_k = to_k.argmin(axis=1).tolist(), to_w.argmin(axis=1).tolist()
        for u, first in enumerate(a):
            for w, last in enumerate(b):
                k = best_k[u][w]
                order = orders[first, a[best_m[u][k]]] + orders[b[k], last]
                orders[first, last], orders[last, first] = order, order[::-1]
        across, none = to_w.min(axis=1), numpy.inf
        whole = [[numpy.full((len(a), len(a)), none), across], [across.T, numpy.full((len(b), len(b)), none)]]
        leaves.append(a + b)
        lengths.append(numpy.block(whole))
    u, w = divmod(int(lengths[-1].argmin()), len(distances))
    return orders[leaves[-1][u], leaves[-1][w]]
