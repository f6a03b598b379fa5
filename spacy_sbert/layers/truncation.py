"""Truncation of vectors to their first dimensions, which Matryoshka training makes vectors of their own."""

from collections.abc import Callable
from functools import partial

from thinc.api import Model
from thinc.types import Floats2d

from .errors import Errors


def truncation(width: int) -> Model[Floats2d, Floats2d]:
    """Keep the first dimensions of each vector.

    y_r = x_r[:width]

    width (int): of y.
    Input: x, float (rows, width of x). Output: y, float (rows, width).
    RAISES (ValueError): if x is narrower.
    SOURCE: Kusupati et al. 2022, section 3.
    """
    return Model("truncation", partial(forward, width=width))


def forward(model: Model[Floats2d, Floats2d], X: Floats2d, is_train: bool, *, width: int) -> tuple[Floats2d, Callable]:
    if X.shape[1] < width:
        raise ValueError(Errors.TRUNCATE_DIM.format(given=width, width=X.shape[1]))

    def backprop(dY: Floats2d) -> Floats2d:
        dX = model.ops.xp.zeros(X.shape, dtype=X.dtype)
        dX[:, :width] = dY
        return dX

    return model.ops.xp.ascontiguousarray(X[:, :width]), backprop
