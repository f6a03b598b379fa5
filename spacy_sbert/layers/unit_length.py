"""Normalisation of vectors to unit length."""

from collections.abc import Callable

import numpy
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import get_array_module

from ..similarity import in_range

GRADIENT_BITS = 8  # that dy has to spare: a gradient up to 2^8 does not overflow


def unit_length() -> Model[Floats2d, Floats2d]:
    """Scale each row to Euclidean length 1; a zero row stays zero and gets no gradient.

    y_r = x_r / ||x_r||,   dx_r = (dy_r - (dy_r . y_r) y_r) / ||x_r||

    Nor does one get a gradient that is so short that 1 / ||x_r|| is hardly a number of its dtype.

    Input and output: float (rows, width).
    """
    return Model("unit_length", forward)


def forward(model: Model[Floats2d, Floats2d], X: Floats2d, is_train: bool) -> tuple[Floats2d, Callable]:
    xp = get_array_module(X)
    scaled, norms, exponents = in_range(X)
    inverse = xp.where(norms > 0, 1 / xp.where(norms > 0, norms, xp.ones_like(norms)), xp.zeros_like(norms))
    Y = scaled * inverse

    def backprop(dY: Floats2d) -> Floats2d:
        has_gradient = exponents > GRADIENT_BITS - numpy.finfo(inverse.dtype).maxexp
        of_x = xp.ldexp(inverse * has_gradient, -exponents * has_gradient)
        return (dY - (dY * Y).sum(axis=1, keepdims=True) * Y) * of_x

    return Y, backprop
