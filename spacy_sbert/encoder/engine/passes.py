"""Which windows go through the encoder together: packed in rows, padded, or as sentence-transformers has them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy

from ..wordpieces import Wordpieces
from .packing import pack

# oneDNN makes a kernel for each shape of a product, of half a MB, and keeps a thousand. So passes are of few shapes.
WIDTHS_APART = 8  # wordpieces
PLACES_APART = 64
FEW_PLACES_APART = 16  # of no more than PLACES_APART: for a short text alone, which has a quarter of them
SIMILAR = 0.75  # the narrowest row of a pass, as a share of the widest, to which it is padded
REFERENCE_BATCH = 32  # texts; what SentenceTransformer.encode takes by default


@dataclass
class Pass:
    """A forward pass: rows of similar width.

    windows: int64 (k,), those in it.
    starts: int64 (k,), where each begins in the flattened rows.
    shape: rows and width.
    """

    windows: numpy.ndarray
    starts: numpy.ndarray
    shape: tuple[int, int]


def packed_passes(lengths: numpy.ndarray, windows: numpy.ndarray, budget: int, *, at_a_time: int = 1) -> list[Pass]:
    """Several windows in a row; at_a_time (int): how many threads share the passes."""
    packing = pack(lengths[windows])
    n_left = _n_passes(int(packing.widths.sum()), budget, at_a_time)
    by_row = numpy.argsort(packing.row_of, kind="stable")
    rows = packing.row_of[by_row]
    passes, last = [], len(packing.widths)
    while last:
        width = width_for(packing.widths[last - 1])  # the widest row that is left
        similar = int(numpy.searchsorted(packing.widths, SIMILAR * width))
        share = int(packing.widths[:last].sum()) / max(1, n_left)  # of those that are left
        first = max(similar, last - _n_rows(budget // width, math.ceil(share / width)))
        chosen = by_row[numpy.searchsorted(rows, first) : numpy.searchsorted(rows, last)]
        starts = (packing.row_of[chosen] - first) * width + packing.column_of[chosen]
        passes.append(Pass(windows[chosen], starts, (last - first, width)))
        last, n_left = first, n_left - 1
    return passes


def width_for(longest: numpy.integer) -> int:
    """The width of the rows of a pass, of which the longest has so many wordpieces."""
    return WIDTHS_APART * math.ceil(longest / WIDTHS_APART)


def places_for(n_used: int) -> int:
    """How many places products are made of, where so many are used."""
    apart = PLACES_APART if n_used > PLACES_APART else FEW_PLACES_APART
    return apart * math.ceil(n_used / apart)


def _n_rows(most: int, wanted: int) -> int:
    """An even number, if it is within the most."""
    n_rows = min(most, wanted)
    return max(1, n_rows + n_rows % 2 if n_rows < most else n_rows)


def _n_passes(total: int, budget: int, at_a_time: int) -> int:
    """As many for each thread, so that none waits for the others' last one.

    total (int): the places in all of them. budget (int): the most in one. at_a_time (int): the threads.
    """
    n_passes = math.ceil(total / budget)
    # Of fewer, each has a thread to itself.
    return n_passes if n_passes <= at_a_time else at_a_time * math.ceil(n_passes / at_a_time)


def padded_passes(lengths: numpy.ndarray, windows: numpy.ndarray, budget: int) -> list[Pass]:
    """Windows of similar length, each a row of its own, of at most so many wordpieces a pass."""
    windows = windows[numpy.argsort(-lengths[windows], kind="stable")]
    passes, first = [], 0
    while first < len(windows):
        width = int(lengths[windows[first]])
        passes.append(one_pass(lengths, windows[first : first + max(1, budget // max(1, width))]))
        first += len(passes[-1].windows)
    return passes


def reference_passes(wordpieces: Wordpieces) -> list[Pass]:
    """The batches of sentence-transformers: texts by their number of characters, 32 together."""
    n_characters: Any = wordpieces.n_characters
    order = numpy.argsort(-n_characters)  # not stable, as there: texts of one length must come in the same order
    batches = [order[first : first + REFERENCE_BATCH] for first in range(0, len(order), REFERENCE_BATCH)]
    return [one_pass(wordpieces.lengths, batch) for batch in batches]


def one_pass(lengths: numpy.ndarray, windows: numpy.ndarray) -> Pass:
    """Each window a row of its own."""
    width = max(1, int(lengths[windows].max()))
    return Pass(windows, numpy.arange(len(windows)) * width, (len(windows), width))
