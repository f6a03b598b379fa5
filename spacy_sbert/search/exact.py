"""Exact search by cosine similarity in bounded memory; for pairs and groups see `pairs`."""

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import Annotated

import numpy
from numpy.typing import ArrayLike
from pydantic import Field

from ..arrays import as_array, as_rows, checked
from ..bulk import PartVectors
from ..progress import progress_bar
from ..similarity import check_count, check_widths, unit_length
from ..validation import validated

# Bytes of products that are computed at once; one product needs 4
BlockBytes = Annotated[int, Field(ge=4)]
# 1448 by 1448 products in float32, which wastes little below a diagonal
BLOCK_BYTES = 2**23
# Scores float32 (n, k), and rows of vectors int64 (n, k)
Best = tuple[numpy.ndarray, numpy.ndarray]
# Bytes of vectors that are read at once, which the cache of a core holds
_PART_BYTES = 2**20
# The cosine of equal vectors after rounding: they are found by min_score = 1
_EQUAL = 1 - 2**-21
_FLOAT32 = numpy.finfo("float32")


def slices(n: int, size: int, start: int = 0) -> Iterator[slice]:
    """Return the blocks of `size` rows, the last maybe smaller, from row `start` to row n."""
    return (slice(first, min(first + size, n)) for first in range(start, n, size))


def checked_queries(queries: ArrayLike, shape: tuple[int, int], k: int) -> numpy.ndarray:
    """Return queries, float32 (queries, width).

    shape (tuple): (n, width) of the vectors. RAISES (ValueError): if k of them cannot be found.
    """
    n, width = shape
    rows = checked(queries, "queries")
    check_widths(rows.shape[1], width)
    check_count(k, n, f"nearest of {n} vectors")
    return rows


def recall(found: ArrayLike, exact: ArrayLike) -> float:
    """Recall@k: the mean share of the k nearest vectors that are among the k found.

    mean_i |found_i & exact_i| / k

    found, exact (int64 arrays of shape (queries, k)): rows of vectors, as `nearest` returns them.
    RETURNS (float): from 0 to 1. RAISES (ValueError): if the shapes differ, or there is nothing in
        them.
    SOURCE: Aumüller et al. 2018, ANN-Benchmarks, section 3.
    """
    expected = "row numbers, an int array of shape (queries, k)"
    ours = as_array(found, "found", expected)
    theirs = as_array(exact, "exact", expected)
    if ours.shape != theirs.shape or ours.ndim != 2 or ours.size == 0:
        given = f"found of shape {ours.shape} with exact of shape {theirs.shape}"
        raise ValueError(f"Cannot compare {given}: expected both of one shape (queries, k).")
    if ours.dtype.kind not in "iu" or theirs.dtype.kind not in "iu":
        raise TypeError(
            f"Cannot compare found of dtype {ours.dtype} with exact of {theirs.dtype}: expected "
            f"{expected}."
        )
    pairs = zip(ours, theirs, strict=True)
    common = [len(numpy.intersect1d(rows, others)) for rows, others in pairs]
    return float(numpy.mean(common)) / ours.shape[1]


