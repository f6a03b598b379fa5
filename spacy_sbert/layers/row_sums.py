"""The sum over each row's wordpieces, in stretches: rounding does not grow with the length of the row."""

from typing import Any, cast

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d
from thinc.util import to_numpy

STRETCH = 16  # as PyTorch adds up, so that pooling rounds as a pooling written in it


def row_sums(ops: Ops, states: Floats2d, lengths: Ints1d) -> Floats2d:
    """Add up the states of each row's wordpieces.

    y_r = sum_s (sum_(w in s) x_rw), s = stretches of 16 wordpieces

    states: float (wordpieces, width), row by row. lengths: int (rows,), wordpieces in each; NumPy's, or the host waits
        for them.
    RETURNS (float (rows, width)): zeros for a row of none.
    SOURCE: Higham 1993, The Accuracy of Floating Point Summation, section 4, on blocks of fixed size.
    """
    if len(states) <= STRETCH:  # as those of a Span or Token
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    counts = to_numpy(lengths)
    n_stretches = -(-counts // STRETCH)
    if not len(counts) or n_stretches.max() <= 1:
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    held = counts > 0
    sizes = numpy.full(n_stretches.sum(), STRETCH, dtype="int32")
    sizes[n_stretches.cumsum()[held] - 1] -= (STRETCH * n_stretches - counts)[held]  # a row's last may be shorter
    of_stretches = ops.reduce_sum(states, ops.asarray1i(cast(Any, sizes)))
    return ops.reduce_sum(of_stretches, ops.asarray1i(cast(Any, n_stretches.astype("int32"))))


def column(ops: Ops, divisors: Any, like: Floats2d) -> Floats2d:
    """What the sums of rows are divided by, of their dtype, (rows, 1); 1 where a row has no wordpieces."""
    return ops.xp.maximum(divisors, 1)[:, None].astype(like.dtype)
