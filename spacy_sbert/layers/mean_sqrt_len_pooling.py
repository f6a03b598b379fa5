"""Sum pooling, scaled by the square root of the number of wordpieces."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .mean_pooling import Pooling
from .row_sums import column, row_sums


def mean_sqrt_len_pooling() -> Pooling:
    """Add up the states of a row's wordpieces, special tokens included, and divide by the root of their number.

    y_r = sum_w x_rw / sqrt(n_r)

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Cer et al. 2018 (Universal Sentence Encoder), on its transformer.
    """
    return Model("mean_sqrt_len_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    sums = row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]
    roots = column(model.ops, model.ops.xp.sqrt(lengths), sums)

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / roots, lengths), lengths)

    return sums / roots, backprop