@validated
def nearest(
    queries: ArrayLike, vectors: ArrayLike, *, k: int, block_bytes: BlockBytes = BLOCK_BYTES
) -> Best:
    """Find the k vectors most similar to each query, exactly.

    argsort_j (-cos(q_i, v_j), j), its first k: the best first, the lower index first of equal ones

    Scores are those of similarity.cosine in float32, whatever the blocks: a zero vector has
    similarity 0 to all.

    queries (float array of shape (n, width), NumPy or CuPy): what to search for, a vector a row.
    vectors (float array of shape (m, width), NumPy or CuPy): what to search in, maybe
        memory-mapped.
    k (int): how many to find of each query, from 1 to m.
    block_bytes (int): bytes of similarities computed at once. A few times as much is held beside a
        copy of the queries and the result, and up to 24 times where nearly all vectors are equal.
    RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the
        rows of `vectors`.
    RAISES (ValueError): if an array is of another shape, a number is not finite, or there are fewer
        than k vectors.
    SOURCE: Reimers and Gurevych 2019, section 1 (semantic search).

    Example:
        scores, rows = nearest(pipe.encode(["A man eats."]), pipe.encode(texts), k=3)
        print(texts[rows[0, 0]], scores[0, 0])

    """
    right = as_rows(vectors, "vectors")
    left = unit_length(checked_queries(queries, right.shape, k))
    size = isqrt(block_bytes // 4)
    found = [_nearest(left[block], right, k, block_bytes) for block in slices(len(left), size)]
    scores, indices = zip(*found, strict=True)
    return numpy.concatenate(scores), numpy.concatenate(indices)


def nearest_stored(
    queries: ArrayLike, vectors: PartVectors, *, k: int, progress: bool = False
) -> Best:
    """Find the nearest of stored vectors, which are read once.

    vectors (PartVectors): what to search in. progress (bool): whether to show a progress bar. For
        the other arguments see nearest.
    """
    return nearest_in_blocks(queries, vectors.blocks(), vectors.shape, k, progress=progress)


def nearest_in_blocks(
    queries: ArrayLike,
    blocks: Iterable[numpy.ndarray],
    shape: tuple[int, int],
    k: int,
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: bool = False,
) -> Best:
    """Find the nearest of vectors that come in blocks, (b, width).

    shape (tuple): (n, width) of all of them. For the other arguments see nearest.
    """
    rows = checked_queries(queries, shape, k)
    best = _none_found(len(rows))
    start = 0
    with progress_bar(shape[0], shown=progress, unit="vectors", desc="Searching") as bar:
        for block in blocks:
            scores, found = nearest(rows, block, k=min(k, len(block)), block_bytes=block_bytes)
            best = _best_of(best, (scores, found + start), k)
            start += len(block)
            bar.update(len(block))
    return best


def _none_found(n: int) -> Best:
    return numpy.empty((n, 0), dtype="float32"), numpy.empty((n, 0), dtype="int64")


def _best_of(best: Best, more: Best, k: int) -> Best:
    """Return the k best of two results, of which the first has the lower indices."""
    scores = numpy.concatenate([best[0], more[0]], axis=1)
    indices = numpy.concatenate([best[1], more[1]], axis=1)
    order = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
    best_scores = numpy.take_along_axis(scores, order, axis=1)
    return best_scores, numpy.take_along_axis(indices, order, axis=1)


def _nearest(queries: numpy.ndarray, vectors: numpy.ndarray, k: int, block_bytes: int) -> Best:
    """Find the nearest of one block of queries, which are of length 1 or 0."""
    # The length of a vector divides its product, not its numbers: the product and the score are
    # each within width 2^-24 of the true one, their lengths within half of that, up to a few
    # divisions and roots.
    margin = 2 * rounding(vectors.shape[1] + 2)
    best = _none_found(len(queries))
    for block in slices(len(vectors), max(1, block_bytes // (4 * len(queries)))):
        i, j = _candidates(_cosines(queries, vectors, block), best[0], k, margin)
        j += block.start
        scores = _scores(queries, vectors, i, j, block_bytes)
        best = _best_of(best, _by_query(len(queries), i, j, scores), k)
    return best


def _cosines(queries: numpy.ndarray, vectors: numpy.ndarray, block: slice) -> numpy.ndarray:
    """Return cos(q_i, v_j) up to rounding, of the vectors of a block: float32 (n, block).

    q_i . v_j / ||v_j||, part by part: vectors are read from memory once, and not copied.
    """
    vectors = vectors[block]
    cosines = numpy.empty((len(queries), len(vectors)), dtype="float32")
    squares = numpy.empty(len(vectors), dtype="float32")
    parts = list(slices(len(vectors), max(1, _PART_BYTES // (4 * vectors.shape[1]))))
    # Unusual lengths are computed again
    with numpy.errstate(all="ignore"):
        for part in parts:
            rows = numpy.ascontiguousarray(vectors[part], dtype="float32")
            # First, as it streams memory best
            squares[part] = (rows[:, None] @ rows[:, :, None])[:, 0, 0]
            numpy.matmul(queries, rows.T, out=cosines[:, part])
        cosines /= numpy.sqrt(squares)
    is_usual = (squares >= _FLOAT32.tiny / _FLOAT32.eps) & (squares <= _FLOAT32.max)
    if is_usual.all():
        return cosines
    for part in parts:
        if not is_usual[part].all():
            rows = checked(vectors[part], "vectors", start=block.start + part.start)
            numpy.matmul(queries, unit_length(rows).T, out=cosines[:, part])
    return cosines


def _scores(
    queries: numpy.ndarray,
    vectors: numpy.ndarray,
    i: numpy.ndarray,
    j: numpy.ndarray,
    block_bytes: int,
) -> numpy.ndarray:
    """Return unit_scores of vectors of any length."""
    scores = numpy.empty(len(i), dtype="float32")
    order = numpy.argsort(j, kind="stable")
    for part in slices(len(i), max(1, block_bytes // (4 * vectors.shape[1]))):
        pairs = order[part]
        wanted, places = numpy.unique(j[pairs], return_inverse=True)
        rows = unit_length(numpy.ascontiguousarray(vectors[wanted], dtype="float32"))
        scores[pairs] = unit_scores(queries, rows, i[pairs], places, block_bytes)
    return scores


def _candidates(products: numpy.ndarray, scores: numpy.ndarray, k: int, margin: float) -> Best:
    """Return the rows and columns of the products that may be among the k best of their row."""
    floor = numpy.full((len(products), 1), -numpy.inf, dtype="float32")
    if scores.shape[1] >= k:
        floor = scores[:, -1:]
    if products.shape[1] > k:
        floor = numpy.maximum(floor, numpy.partition(products, -k, axis=1)[:, [-k]])
    return numpy.divmod(numpy.flatnonzero(products > floor - margin), products.shape[1])


def _by_query(n: int, i: numpy.ndarray, j: numpy.ndarray, scores: numpy.ndarray) -> Best:
    """Return the candidates of each query in a row, padded with the score -inf."""
    counts = numpy.bincount(i, minlength=n)
    starts = numpy.cumsum(counts) - counts
    # The number of each candidate among those of its query
    place = numpy.arange(len(i)) - numpy.repeat(starts, counts)
    shape = (n, counts.max())
    padded_scores = numpy.full(shape, -numpy.inf, dtype="float32")
    padded_scores[i, place] = scores
    indices = numpy.zeros(shape, dtype="int64")
    indices[i, place] = j
    return padded_scores, indices


def least(min_score: float) -> float:
    """Return the least score that counts, which equal vectors reach in spite of rounding."""
    return min(min_score, _EQUAL)


def rounding(width: int) -> float:
    """Return how much lower the product of the better of two pairs may be.

    2^-22 width: a float32 dot product of unit vectors is within width 2^-24 of the true one, up to
    second order, in whatever order it is summed (Higham 2002, section 3.1). Two are compared, each
    computed twice.
    """
    return 2**-22 * width


def unit_scores(
    u: numpy.ndarray, v: numpy.ndarray, i: numpy.ndarray, j: numpy.ndarray, block_bytes: int
) -> numpy.ndarray:
    """Return the cosine of the rows u_i and v_j, of length 1 or 0, float32 (pairs,).

    It is that of similarity.cosine.
    """
    scores = numpy.empty(len(i), dtype="float32")
    for part in slices(len(i), max(1, block_bytes // (4 * u.shape[1]))):
        scores[part] = (u[i[part]] * v[j[part]]).sum(axis=1)
    return scores
