"""Batches of windows: packed into few rows with little padding, or padded; their arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import torch
from torch.nn import functional

from ..ragged import group_of, ragged_arange
from ..tokenization import TokenizedBatch

# Wordpieces in a batch, whose states stay in the cache
CPU_BUDGET = 2048
# oneDNN makes a kernel for each shape of a product, of half a MB, and keeps a thousand. So batches
# are of few shapes. Wordpieces
WIDTHS_APART = 8
PLACES_APART = 64
# Up to so many places, in steps of so many
_STEPS_OF_SHORT = ((32, 4), (64, 16))
# Of the narrowest rows; both are tried
_WIDTHS = (64, 128)
# Of the time for a wordpiece in a row of 64, where it attends to 64; grows with the width
_ATTENTION_SHARE = 0.15
# The narrowest row of a batch, as a share of the widest, to which it is padded
_SIMILAR = 0.75


class _Packing(NamedTuple):
    """Rows with several windows each.

    row_of, column_of: int64 (n,), the row of each window, and its first place there.
    widths: int64 (rows,), ascending.
    """

    row_of: numpy.ndarray
    column_of: numpy.ndarray
    widths: numpy.ndarray


def pack(lengths: numpy.ndarray, *, one_width: bool = False) -> _Packing:
    """Put windows into few rows: the longest first, each into the fullest row it fits in.

    A window that fits nowhere opens a row of 64 or of 128, whichever costs less in all, or a longer
    one of its own.

    lengths (int64 (n,)): the wordpieces in each window. one_width (bool): whether rows are as wide
        as the longest.
    SOURCE: Johnson 1973, Near-Optimal Bin Packing Algorithms (best fit decreasing); packing of
        sequences with a block-diagonal mask as in Krell et al. 2021, Efficient Sequence Packing
        without Cross-contamination, section 3.
    """
    if one_width:
        return _pack(lengths, max(_WIDTHS[0], int(lengths.max(initial=0))))
    return min((_pack(lengths, width) for width in _WIDTHS), key=_cost)


def _cost(packing: _Packing) -> float:
    """Return the time it takes to encode the rows, as multiples of a wordpiece's in a row of 64."""
    widths = packing.widths
    return float((widths * (1 - _ATTENTION_SHARE + _ATTENTION_SHARE * widths / 64)).sum())


def _pack(lengths: numpy.ndarray, narrowest: int) -> _Packing:
    """Put windows into rows of at least a width."""
    order = numpy.argsort(-lengths, kind="stable")
    row_of = [0] * len(lengths)
    column_of = [0] * len(lengths)
    widths: list[int] = []
    # Free places -> (row, its next column)
    with_room: dict[int, list[tuple[int, int]]] = {}
    # The keys of with_room, as bits
    free_sizes = 0
    for window, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        fitting = free_sizes >> length
        if fitting:
            # The smallest that is large enough
            room = length + (fitting & -fitting).bit_length() - 1
            row, column = with_room[room].pop()
            if not with_room[room]:
                free_sizes ^= 1 << room
        else:
            room = max(narrowest, length)
            row = len(widths)
            column = 0
            widths.append(room)
        row_of[window] = row
        column_of[window] = column
        left = room - length
        if left:
            with_room.setdefault(left, []).append((row, column + length))
            free_sizes |= 1 << left
    by_width = numpy.argsort(widths, kind="stable")
    new_place = numpy.empty_like(by_width)
    new_place[by_width] = numpy.arange(len(widths))
    return _Packing(new_place[row_of], numpy.array(column_of), numpy.array(widths)[by_width])


@dataclass
class Batch:
    """What goes through the encoder at once: rows of one width, each of one window or of several.

    windows: int64 (k,), the numbers of the windows.
    starts: int64 (k,), where each window begins in the flattened rows.
    shape: rows and width.
    """

    windows: numpy.ndarray
    starts: numpy.ndarray
    shape: tuple[int, int]

    def places(self, lengths: numpy.ndarray) -> torch.Tensor:
        """Return where the wordpieces are in the flattened rows, int64 (sum of lengths,).

        lengths (int64 (k,)): of the windows.
        """
        return torch.from_numpy(ragged_arange(self.starts, lengths))


