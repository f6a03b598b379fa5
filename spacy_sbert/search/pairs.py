"""Pairs and groups of similar vectors by cosine similarity, exactly and in bounded memory."""

from collections.abc import Iterator
from math import isqrt
from typing import NamedTuple

import numpy
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..arrays import checked
from ..progress import progress_of
from ..similarity import check_count, unit_length
from ..validation import Cosine, Positive, validated
from .exact import BLOCK_BYTES, Best, BlockBytes, least, rounding, slices, unit_scores

# Pairs above a score: with their texts a list of them takes about 1 GB
MAX_PAIRS = 4_000_000


class _Block(NamedTuple):
    """Block of the products of all vectors with all, and the rows that it has.

    products (float32 (left, right)): u_i . u_j, -inf where j <= i.
    """

    left: slice
    right: slice
    products: numpy.ndarray

    def rows_at(self, places: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the rows i and j of products by their places in the flattened array."""
        i, j = numpy.divmod(places, self.products.shape[1])
        i += self.left.start
        j += self.right.start
        return i, j


@validated
def most_similar_pairs(
    vectors: ArrayLike, *, k: int = 1, block_bytes: BlockBytes = BLOCK_BYTES, progress: bool = False
) -> Best:
    """Find the k most similar pairs of vectors, exactly.

    argsort_{i < j} (-cos(v_i, v_j), i, j), its first k: the best first, and of equal ones the lower
    (i, j)

    Scores are those of similarity.cosine in float32, whatever the blocks: a zero vector has
    similarity 0 to all. If most vectors are equal, most pairs are scored one by one, which takes
    its time.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    k (int): how many pairs to find, from 1 to n (n - 1) / 2.
    block_bytes (int): see nearest. progress (bool): whether to show a progress bar.
    RETURNS (float32 array of shape (k,), int64 array of shape (k, 2)): the similarities, and the
        rows i < j.
    RAISES (ValueError): if the array is of another shape, a number is not finite, or there are
        fewer than k pairs.
    SOURCE: Reimers and Gurevych 2019, section 1 (the most similar pair of 10,000 sentences).

    Example:
        scores, pairs = most_similar_pairs(pipe.encode(texts), k=10)
        print(texts[pairs[0, 0]], texts[pairs[0, 1]], scores[0])

    """
    rows = unit_length(checked(vectors, "vectors"))
    n, width = rows.shape
    check_count(k, n * (n - 1) // 2, f"most similar pairs of {n} vectors")
    margin = rounding(width)
    scores = numpy.empty(0, dtype="float32")
    pairs = numpy.empty((0, 2), dtype="int64")
    for block in _upper_products(rows, block_bytes, progress):
        floor = -numpy.inf
        if len(scores) == k:
            floor = scores[-1]
        candidates = numpy.flatnonzero(block.products > floor - margin)
        if len(candidates) > k:
            products = block.products.ravel()[candidates]
            candidates = candidates[products > numpy.partition(products, -k)[-k] - margin]
        i, j = block.rows_at(candidates)
        new = unit_scores(rows, rows, i, j, block_bytes)
        scores = numpy.concatenate([scores, new])
        pairs = numpy.concatenate([pairs, numpy.stack([i, j], axis=1)])
        scores, pairs = _ordered(scores, pairs, k)
    return scores, pairs


@validated
def pairs_above(
    vectors: ArrayLike,
    min_score: Cosine,
    *,
    block_bytes: BlockBytes = BLOCK_BYTES,
    progress: bool = False,
) -> Best:
    """Find all pairs of vectors that are at least so similar, as most_similar_pairs.

    argsort_{i < j, cos(v_i, v_j) >= min_score} (-cos(v_i, v_j), i, j)

    vectors, block_bytes, progress: see most_similar_pairs, whose result this is without a bound.
    min_score (float): the least cosine similarity, from -1 to 1.
    RETURNS (float32 array of shape (pairs,), int64 array of shape (pairs, 2)): the similarities,
        and the rows i < j.
    RAISES (ValueError): if the array is of another shape, a number is not finite, or there are more
        than MAX_PAIRS.
    """
    rows = unit_length(checked(vectors, "vectors"))
    scores = [numpy.empty(0, dtype="float32")]
    pairs = [numpy.empty((0, 2), dtype="int64")]
    count = 0
    for own, i, j in _blocks_above(rows, min_score, block_bytes, progress):
        scores.append(own)
        pairs.append(numpy.stack([i, j], axis=1))
        count += len(own)
        if count > MAX_PAIRS:
            raise ValueError(
                f"More than {MAX_PAIRS} pairs have a similarity of {min_score:g} or more, too many "
                "to keep all. Give a higher min_score (--min-score), or ask for the k best."
            )
    return _ordered(numpy.concatenate(scores), numpy.concatenate(pairs))


def _blocks_above(
    rows: numpy.ndarray,
    min_score: float,
    block_bytes: int,
    progress: bool,
    groups: numpy.ndarray | None = None,
) -> Iterator[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """Yield the pairs of pairs_above block by block: scores, rows i, rows j > i.

    groups (int64 (n,)): the group of each vector; pairs within a group are left out.
    """
    floor = min_score - rounding(rows.shape[1])
    for block in _upper_products(rows, block_bytes, progress):
        i, j = block.rows_at(numpy.flatnonzero(block.products >= floor))
        if groups is not None:
            apart = groups[i] != groups[j]
            i = i[apart]
            j = j[apart]
        own = unit_scores(rows, rows, i, j, block_bytes)
        # In float64, as Python compares the scores that are written
        kept = own.astype("float64") >= least(min_score)
        yield own[kept], i[kept], j[kept]


def _upper_blocks(
    n: int, block_bytes: int, progress: bool = False
) -> Iterator[tuple[slice, slice]]:
    """Yield the square blocks of n by n float32 products on and above the diagonal."""
    size = isqrt(block_bytes // 4)
    along = -(-n // size)
    total = along * (along + 1) // 2
    blocks = ((left, right) for left in slices(n, size) for right in slices(n, size, left.start))
    return progress_of(blocks, total=total, shown=progress, unit="blocks", desc="Comparing")


def _upper_products(rows: numpy.ndarray, block_bytes: int, progress: bool) -> Iterator[_Block]:
    """Yield the blocks of products on and above the diagonal."""
    for left, right in _upper_blocks(len(rows), block_bytes, progress):
        products = rows[left] @ rows[right].T
        if left == right:
            products[numpy.tri(len(products), dtype=bool)] = -numpy.inf
        yield _Block(left, right, products)


def _ordered(scores: numpy.ndarray, pairs: numpy.ndarray, k: int | None = None) -> Best:
    """Return the first k pairs in the order of most_similar_pairs; None for all of them."""
    order = numpy.lexsort((pairs[:, 1], pairs[:, 0], -scores))[:k]
    return scores[order], pairs[order]


@validated
def similar_groups(
    vectors: ArrayLike,
    min_score: Cosine,
    *,
    block_bytes: BlockBytes = BLOCK_BYTES,
    progress: bool = False,
) -> list[numpy.ndarray]:
    """Find groups of similar vectors: the connected components over the pairs of pairs_above.

    A vector is in the group of every vector that it is similar to, so two members of a group may be
    less similar. The groups are those of single linkage. Pairs are not kept, so there may be any
    number of them.

    vectors, min_score, block_bytes, progress, errors: see pairs_above.
    RETURNS (list of int64 arrays): the rows of each group of two or more, ascending; the largest
        group first, and of equal ones that of the lower row.
    """
    rows = unit_length(checked(vectors, "vectors"))
    groups = numpy.arange(len(rows))
    for _, i, j in _blocks_above(rows, min_score, block_bytes, progress, groups):
        if len(i):
            is_edge = numpy.ones(len(i), dtype=bool)
            shape = (len(rows), len(rows))
            edges = coo_array((is_edge, (groups[i], groups[j])), shape=shape)
            _, joined = connected_components(edges, directed=False)
            # _blocks_above leaves out pairs within these groups from now on
            groups[:] = joined[groups]
    order = numpy.argsort(groups, kind="stable")
    starts = numpy.flatnonzero(numpy.diff(groups[order])) + 1
    several = [group for group in numpy.split(order, starts) if len(group) > 1]
    return sorted(several, key=lambda group: (-len(group), group[0]))


@validated
def communities(
    vectors: ArrayLike,
    *,
    threshold: float = 0.75,
    min_size: Positive = 10,
    block_bytes: BlockBytes = BLOCK_BYTES,
) -> list[numpy.ndarray]:
    """Find groups of vectors that are all similar to one of them, the centre, exactly.

    No vector is in two groups.

    N(i) = {j: cos(v_i, v_j) >= threshold}; by falling |N(i)|, and of equal ones the lower i first,
    each N(i) whose centre i is in no earlier group is a group, without the members of earlier ones,
    if at least min_size are left.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    threshold (float): the least cosine similarity to the centre, from -1 to 1.
    min_size (int): how many vectors make a group, 1 or more.
    block_bytes (int): see nearest.
    RETURNS (list of int64 arrays): the groups, the largest first; in each the rows of its members:
        the centre, then the others, the most similar to it first.
    RAISES (ValueError): if the array is of another shape, a number is not finite, or an argument is
        out of range.
    SOURCE: the fast clustering of sentence-transformers, util.community_detection, as it is from
        version 6 on: before, a group could lack its centre.
    """
    rows = unit_length(checked(vectors, "vectors"))
    if not -1 <= threshold <= 1:
        raise ValueError(
            f"Cannot use the threshold {threshold}: expected a cosine similarity from -1 to 1."
        )
    threshold = least(threshold)
    counts = _count_close(rows, threshold, block_bytes)
    centres = numpy.argsort(-counts, kind="stable")
    centres = centres[counts[centres] >= min_size]
    is_free = numpy.ones(len(rows), dtype=bool)
    groups: list[numpy.ndarray] = []
    for block in slices(len(centres), max(1, block_bytes // (4 * len(rows)))):
        left = numpy.flatnonzero(is_free)
        if len(left) < min_size:
            break
        close = _close(rows[centres[block]], rows[left], threshold, block_bytes)
        for centre, near in zip(centres[block], close, strict=True):
            group = left[near & is_free[left]]
            if is_free[centre] and len(group) >= min_size:
                is_free[group] = False
                groups.append(_by_similarity(rows, centre, group, block_bytes))
    return sorted(groups, key=len, reverse=True)


def _count_close(rows: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """Return |N(i)|, with i itself, int64 (n,); see communities."""
    counts = numpy.zeros(len(rows), dtype="int64")
    for first, second in _upper_blocks(len(rows), block_bytes):
        close = _close(rows[first], rows[second], threshold, block_bytes)
        counts[first] += numpy.count_nonzero(close, axis=1)
        if first != second:
            counts[second] += numpy.count_nonzero(close, axis=0)
    return counts


def _by_similarity(
    rows: numpy.ndarray, centre: int, group: numpy.ndarray, block_bytes: int
) -> numpy.ndarray:
    """Return a group with its centre first, then the others, the most similar to it first."""
    others = group[group != centre]
    scores = unit_scores(rows, rows, numpy.full(len(others), centre), others, block_bytes)
    order = numpy.argsort(-scores, kind="stable")
    return numpy.concatenate([[centre], others[order]])


def _close(u: numpy.ndarray, v: numpy.ndarray, threshold: float, block_bytes: int) -> numpy.ndarray:
    """Return whether cos(u_i, v_j) >= threshold, bool (len(u), len(v)), whatever the blocks."""
    products = u @ v.T
    margin = rounding(u.shape[1])
    close = products > threshold - margin
    # Only these depend on the rounding of products
    i, j = numpy.nonzero(close & (products < threshold + margin))
    close[i, j] = unit_scores(u, v, i, j, block_bytes) >= threshold
    return close
