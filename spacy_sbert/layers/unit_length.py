"""Normalisation of vectors to unit length."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import get_array_module


def unit_length() -> Model[Floats2d, Floats2d]:
    """Scale each row to Euclidean length 1; a zero row stays zero and gets no gradient.

    y_r = x_r / ||x_r||,   dx_r = (dy_r - (dy_r . y_r) y_r) / ||x_r||

    Input and output: float (rows, width).
    """
    return Model("unit_length", forward)


def forward(model: Model[Floats2d, Floats2d], X: Floats2d, is_train: bool) -> tuple[Floats2d, Callable]:
    xp = get_array_module(X)
    norms = xp.sqrt((X * X).sum(axis=1, keepdims=True))
    inverse = xp.where(norms > 0, 1 / xp.where(norms > 0, norms, xp.ones_like(norms)), xp.zeros_like(norms))
    Y = X * inverse

    def backprop(dY: Floats2d) -> Floats2d:
        return (dY - (dY * Y).sum(axis=1, keepdims=True) * Y) * inverse

    return Y, backprop
