"""From the pooled windows of rows to one vector a row."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d


def row_vectors(
    ops: Ops,
    finishing: Sequence[Model[Floats2d, Floats2d]],
    windows: Floats2d,
    row_of: numpy.ndarray,
    weights: numpy.ndarray,
    *,
    is_train: bool,
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Average the windows of each row, weighted by their wordpieces, so that a last window of a word or two counts for
    no more than that, and take the average through the layers that finish a vector.

    y_r = f(sum_i w_i x_i / sum_i w_i) over the windows i of row r, and 0 where no window has a wordpiece

    finishing (list[Model]): f, one after another: a dense layer, normalisation, truncation, or nothing.
    windows (float (windows, width)): x.
    row_of (int64 (windows,)): the row of each window; ascending, each row has one.
    weights (int64 (windows,)): w, the wordpieces in each window, special tokens left out.
    RETURNS (float (rows, width), Callable): y, and from its gradient to that of x.
    """
    counts = numpy.bincount(row_of)
    totals = numpy.bincount(row_of, weights=weights)
    shares = ops.xp.asarray((weights / numpy.maximum(totals, 1)[row_of])[:, None], dtype=windows.dtype)
    vectors = windows * shares
    lengths = ops.asarray1i(cast(Any, counts))
    if len(counts) < len(row_of):
        vectors = ops.reduce_sum(vectors, lengths)
    callbacks = []
    for layer in finishing:
        vectors, callback = layer(vectors, is_train)
        callbacks.append(callback)
    empty = numpy.flatnonzero(totals == 0)
    if len(empty):  # a dense layer makes a vector of nothing, too
        vectors = vectors.copy()
        vectors[empty] = 0

    def backprop(d_vectors: Floats2d) -> Floats2d:
        d_rows = ops.xp.array(d_vectors, dtype=windows.dtype)  # a copy
        d_rows[empty] = 0
        for callback in reversed(callbacks):
            d_rows = callback(d_rows)
        return (d_rows if len(counts) == len(row_of) else ops.backprop_reduce_sum(d_rows, lengths)) * shares

    return vectors, backprop
