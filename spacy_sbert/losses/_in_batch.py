"""The cross-entropy of finding each anchor's own positive among the positives, and hard negatives, of a whole batch."""

from collections.abc import Callable

from thinc.types import Floats2d, FloatsXd, Ints1d, Ints2d
from thinc.util import get_array_module

from ._common import cross_entropy, unit_rows

Entered = tuple[Floats2d, Callable[[Floats2d], Floats2d]]
# What makes a similarity matrix the matrix product: the rows that enter it, with their derivative.
SIMILARITIES: dict[str, Callable[[Floats2d], Entered]] = {
    "cosine": lambda x: unit_rows(x, True),
    "dot": lambda x: (x, lambda d: d),
}


def in_batch_cross_entropy(
    queries: Floats2d, answers: list[Floats2d], ids: Ints2d, *, scale: float, block_size: int
) -> tuple[FloatsXd, list[Floats2d]]:
    """Mean cross-entropy of the scores of each query, where the answer of the same row is the right one.

    queries (float (n, width)): what is asked.
    answers (list of float (n, width)): the right answers, and the hard negatives if there are any.
    ids (int (1 + len(answers), n)): equal numbers for equal texts, of the queries and of each answer.
    block_size (int): how many rows of the scores, (n, n len(answers)), are held at once.
    RETURNS (float (), list of float (n, width)): the loss, still on the device, and its derivatives by queries and each
        answer. The loss of a query without a wrong answer is 0.
    """
    xp = get_array_module(queries)
    n, candidates = len(queries), xp.concatenate(answers)
    d_queries, d_candidates = xp.zeros_like(queries), xp.zeros_like(candidates)
    total = xp.zeros((), dtype=queries.dtype)
    for start in range(0, n, block_size):
        rows = xp.arange(start, min(start + block_size, n))
        scores = scale * (queries[rows] @ candidates.T)
        scores = xp.where(false_negatives(ids, rows), -xp.inf, scores)
        losses, d_scores = cross_entropy(scores, rows)
        d_scores = d_scores * (scale / n)
        total += xp.sum(losses)
        d_queries[rows] = d_scores @ candidates
        d_candidates += d_scores.T @ queries[rows]
    return total / n, [d_queries, *xp.split(d_candidates, len(answers))]


def false_negatives(ids: Ints2d, rows: Ints1d) -> Ints2d:
    """Which answers are not wrong for a query, although they stand in other rows.

    An answer whose text is that of the query or of the query's own answer; and the answer to a query of the same text.
    A hard negative is false for the first two reasons only, and in any row.

    ids (int (members, n)): numbers of the texts of the queries, the answers and, if there are any, hard negatives.
    rows (int (block,)): the queries in question.
    RETURNS (bool (block, n (members - 1))): true for those to leave out.
    """
    xp = get_array_module(ids)
    query, answer, *hard_negatives = xp.asarray(ids)

    def same(ours: Ints1d, theirs: Ints1d) -> Ints2d:
        return xp.expand_dims(ours[rows], 1) == xp.expand_dims(theirs, 0)

    repeated = same(query, answer) | same(answer, answer) | same(query, query)
    elsewhere = ~same(xp.arange(len(query)), xp.arange(len(query)))
    of_hard = [same(query, hard) | same(answer, hard) for hard in hard_negatives]
    return xp.concatenate([repeated & elsewhere, *of_hard], axis=1)
