"""The most similar pairs of a collection: paraphrases, duplicates."""

from collections.abc import Callable, Iterator

import numpy
from numpy.typing import ArrayLike

from ..progress import progress_of
from ..similarity import check_count, checked, unit_length
from ..validation import Cosine, validated
from .exact import BLOCK_BYTES, BlockBytes, rounding, scores_of, side, upper_blocks

MOST_PAIRS = 4_000_000  # of all above a score: with their texts a list of them takes about 1 GB


@validated
def most_similar_pairs(
    vectors: ArrayLike, *, k: int = 1, block_bytes: BlockBytes = BLOCK_BYTES, progress: bool = False
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Find the k most similar pairs of vectors, exactly: the best first, and of equal ones the lower (i, j).

    argsort_{i < j} (-cos(v_i, v_j), i, j), its first k

    Scores are those of similarity.cosine in float32, whatever the blocks: a zero vector has similarity 0 to all. Matrix
    products find the pairs that may be among the best, which are then scored one by one; where most vectors are equal
    these are most pairs, and take their time.

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    k (int): how many pairs to find, from 1 to n (n - 1) / 2.
    block_bytes (int): bytes of similarities computed at once; beside a copy of the vectors of unit length, and the
        result, a few times as much is held, and up to 24 times where nearly all vectors are equal.
    progress (bool): whether to show a progress bar.
    RETURNS (float32 array of shape (k,), int64 array of shape (k, 2)): the similarities, and the rows i < j.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or if
        there are fewer than k pairs.
    SOURCE: Reimers and Gurevych 2019, section 1 (the most similar pair of 10,000 sentences).
    """
    rows = unit_length(checked(vectors, "vectors"))
    n, width = rows.shape
    check_count(k, n * (n - 1) // 2, f"most similar pairs of {n} vectors")
    scores, pairs = numpy.empty(0, dtype="float32"), numpy.empty((0, 2), dtype="int64")
    for left, right in _blocks(n, block_bytes, progress):
        products = rows[left] @ rows[right].T
        if left == right:
            products[numpy.tri(len(products), dtype=bool)] = -numpy.inf
        worst = scores[-1] if len(scores) == k else -numpy.inf
        i, j = _candidates(products, worst, k, rounding(width))
        i, j = i + left.start, j + right.start
        scores = numpy.concatenate([scores, scores_of(rows, rows, i, j, block_bytes)])
        pairs = numpy.concatenate([pairs, numpy.stack([i, j], axis=1)])
        order = numpy.lexsort((pairs[:, 1], pairs[:, 0], -scores))[:k]
        scores, pairs = scores[order], pairs[order]
    return scores, pairs


@validated
def pairs_above(
    vectors: ArrayLike, min_score: Cosine, *, block_bytes: BlockBytes = BLOCK_BYTES, progress: bool = False
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Find all pairs of vectors that are at least so similar: the best first, and of equal ones the lower (i, j).

    argsort_{i < j, cos(v_i, v_j) >= min_score} (-cos(v_i, v_j), i, j)

    Scores, vectors, block_bytes and progress as in most_similar_pairs, whose result this is without a bound.

    min_score (float): the least similarity, from -1 to 1.
    RETURNS (float32 array of shape (pairs,), int64 array of shape (pairs, 2)): the similarities, and the rows i < j.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or if there are more
        than MOST_PAIRS pairs.
    """
    rows = unit_length(checked(vectors, "vectors"))
    scores, pairs, count = [numpy.empty(0, dtype="float32")], [numpy.empty((0, 2), dtype="int64")], 0
    for own, i, j in blocks_above(rows, min_score, block_bytes=block_bytes, progress=progress):
        scores.append(own)
        pairs.append(numpy.stack([i, j], axis=1))
        count += len(own)
        check_kept(count, min_score)
    all_scores, all_pairs = numpy.concatenate(scores), numpy.concatenate(pairs)
    order = numpy.lexsort((all_pairs[:, 1], all_pairs[:, 0], -all_scores))
    return all_scores[order], all_pairs[order]


def blocks_above(
    rows: numpy.ndarray,
    min_score: float,
    *,
    wanted: Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray] | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: bool = False,
) -> Iterator[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """Find the pairs of pairs_above block by block.

    rows (float32 (n, width)): of length 1 or 0. wanted (Callable): which pairs of rows (i, j) are looked at, bool; by
        default all.
    YIELDS (float32 (pairs,), int64 (pairs,), int64 (pairs,)): scores, rows i and rows j > i.
    """
    n, width = rows.shape
    for left, right in _blocks(n, block_bytes, progress):
        products = rows[left] @ rows[right].T
        if left == right:
            products[numpy.tri(len(products), dtype=bool)] = -numpy.inf
        found = numpy.flatnonzero(products >= min_score - rounding(width))
        i, j = numpy.divmod(found, products.shape[1])
        i, j = i + left.start, j + right.start
        if wanted is not None:
            chosen = wanted(i, j)
            i, j = i[chosen], j[chosen]
        own = scores_of(rows, rows, i, j, block_bytes)
        kept = own.astype("float64") >= min_score  # as Python compares the scores that are written
        yield own[kept], i[kept], j[kept]


def check_kept(count: int, min_score: float) -> None:
    """Check a number of pairs. RAISES (ValueError): if there are more than pairs_above returns."""
    if count > MOST_PAIRS:
        raise ValueError(
            f"More than {MOST_PAIRS} pairs have a similarity of {min_score:g} or more, too many to keep all: "
            "give a higher min_score (--min-score), or say with k how many of the best you want."
        )


def _blocks(n: int, block_bytes: int, progress: bool) -> Iterator[tuple[slice, slice]]:
    """See upper_blocks; with a bar of them."""
    along = -(-n // side(block_bytes))
    blocks, total = upper_blocks(n, side(block_bytes)), along * (along + 1) // 2
    return progress_of(blocks, total=total, shown=progress, unit="blocks", desc="Comparing")


def _candidates(products: numpy.ndarray, worst: float, k: int, margin: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Rows and columns of the products that may be among the k best, of which the worst so far is known."""
    found = numpy.flatnonzero(products > worst - margin)
    if len(found) > k:
        above = products.ravel()[found]
        found = found[above > numpy.partition(above, -k)[-k] - margin]
    i, j = numpy.divmod(found, products.shape[1])
    return i, j
