"""Squares of errors, summed up to one number of whatever size."""

from typing import Any, Literal

import numpy


def squares(errors: Any, reduce: Literal["mean", "sum"] = "mean") -> float:
    """1/n sum_i e_i^2, or the sum: in the dtype of the errors, or in float64 where it is too large for that.

    errors (float array, NumPy or CuPy): e, n numbers.
    """
    with numpy.errstate(over="ignore"):  # it is looked at
        found = float(getattr(errors * errors, reduce)())
    if numpy.isfinite(found):
        return found
    errors = errors.astype("float64")
    return float(getattr(errors * errors, reduce)())
