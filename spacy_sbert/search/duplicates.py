"""Near-duplicates among new vectors: near to one that is stored, or to one before them."""

from typing import NamedTuple

import numpy

from .exact import Best, least
from .pairs import near_before


class Duplicate(NamedTuple):
    """New vector that is left out, as it is near to another.

    number (int): its number among the new ones, from 0. row (int): the row of the other in the
        index. score (float): their cosine similarity.
    """

    number: int
    row: int
    score: float


def find_duplicates(
    rows: numpy.ndarray, min_score: float, stored: Best, n_stored: int
) -> list[Duplicate]:
    """Find the vectors that are near to a stored one, or else to one before them that is kept.

    rows (float32 (n, width)): the new vectors, of length 1. min_score (float): the least cosine
        similarity of duplicates.
    stored (Best): scores and rows (n, 1) of the nearest stored vector of each. n_stored (int): how
        many are stored, behind which those that are kept have their rows.
    """
    scores = stored[0][:, 0]
    near = stored[1][:, 0]
    # In float64, as Python compares scores
    is_near = scores.astype("float64") >= least(min_score)
    rest = numpy.flatnonzero(~is_near)
    own_scores, first = near_before(rows[rest], min_score)
    is_second = first >= 0
    kept = rest[~is_second]
    repeated = rest[is_second]
    near[repeated] = n_stored + numpy.searchsorted(kept, rest[first[is_second]])
    scores[repeated] = own_scores[is_second]
    numbers = numpy.delete(numpy.arange(len(rows)), kept)
    return list(map(Duplicate, numbers.tolist(), near[numbers].tolist(), scores[numbers].tolist()))
