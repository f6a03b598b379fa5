"""Groups of items that lie one after another in an array: where each begins, and what is in it."""

from collections.abc import Iterable
from itertools import accumulate

import numpy


def borders_of(counts: Iterable[int]) -> list[int]:
    """Return where each of several groups begins, and where the last ends."""
    return [0, *accumulate(counts)]


def group_of(counts: numpy.ndarray) -> numpy.ndarray:
    """Return the number of the group of each item: int64 (sum of counts,).

    counts (int (groups,)): the items of each.
    """
    return numpy.repeat(numpy.arange(len(counts)), counts)


def ragged_arange(starts: numpy.ndarray, lengths: numpy.ndarray) -> numpy.ndarray:
    """start, start + 1, ... of each stretch, one after another: int64 (sum of lengths,)."""
    return numpy.arange(lengths.sum()) + numpy.repeat(
        starts - (numpy.cumsum(lengths) - lengths), lengths
    )
