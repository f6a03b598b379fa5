"""Max pooling: the maximum of a row's wordpieces over time, dimension by dimension."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .mean_pooling import Pooling


def max_pooling() -> Pooling:
    """Take the maximum over a row's wordpieces, special tokens included.

    y_rd = max_w x_rwd

    The gradient goes to the first wordpiece that attains the maximum.

    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MAX-strategy).
    """
    return Model("max_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, which = model.ops.reduce_max(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_max(d_pooled, which, lengths), lengths)

    return pooled, backprop
