"""The sigmoid of any number, without overflow."""

from typing import Any

import numpy
from thinc.util import get_array_module


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), and exp(x), which is the same, where exp(-x) is beyond all numbers.

    x (float array, NumPy or CuPy).
    RETURNS (float array of the same shape, dtype and device): from 0 to 1, NaN for NaN.
    """
    xp = get_array_module(x)
    lowest = 1 - float(numpy.log(numpy.finfo(x.dtype).max))
    ordinary = 1 / (1 + xp.exp(-xp.maximum(x, lowest)))
    return xp.where(x < lowest, xp.exp(xp.minimum(x, lowest)), ordinary)
