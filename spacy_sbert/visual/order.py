"""The order of texts in which neighbours are similar."""

from typing import Literal

import numpy
from scipy.cluster.hierarchy import leaves_list, linkage

Order = Literal["similarity", "given"]


def similarity_order(cosines: numpy.ndarray) -> list[int]:
    """The order of the leaves of a dendrogram, turned so that neighbours are similar.

    d(i, j) = 1 - cos(i, j), average linkage; small sum_k d(o_k, o_(k + 1)) over the orders o that the dendrogram allows

    An order and its reverse are equally good: the first text comes before the last one.

    cosines (float array of shape (n, n)): the similarity of every two texts.
    RETURNS (list of int): n places of texts, from 0.
    SOURCE: Bar-Joseph, Gifford and Jaakkola 2001, Fast optimal leaf ordering for hierarchical clustering.
    """
    n = len(cosines)
    if n < 3:
        return list(range(n))
    distances = numpy.maximum(1 - cosines, 0.0)
    tree = linkage(distances[numpy.triu_indices(n, 1)], "average", optimal_ordering=True)
    order = leaves_list(tree).tolist()
    return order if order.index(0) < order.index(n - 1) else order[::-1]
