"""Mean pooling: the average of a row's wordpieces."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Floats3d
from thinc.util import get_array_module

Pooling = Model[tuple[Floats3d, Floats2d], Floats2d]


def mean_pooling() -> Pooling:
    """Average the states of the wordpieces that the attention mask keeps, special tokens included.

    y_r = sum_w mask_rw x_rw / sum_w mask_rw

    Input: x, float (rows, wordpieces, width), and mask, (rows, wordpieces), 1 for a wordpiece and 0 for padding.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MEAN-strategy).
    """
    return Model("mean_pooling", forward)


def forward(model: Pooling, inputs: tuple[Floats3d, Floats2d], is_train: bool) -> tuple[Floats2d, Callable]:
    states, mask = inputs
    xp = get_array_module(states)
    weights = xp.asarray(mask, dtype=states.dtype)
    weights = weights / weights.sum(axis=1, keepdims=True)  # (rows, wordpieces)

    def backprop(d_pooled: Floats2d) -> Floats3d:
        return xp.expand_dims(weights, 2) * xp.expand_dims(d_pooled, 1)

    return xp.matmul(xp.expand_dims(weights, 1), states)[:, 0], backprop
