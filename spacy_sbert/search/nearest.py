"""The nearest vectors: semantic search."""

import numpy
from numpy.typing import ArrayLike

from ..errors.checks import validated
from ..similarity import unit_length
from ..similarity.rows import check_count, checked
from .blocks import BLOCK_BYTES, BlockBytes, check_widths, rounding, scores_of, side, slices

Best = tuple[numpy.ndarray, numpy.ndarray]  # scores float32 (n, k), indices int64 (n, k)


@validated
def nearest(queries: ArrayLike, vectors: ArrayLike, *, k: int, block_bytes: BlockBytes = BLOCK_BYTES) -> Best:
    """The k vectors most similar to each query, exactly: the best first, the lower index first of equal ones.

    argsort_j (-cos(q_i, v_j), j), its first k

    Scores are those of similarity.cosine in float32, whatever the blocks: a zero vector has similarity 0 to all.

    queries (float array of shape (n, width), NumPy or CuPy): what to search for, a vector a row.
    vectors (float array of shape (m, width), NumPy or CuPy): what to search in.
    k (int): how many to find of each query, from 1 to m.
    block_bytes (int): bytes of similarities computed at once; beside copies of both sides of unit length, and the
        result, a few times as much is held, and up to 24 times where nearly all vectors are equal.
    RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the rows of `vectors`.
    RAISES (ValueError): if an array is of another shape or holds a number that is not finite, if widths differ, or if
        there are fewer than k vectors.
    SOURCE: Reimers and Gurevych 2019, section 1 (semantic search).
    """
    left, right = checked(queries, "queries"), checked(vectors, "vectors")
    check_widths(left.shape[1], right.shape[1])
    check_count(k, len(right), f"nearest of {len(right)} vectors")
    left, right = unit_length(left), unit_length(right)
    blocks = [_nearest(left[block], right, k, block_bytes) for block in slices(len(left), side(block_bytes))]
    scores, indices = map(numpy.concatenate, zip(*blocks, strict=True))
    return scores, indices


def best_of(best: Best, more: Best, k: int) -> Best:
    """The k best of two results, of which the first has the lower indices."""
    scores, indices = (numpy.concatenate(both, axis=1) for both in zip(best, more, strict=True))
    order = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
    return numpy.take_along_axis(scores, order, axis=1), numpy.take_along_axis(indices, order, axis=1)


def _nearest(queries: numpy.ndarray, vectors: numpy.ndarray, k: int, block_bytes: int) -> Best:
    """The nearest of one block of queries; all rows are of length 1 or 0."""
    best = numpy.empty((len(queries), 0), dtype="float32"), numpy.empty((len(queries), 0), dtype="int64")
    for block in slices(len(vectors), max(1, block_bytes // (4 * len(queries)))):
        i, j = _candidates(queries @ vectors[block].T, best[0], k, rounding(vectors.shape[1]))
        j += block.start
        best = _merge(best, i, j, scores_of(queries, vectors, i, j, block_bytes), k)
    return best


def _candidates(products: numpy.ndarray, scores: numpy.ndarray, k: int, margin: float) -> Best:
    """Rows and columns of the products that may be among the k best of their row."""
    floor = numpy.full((len(products), 1), -numpy.inf, dtype="float32") if scores.shape[1] < k else scores[:, -1:]
    if products.shape[1] > k:
        floor = numpy.maximum(floor, numpy.partition(products, -k, axis=1)[:, [-k]])
    i, j = numpy.nonzero(products > floor - margin)
    return i, j


def _merge(best: Best, i: numpy.ndarray, j: numpy.ndarray, scores: numpy.ndarray, k: int) -> Best:
    """The k best of each row, or as many as there are, which is alike for all rows."""
    n, found = best[0].shape
    i = numpy.concatenate([numpy.repeat(numpy.arange(n), found), i])
    j = numpy.concatenate([best[1].ravel(), j])
    scores = numpy.concatenate([best[0].ravel(), scores])
    order = numpy.lexsort((j, -scores, i))
    rows = i[order]
    ranks = numpy.arange(len(rows)) - numpy.searchsorted(rows, rows)
    order = order[ranks < k]
    return scores[order].reshape(n, -1), j[order].reshape(n, -1)