def packed_batches(
    lengths: numpy.ndarray, windows: numpy.ndarray, budget: int, *, at_a_time: int = 1
) -> list[Batch]:
    """Return batches with several windows in a row.

    at_a_time (int): how many threads share the batches.
    """
    if len(windows) == 1:
        # Of the places in a row of 64, a short text would leave most empty
        longest = max(1, int(lengths[windows[0]]))
        width = min(width_for(longest), places_for(longest, of_short_text=True))
        return [Batch(windows, numpy.zeros(1, dtype="int64"), (1, width))]
    packing = pack(lengths[windows])
    n_left = math.ceil(int(packing.widths.sum()) / budget)
    # As many for each thread, so that none waits for the others' last one
    if n_left > at_a_time:
        n_left = at_a_time * math.ceil(n_left / at_a_time)
    by_row = numpy.argsort(packing.row_of, kind="stable")
    rows = packing.row_of[by_row]
    batches = []
    last = len(packing.widths)
    while last:
        # The widest row that is left
        width = width_for(packing.widths[last - 1])
        similar = int(numpy.searchsorted(packing.widths, _SIMILAR * width))
        share = int(packing.widths[:last].sum()) / max(1, n_left)
        n_rows = _rows_of_batch(share, width, budget)
        first = max(similar, last - max(1, n_rows))
        chosen = by_row[numpy.searchsorted(rows, first) : numpy.searchsorted(rows, last)]
        starts = (packing.row_of[chosen] - first) * width + packing.column_of[chosen]
        batches.append(Batch(windows[chosen], starts, (last - first, width)))
        last = first
        n_left -= 1
    return batches


def _rows_of_batch(share: float, width: int, budget: int) -> int:
    """Return how many rows of a width hold a share of the wordpieces, within the budget."""
    most = budget // width
    n_rows = min(most, math.ceil(share / width))
    # Even numbers are fewer shapes
    if n_rows < most and n_rows % 2:
        n_rows += 1
    return n_rows


def width_for(longest: int) -> int:
    """Return the width of the rows of a batch by its longest."""
    return WIDTHS_APART * math.ceil(longest / WIDTHS_APART)


def places_for(n_used: int, *, of_short_text: bool = False) -> int:
    """Return how many places products are made of.

    of_short_text (bool): whether fewer than PLACES_APART are in smaller steps, as a text by itself
        has them.
    """
    apart = PLACES_APART
    if of_short_text:
        apart = next((step for most, step in _STEPS_OF_SHORT if n_used <= most), apart)
    return apart * math.ceil(n_used / apart)


def padded_batches(
    lengths: numpy.ndarray, windows: numpy.ndarray, budget: int, *, of_equal_length: bool = False
) -> list[Batch]:
    """Return batches with a window a row, of similar or equal length, of at most `budget`."""
    windows = windows[numpy.argsort(-lengths[windows], kind="stable")]
    batches = []
    first = 0
    while first < len(windows):
        width = int(lengths[windows[first]])
        end = first + max(1, budget // max(1, width))
        if of_equal_length:
            end = min(end, int(numpy.searchsorted(-lengths[windows], -width, side="right")))
        batches.append(single_batch(lengths, windows[first:end]))
        first = end
    return batches


def single_batch(
    lengths: numpy.ndarray, windows: numpy.ndarray, *, pads_left: bool = False
) -> Batch:
    """Return one batch with a row a window; pads_left (bool): whether padding comes before it."""
    width = max(1, int(lengths[windows].max()))
    starts = numpy.arange(len(windows)) * width
    if pads_left:
        starts += width - lengths[windows]
    return Batch(windows, starts, (len(windows), width))


def lay_out(
    wordpieces: TokenizedBatch, batch: Batch, device: torch.device, padding: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ids, columns, types and windows of the places in a batch, int64 (rows, width).

    See BertForward.
    """
    lengths = wordpieces.lengths[batch.windows]
    places: numpy.ndarray | slice
    chosen: numpy.ndarray | slice
    columns: numpy.ndarray
    owners: numpy.ndarray | int
    if len(lengths) == 1:
        # The same without index arrays, which a single text would wait for
        first = int(batch.starts[0])
        length = int(lengths[0])
        start = int(wordpieces.lengths[: batch.windows[0]].sum())
        places = slice(first, first + length)
        chosen = slice(start, start + length)
        columns = numpy.arange(length)
        owners = 0
    else:
        places = ragged_arange(batch.starts, lengths)
        chosen = ragged_arange(wordpieces.starts[batch.windows], lengths)
        columns = ragged_arange(numpy.zeros_like(lengths), lengths)
        owners = group_of(lengths)

    def placed(values: numpy.ndarray | int, filler: int = 0) -> torch.Tensor:
        array = numpy.full(batch.shape, filler, dtype="int64")
        array.reshape(-1)[places] = values
        return torch.from_numpy(array).to(device)

    types = 0 if wordpieces.type_ids is None else wordpieces.type_ids[chosen]
    return (
        placed(wordpieces.ids[chosen], padding),
        placed(columns),
        placed(types),
        placed(owners, -1),
    )


def with_places(states: torch.Tensor, n_places: int) -> torch.Tensor:
    """Return the first n_places, or all and zeros behind them, for products of few shapes."""
    n_more = n_places - len(states)
    if n_more <= 0:
        return states[:n_places]
    padding = (0, 0) * (states.dim() - 1) + (0, n_more)
    return functional.pad(states, padding)
