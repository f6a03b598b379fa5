"""Fusion: one result of several searches in the same texts, such as by words and by vectors."""

from collections.abc import Sequence

import numpy

from ..similarity import check_count
from ..validation import NonNegativeFloat, PositiveFloat, validated
from .exact import Best


@validated
def reciprocal_rank_fusion(
    results: Sequence[Best],
    *,
    k: int,
    constant: PositiveFloat = 60,
    weights: Sequence[NonNegativeFloat] | None = None,
) -> Best:
    """Join results by the ranks of their rows.

    score(row) = sum_i w_i / (constant + rank_i(row)), ranks from 1

    A result without the row adds nothing. A score of 0 adds nothing either: it says nothing of a
    row, such as that of BM25 for a text without a word of the query.

    results (Sequence): scores and rows, (n, k_i) each, the best first, as `nearest`,
        `VectorIndex.search` and `BM25.search` return them: of the same queries and collection.
    k (int): how many rows to return of each query, at most as many as the longest result has.
    constant (float): the higher it is, the less the first ranks count more than the next.
    weights (Sequence[float]): w_i of each result, at least 0; 1 if None.
    RETURNS (float32 array of shape (n, k), int64 array of shape (n, k)): the scores, and the rows;
        the lower row first of equal scores.
    RAISES (ValueError): if the results are of different queries, or have fewer than k rows; or
        there is not one weight for each.
    SOURCE: Cormack et al. 2009, Reciprocal rank fusion outperforms Condorcet.

    Example:
        found = [nearest(pipe.encode(queries), vectors, k=100), bm25.search(queries, k=100)]
        scores, rows = reciprocal_rank_fusion(found, k=10)

    """
    if weights is None:
        weights = [1.0] * len(results)
    shapes = [rows.shape for _, rows in results]
    if len({n for n, _ in shapes}) != 1 or len(weights) != len(results):
        raise ValueError(
            f"Cannot join results of the shapes {shapes} by the weights {weights}: expected the "
            "same queries in each, and a weight for each."
        )
    most = max(width for _, width in shapes)
    check_count(k, most, f"rows of results of {most}")
    shares = [
        weight * ((scores != 0) / (constant + numpy.arange(1, scores.shape[1] + 1)))
        for weight, (scores, _) in zip(weights, results, strict=True)
    ]
    every_share = numpy.concatenate(shares, axis=1)
    every_row = numpy.concatenate([rows for _, rows in results], axis=1)
    best_scores = numpy.empty((len(every_row), k), dtype="float32")
    best_rows = numpy.empty((len(every_row), k), dtype="int64")
    for i, rows in enumerate(every_row):
        candidates, places = numpy.unique(rows, return_inverse=True)
        # In float32, sums of the same shares in another order are equal
        sums = numpy.bincount(places, weights=every_share[i]).astype("float32")
        order = numpy.argsort(-sums, kind="stable")[:k]
        best_scores[i] = sums[order]
        best_rows[i] = candidates[order]
    return best_scores, best_rows
