"""CLS pooling: the state of a row's first wordpiece."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .mean_pooling import Pooling


def cls_pooling() -> Pooling:
    """Take the state of a row's first wordpiece: the CLS token.

    y_r = x_r0

    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (CLS).
    """
    return Model("cls_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, starts_ends = model.ops.reduce_first(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_first(d_pooled, starts_ends), lengths)

    return pooled, backprop
