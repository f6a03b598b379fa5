"""Mean pooling: the average of a row's wordpieces."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .row_sums import column, row_sums

Pooling = Model[Ragged, Floats2d]


def mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces, special tokens included.

    y_r = sum_w x_rw / n_r

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row. Numbers of NumPy's are
        not waited for.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MEAN-strategy).
    """
    return Model("mean_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    sums = row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_mean(d_pooled, lengths), lengths)

    return sums / column(model.ops, lengths, sums), backprop
