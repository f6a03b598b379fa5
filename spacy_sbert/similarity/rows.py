"""Arrays of vectors, a vector a row, checked before they are compared."""

import numpy
from numpy.typing import ArrayLike
from thinc.util import is_cupy_array, to_numpy

from .errors import Errors


def checked(vectors: ArrayLike, name: str, dtype: str = "float32") -> numpy.ndarray:
    """The vectors as a contiguous array on the CPU.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row. name (str): what messages call them.
    dtype (str): of the result.
    RETURNS (float array of shape (n, width)).
    RAISES (ValueError): if the shape is another, there is no row, or a number is not finite.
    """
    rows = numpy.ascontiguousarray(to_numpy(vectors) if is_cupy_array(vectors) else vectors, dtype=dtype)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(Errors.NOT_ROWS.format(name=name, given=numpy.shape(vectors)))
    finite = numpy.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(Errors.ROW_NOT_FINITE.format(name=name, row=int(finite.argmin())))
    return rows


def check_count(given: int, most: int, what: str, name: str = "k") -> None:
    """RAISES (ValueError): if what is asked for is not a whole number from 1 to `most`."""
    if isinstance(given, bool) or not (isinstance(given, int | numpy.integer) and 1 <= given <= most):
        raise ValueError(Errors.BAD_COUNT.format(given=given, what=what, most=most, name=name))
