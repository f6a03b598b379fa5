"""From the pooled windows of rows to one vector a row."""

from collections.abc import Callable
from typing import Any, cast

import numpy
from thinc.api import Model
from thinc.types import Floats2d


def row_vectors(
    unit_length: Model[Floats2d, Floats2d],
    windows: Floats2d,
    row_of: numpy.ndarray,
    weights: numpy.ndarray,
    *,
    normalize: bool,
    is_train: bool,
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Average the windows of each row, weighted by their wordpieces, so that a last window of a word or two counts for
    no more than that, and scale the average to length 1.

    y_r = sum_i w_i x_i / sum_i w_i over the windows i of row r, and 0 where no window has a wordpiece

    unit_length (Model): the layer that normalises.
    windows (float (windows, width)): x.
    row_of (int64 (windows,)): the row of each window; ascending, each row has one.
    weights (int64 (windows,)): w, the wordpieces in each window, special tokens left out.
    normalize (bool): whether to scale.
    RETURNS (float (rows, width), Callable): y, and from its gradient to that of x.
    """
    ops = unit_length.ops
    counts = numpy.bincount(row_of)
    totals = numpy.bincount(row_of, weights=weights)
    shares = ops.xp.asarray((weights / numpy.maximum(totals, 1)[row_of])[:, None], dtype=windows.dtype)
    vectors = windows * shares
    lengths = ops.asarray1i(cast(Any, counts))
    if len(counts) < len(row_of):
        vectors = ops.reduce_sum(vectors, lengths)
    backprop_unit: Callable[[Floats2d], Floats2d] | None = None
    if normalize:
        vectors, backprop_unit = unit_length(vectors, is_train)

    def backprop(d_vectors: Floats2d) -> Floats2d:
        d_rows = ops.xp.asarray(d_vectors, dtype=windows.dtype)
        d_rows = d_rows if backprop_unit is None else backprop_unit(d_rows)
        return (d_rows if len(counts) == len(row_of) else ops.backprop_reduce_sum(d_rows, lengths)) * shares

    return vectors, backprop
