"""Arrays of vectors, a vector a row, checked before they are compared."""

import numpy
from numpy.typing import ArrayLike
from thinc.util import is_cupy_array, to_numpy

from ..errors.checks import shown
from .errors import Errors


def checked(vectors: ArrayLike, name: str, dtype: str = "float32") -> numpy.ndarray:
    """The vectors as a contiguous array on the CPU.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row. name (str): what messages call them.
    dtype (str): of the result.
    RETURNS (float array of shape (n, width)).
    RAISES (ValueError): if the shape is another, there is no row, or a number is not finite.
    """
    rows = numpy.ascontiguousarray(as_rows(vectors, name), dtype=dtype)
    check_finite(rows, name)
    return rows


def as_rows(vectors: ArrayLike, name: str) -> numpy.ndarray:
    """The vectors as an array on the CPU, of whatever dtype and layout they have.

    RAISES (ValueError): if the shape is another than (n, width), or there is no row. (TypeError): if these are no
        numbers.
    """
    rows = numpy.asarray(to_numpy(vectors) if is_cupy_array(vectors) else vectors)
    if rows.dtype.kind not in "biuf":
        raise TypeError(Errors.NOT_NUMBERS.format(name=name, given=shown(vectors)))
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(Errors.NOT_ROWS.format(name=name, given=rows.shape))
    return rows


def check_finite(rows: numpy.ndarray, name: str, start: int = 0) -> None:
    """RAISES (ValueError): if a number of these rows, of which the first is row `start` to the user, is not finite."""
    finite = numpy.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(Errors.ROW_NOT_FINITE.format(name=name, row=start + int(finite.argmin())))


def check_count(given: int, most: int, what: str, name: str = "k") -> None:
    """RAISES (ValueError): if what is asked for is not a whole number from 1 to `most`."""
    if isinstance(given, bool) or not (isinstance(given, int | numpy.integer) and 1 <= given <= most):
        raise ValueError(Errors.BAD_COUNT.format(given=given, what=what, most=most, name=name))
