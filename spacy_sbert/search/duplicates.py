"""Near-duplicates among new vectors: near to one of an index, or to one before them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy

from .exact import slices
from .faiss_index import FaissIndex

# New vectors that are compared with one another at once
_BLOCK = 2**10
# The cosine of equal vectors, as FAISS rounds it: they are found by min_score = 1
_EQUAL = 1 - 2**-20


class Duplicate(NamedTuple):
    """New vector that is left out, as it is near to another.

    number (int): its number among the new ones, from 0. row (int): the row of the other in the
        index. score (float): their cosine similarity.
    """

    number: int
    row: int
    score: float


def without_duplicates(
    index: FaissIndex, vectors: numpy.ndarray, min_score: float, duplicates: list[Duplicate]
) -> Iterator[numpy.ndarray]:
    """Yield blocks of the vectors that are near to none of an index, nor to one before them.

    index (FaissIndex): has the blocks before when the next one is made.
    vectors (float32 (n, width)): of length 1. min_score (float): the least cosine similarity of
        duplicates. duplicates (list): those that are left out are appended.
    """
    floor = min(min_score, _EQUAL)
    for block in slices(len(vectors), _BLOCK):
        rows = vectors[block]
        found, nearest = index.search(rows, 1)
        products = rows @ rows.T
        kept: list[int] = []
        for i in range(len(rows)):
            score = found[i, 0]
            row = nearest[i, 0]
            own = products[i, kept]
            if kept and own.max() > score:
                score = own.max()
                row = len(index) + own.argmax()
            if score < floor:
                kept.append(i)
            else:
                duplicates.append(Duplicate(block.start + i, int(row), float(score)))
        yield rows[kept]
