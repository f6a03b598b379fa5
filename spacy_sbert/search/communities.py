"""Communities of a collection: groups of vectors that are all near to one of them."""

import numpy
from numpy.typing import ArrayLike

from ..errors.checks import Positive, validated
from ..similarity import unit_length
from ..similarity.rows import checked
from .blocks import BLOCK_BYTES, BlockBytes, rounding, scores_of, side, slices, upper_blocks
from .errors import Errors


@validated
def communities(
    vectors: ArrayLike, *, threshold: float = 0.75, min_size: Positive = 10, block_bytes: BlockBytes = BLOCK_BYTES
) -> list[numpy.ndarray]:
    """Groups of vectors that are all similar to one of them, the centre, exactly; no vector is in two groups.

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
        raise ValueError(Errors.SEARCH_BAD_COSINE.format(given=threshold))
    counts = _count_neighbours(rows, threshold, block_bytes)
    centres = numpy.argsort(-counts, kind="stable")
    centres = centres[counts[centres] >= min_size]
    free = numpy.ones(len(rows), dtype=bool)
    found: list[numpy.ndarray] = []
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
                found.append(numpy.concatenate([[centre], others[numpy.argsort(-scores, kind="stable")]]))
    return sorted(found, key=len, reverse=True)


def _count_neighbours(rows: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """|N(i)| of each row, itself among them: int64 (n,)."""
    counts = numpy.zeros(len(rows), dtype="int64")
    for left, right in upper_blocks(len(rows), side(block_bytes)):
        close = _close(rows[left], rows[right], threshold, block_bytes)
        counts[left] += numpy.count_nonzero(close, axis=1)
        if left != right:
            counts[right] += numpy.count_nonzero(close, axis=0)
    return counts


def _close(u: numpy.ndarray, v: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """Whether cos(u_i, v_j) >= threshold, the same in whatever block: bool (len(u), len(v))."""
    products = u @ v.T
    margin = rounding(u.shape[1])
    close = products > threshold - margin
    i, j = numpy.nonzero(close & (products < threshold + margin))
    close[i, j] = scores_of(u, v, i, j, block_bytes) >= threshold
    return close
