"""Squares of errors, summed up to one number of whatever size."""

from typing import Literal

import numpy
from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module


def squares(errors: Floats1d | Floats2d, reduce: Literal["mean", "sum"] = "mean") -> float:
    """1/n sum_i e_i^2, or the sum: in the dtype of the errors, or in float64 where it is too large for that.

    errors (float array, NumPy or CuPy): e, n numbers.
    """
    square = get_array_module(errors).square
    with numpy.errstate(over="ignore"):  # it is looked at
        found = float(getattr(square(errors), reduce)())
    return found if numpy.isfinite(found) else float(getattr(square(errors.astype("float64")), reduce)())
