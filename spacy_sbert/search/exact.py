"""Exact search by cosine similarity in bounded memory."""

from collections.abc import Iterator
from math import isqrt
from typing import Annotated

import numpy
from numpy.typing import ArrayLike
from pydantic import Field

from ..errors import Errors
from ..similarity import as_rows, check_count, check_finite, checked, unit_length
from ..validation import validated

BlockBytes = Annotated[int, Field(ge=4)]  # room for a product
BLOCK_BYTES = 2**23  # of products: 1448 by 1448 in float32, which wastes little below a diagonal


def side(block_bytes: int) -> int:
    """How many rows and columns a square block of float32 products has."""
    return isqrt(block_bytes // 4)


def slices(n: int, size: int, start: int = 0) -> Iterator[slice]:
    """Blocks of `size` rows, the last maybe smaller, from row `start` to row n."""
    return (slice(first, min(first + size, n)) for first in range(start, n, size))


def upper_blocks(n: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Return the blocks of a square on and above its diagonal."""
    return ((left, right) for left in slices(n, size) for right in slices(n, size, left.start))


def check_widths(ours: int, theirs: int) -> None:
    """Check two widths of vectors. RAISES (ValueError): if such vectors cannot be compared."""
    if ours != theirs:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=ours, theirs=theirs))


def rounding(width: int) -> float:
    """How much lower than another score a product may be, and yet be the better pair once both are scored alike.

    A float32 dot product of unit vectors is within width 2^-24 of the true one, up to second order, in whatever order
    it is summed. Two are compared, each computed twice: 4 width 2^-24.

    width (int): of the vectors.
    RETURNS (float): 2^-22 width.
    SOURCE: Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    return 2**-22 * width


def scores_of(
    u: numpy.ndarray, v: numpy.ndarray, i: numpy.ndarray, j: numpy.ndarray, block_bytes: int
) -> numpy.ndarray:
    """Cosine similarity of the rows u_i and v_j, as similarity.cosine computes it: the same bits in whatever block.

    u, v (float32 arrays of shape (n, width), (m, width)): of length 1 or 0. i, j (int64 arrays of shape (pairs,)).
    block_bytes (int): how much is gathered of each at once.
    RETURNS (float32 array of shape (pairs,)).
    """
    scores = numpy.empty(len(i), dtype="float32")
    for part in slices(len(i), max(1, block_bytes // (4 * u.shape[1]))):
        scores[part] = (u[i[part]] * v[j[part]]).sum(axis=1)
    return scores


def recall(found: numpy.ndarray, exact: numpy.ndarray) -> float:
    """Recall@k: the share of the k nearest vectors that are among the k found, the mean over queries.

    mean_i |found_i & exact_i| / k

    found, exact (int64 arrays of shape (queries, k)): rows of vectors, as `nearest` returns them.
    RETURNS (float): from 0 to 1.
    RAISES (ValueError): if the shapes differ, or there is nothing in them.
    SOURCE: Aumüller et al. 2018, ANN-Benchmarks, section 3.
    """
    _check(found, exact)
    common = [len(numpy.intersect1d(ours, theirs)) for ours, theirs in zip(found, exact, strict=True)]
    return float(numpy.mean(common)) / exact.shape[1]


def first_found(found: numpy.ndarray, exact: numpy.ndarray) -> float:
    """Return the share of queries whose nearest vector is among the k found.

    found, exact (int64 arrays of shape (queries, k)): see recall.
    RETURNS (float): from 0 to 1.
    RAISES (ValueError): if the shapes differ, or there is nothing in them.
    """
    _check(found, exact)
    return float((found == exact[:, :1]).any(axis=1).mean())


def _check(found: numpy.ndarray, exact: numpy.ndarray) -> None:
    if found.shape != exact.shape or found.ndim != 2 or found.size == 0:
        raise ValueError(
            f"Cannot compare what was found, of shape {found.shape}, with what exact search finds, of shape "
            f"{exact.shape}: expected both of one shape (queries, k)."
        )


_PART_BYTES = 2**20  # of vectors that are read at once, which the cache of a core holds
_LENGTHS = numpy.finfo("float32")
Best = tuple[numpy.ndarray, numpy.ndarray]  # scores float32 (n, k), indices int64 (n, k)


@validated
def nearest(queries: ArrayLike, vectors: ArrayLike, *, k: int, block_bytes: BlockBytes = BLOCK_BYTES) -> Best:
    """Find the k vectors most similar to each query, exactly: the best first, the lower index first of equal ones.

    argsort_j (-cos(q_i, v_j), j), its first k

    Scores are those of similarity.cosine in float32, whatever the blocks: a zero vector has similarity 0 to all.

    queries (float array of shape (n, width), NumPy or CuPy): what to search for, a vector a row.
    vectors (float array of shape (m, width), NumPy or CuPy): what to search in, maybe memory-mapped.
    k (int): how many to find of each query, from 1 to m.
    block_bytes (int): bytes of similarities computed at once; beside a copy of the queries of unit length, and the
        result, a few times as much is held, and up to 24 times where nearly all vectors are equal.
    RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the similarities, and the rows of `vectors`.
    RAISES (ValueError): if an array is of another shape or holds a number that is not finite, if widths differ, or if
        there are fewer than k vectors.
    SOURCE: Reimers and Gurevych 2019, section 1 (semantic search).
    """
    left, right = checked(queries, "queries"), as_rows(vectors, "vectors")
    check_widths(left.shape[1], right.shape[1])
    check_count(k, len(right), f"nearest of {len(right)} vectors")
    left = unit_length(left)
    blocks = [_nearest(left[block], right, k, block_bytes) for block in slices(len(left), side(block_bytes))]
    scores, indices = map(numpy.concatenate, zip(*blocks, strict=True))
    return scores, indices


def best_of(best: Best, more: Best, k: int) -> Best:
    """Return the k best of two results, of which the first has the lower indices."""
    scores, indices = (numpy.concatenate(both, axis=1) for both in zip(best, more, strict=True))
    order = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
    return numpy.take_along_axis(scores, order, axis=1), numpy.take_along_axis(indices, order, axis=1)


def _nearest(queries: numpy.ndarray, vectors: numpy.ndarray, k: int, block_bytes: int) -> Best:
    """Find the nearest of one block of queries, which are of length 1 or 0."""
    best = numpy.empty((len(queries), 0), dtype="float32"), numpy.empty((len(queries), 0), dtype="int64")
    for block in slices(len(vectors), max(1, block_bytes // (4 * len(queries)))):
        i, j = _candidates(_cosines(queries, vectors, block), best[0], k, _margin(vectors.shape[1]))
        j += block.start
        best = best_of(best, _by_query(len(queries), i, j, _scores(queries, vectors, i, j, block_bytes)), k)
    return best


def _margin(width: int) -> float:
    """As `rounding`, where the length of a vector divides its product, and not its numbers.

    The product and the score are each within width 2^-24 of the true one, their two lengths within half of that, but
    for a few divisions and roots; two of these are compared: less than 8 (width + 2) 2^-24.
    """
    return 2 * rounding(width + 2)


def _cosines(queries: numpy.ndarray, vectors: numpy.ndarray, block: slice) -> numpy.ndarray:
    """cos(q_i, v_j) up to rounding, of the vectors of a block: float32 (n, block).

    q_i . v_j / ||v_j||, part by part, so that vectors are read from memory once, and no copy of all is made
    """
    vectors = vectors[block]
    cosines = numpy.empty((len(queries), len(vectors)), dtype="float32")
    squares = numpy.empty(len(vectors), dtype="float32")
    parts = list(slices(len(vectors), max(1, _PART_BYTES // (4 * vectors.shape[1]))))
    with numpy.errstate(all="ignore"):  # what is not usual is computed again
        for part in parts:
            rows = numpy.ascontiguousarray(vectors[part], dtype="float32")
            squares[part] = (rows[:, None] @ rows[:, :, None])[:, 0, 0]  # first, for it streams memory best
            numpy.matmul(queries, rows.T, out=cosines[:, part])
        cosines /= numpy.sqrt(squares)
    usual = (squares >= _LENGTHS.tiny / _LENGTHS.eps) & (squares <= _LENGTHS.max)
    for part in parts if not usual.all() else ():
        if not usual[part].all():
            rows = numpy.ascontiguousarray(vectors[part], dtype="float32")
            check_finite(rows, "vectors", block.start + part.start)
            numpy.matmul(queries, unit_length(rows).T, out=cosines[:, part])
    return cosines


def _scores(
    queries: numpy.ndarray, vectors: numpy.ndarray, i: numpy.ndarray, j: numpy.ndarray, block_bytes: int
) -> numpy.ndarray:
    """As `scores_of`, of vectors of any length, which are brought to length 1 for it."""
    scores = numpy.empty(len(i), dtype="float32")
    order = numpy.argsort(j, kind="stable")
    for part in slices(len(i), max(1, block_bytes // (4 * vectors.shape[1]))):
        pairs = order[part]
        wanted, places = numpy.unique(j[pairs], return_inverse=True)
        rows = unit_length(numpy.ascontiguousarray(vectors[wanted], dtype="float32"))
        scores[pairs] = scores_of(queries, rows, i[pairs], places, block_bytes)
    return scores


def _candidates(products: numpy.ndarray, scores: numpy.ndarray, k: int, margin: float) -> Best:
    """Rows and columns of the products that may be among the k best of their row."""
    floor = numpy.full((len(products), 1), -numpy.inf, dtype="float32") if scores.shape[1] < k else scores[:, -1:]
    if products.shape[1] > k:
        floor = numpy.maximum(floor, numpy.partition(products, -k, axis=1)[:, [-k]])
    return numpy.divmod(numpy.flatnonzero(products > floor - margin), products.shape[1])


def _by_query(n: int, i: numpy.ndarray, j: numpy.ndarray, scores: numpy.ndarray) -> Best:
    """Return the candidates of each query in a row, filled up with the score -inf where others have more."""
    counts = numpy.bincount(i, minlength=n)
    place = numpy.arange(len(i)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    found = numpy.full((n, counts.max()), -numpy.inf, dtype="float32"), numpy.zeros((n, counts.max()), dtype="int64")
    found[0][i, place], found[1][i, place] = scores, j
    return found
