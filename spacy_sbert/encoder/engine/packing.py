"""Several windows in one row of the encoder, so that nothing is computed on padding."""

from dataclasses import dataclass

import numpy

WIDTHS = (64, 128)  # of the narrowest rows; both are tried
ATTENTION_SHARE = 0.15  # of the time for a wordpiece in a row of 64, where it attends to 64; grows with the width


@dataclass(frozen=True)
class Packing:
    """Where n windows stand in rows.

    row_of, column_of: int64 (n,), the row of each window and where it begins in it.
    widths: int64 (rows,), ascending: rows of similar width stand together.
    """

    row_of: numpy.ndarray
    column_of: numpy.ndarray
    widths: numpy.ndarray

    @property
    def cost(self) -> float:
        """The time it takes to encode the rows, as multiples of a wordpiece's in a row of 64."""
        attention = ATTENTION_SHARE * self.widths / 64
        return float((self.widths * (1 - ATTENTION_SHARE + attention)).sum())


def pack(lengths: numpy.ndarray, *, one_width: bool = False) -> Packing:
    """Put windows into as few rows as a quick rule finds: the longest first, each into the fullest row it fits in.

    A window that fits nowhere opens a row of 64 or of 128, whichever costs less in all; one that is longer has a row of
    its own, since attention costs more the wider a row is.

    lengths (int64 (n,)): the wordpieces in each window.
    one_width (bool): whether all rows are to be as wide as the longest window, for those that are encoded as one batch.
    RETURNS (Packing): the cheaper of those found.
    SOURCE: Johnson 1973, Near-Optimal Bin Packing Algorithms (best fit decreasing); packing of sequences with a
        block-diagonal mask as in Krell et al. 2021, Efficient Sequence Packing without Cross-contamination, section 3.
    """
    longest = int(lengths.max(initial=0))
    widths = [max(WIDTHS[0], longest)] if one_width else WIDTHS
    return min((_pack(lengths, width) for width in widths), key=lambda packing: packing.cost)


def _pack(lengths: numpy.ndarray, narrowest: int) -> Packing:
    order = numpy.argsort(-lengths, kind="stable")
    row_of = [0] * len(lengths)
    column_of = [0] * len(lengths)
    widths: list[int] = []
    with_room: dict[int, list[tuple[int, int]]] = {}  # free places -> (row, its next column)
    free_sizes = 0  # the keys of with_room, as bits
    for window, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        fitting = free_sizes >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1  # the smallest that is large enough
            row, column = with_room[room].pop()
            if not with_room[room]:
                free_sizes ^= 1 << room
        else:
            room = max(narrowest, length)
            row, column = len(widths), 0
            widths.append(room)
        row_of[window], column_of[window] = row, column
        left = room - length
        if left:
            with_room.setdefault(left, []).append((row, column + length))
            free_sizes |= 1 << left
    by_width = numpy.argsort(widths, kind="stable")
    new_place = numpy.empty_like(by_width)
    new_place[by_width] = numpy.arange(len(widths))
    return Packing(new_place[row_of], numpy.array(column_of), numpy.array(widths)[by_width])
