"""Position-weighted mean pooling, for encoders that read from left to right."""

from collections.abc import Callable
from typing import Any, cast

import numpy
from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import to_numpy

from .mean_pooling import Pooling
from .row_sums import column, row_sums


def weighted_mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces, special tokens included, weighted by their positions, from 1.

    y_r = sum_w w x_rw / sum_w w,   w = 1 .. n_r

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Muennighoff 2022 (SGPT).
    """
    return Model("weighted_mean_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    counts, lengths = to_numpy(states.lengths), cast(Any, model.ops.asarray1i(states.lengths))
    firsts = numpy.repeat(numpy.cumsum(counts) - counts, counts)
    places = numpy.arange(1, len(firsts) + 1) - firsts
    positions = model.ops.xp.asarray(places[:, None], dtype=states.dataXd.dtype)
    totals = column(model.ops, lengths * (lengths + 1) / 2, cast(Any, states.dataXd))

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / totals, lengths) * positions, lengths)

    return row_sums(model.ops, cast(Any, states.dataXd * positions), states.lengths) / totals, backprop
