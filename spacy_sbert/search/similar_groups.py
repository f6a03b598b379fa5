"""Groups of a collection that pairs of similar vectors connect, such as duplicates."""

import numpy
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..errors.checks import Cosine, validated
from ..similarity import unit_length
from ..similarity.rows import checked
from .blocks import BLOCK_BYTES, BlockBytes
from .similar_pairs import blocks_above


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
