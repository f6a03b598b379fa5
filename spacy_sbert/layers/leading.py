"""The wordpieces at the start of rows that are encoded and not pooled: a prompt that only steers the encoder."""

from collections.abc import Callable
from typing import Any, cast

import numpy
from thinc.types import Floats2d


def without_leading(
    states: Floats2d, lengths: numpy.ndarray, lead: int
) -> tuple[Floats2d, numpy.ndarray, Callable[[Floats2d], Floats2d]]:
    """Drop the first wordpieces of each window, but never all of them.

    states (float (wordpieces, width)): of windows, one after another.
    lengths (int (windows,)): the wordpieces in each.
    lead (int): how many to drop of each.
    RETURNS (float (kept wordpieces, width), int (windows,), Callable): the states and lengths that are left, and from
        the gradient of these states to that of all.
    """
    dropped = numpy.minimum(lead, lengths - 1)
    places = numpy.arange(len(states)) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
    kept = numpy.flatnonzero(places >= numpy.repeat(dropped, lengths))

    def backprop(d_kept: Floats2d) -> Floats2d:
        d_states: Any = states * 0
        d_states[kept] = d_kept
        return d_states

    return cast(Any, states)[kept], lengths - dropped, backprop
