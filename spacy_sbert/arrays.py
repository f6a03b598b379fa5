"""Arrays of real numbers, read from all that holds them, and the state that NumPy computes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Real
from typing import Any, TypeVar, cast

import numpy
from numpy.typing import ArrayLike
from thinc.util import is_cupy_array, is_torch_array, to_numpy

from .errors import Errors
from .validation import short_repr

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])
# By name
Arrays = dict[str, numpy.ndarray]
NUMPY_DEFAULTS: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}
# Items of a list that NumPy reads without loss, or refuses
_PLAIN = (int, float, str, list, tuple, numpy.generic)


def numpy_state(**state: Any) -> Callable[[_FunctionT], _FunctionT]:
    """Compute with this state of `numpy.errstate`, whatever `numpy.seterr` says; a decorator."""
    # NumPy's own decorator is the quickest. That of NumPy 1 mixes up the states of threads.
    if int(numpy.__version__.partition(".")[0]) >= 2:
        return numpy.errstate(**state)

    def decorate(function: _FunctionT) -> _FunctionT:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with numpy.errstate(**state):
                return function(*args, **kwargs)

        return cast(_FunctionT, run)

    return decorate


numpy_defaults = numpy_state(**NUMPY_DEFAULTS)


def as_array(values: Any, name: str, expected: str) -> numpy.ndarray:
    """Return real numbers as an array on the CPU.

    Dtype, layout and memory map stay if NumPy has them.

    values: an array of NumPy or CuPy, a tensor, a table or a column, lists of numbers, or of such
        arrays.
    name (str): what messages call them. expected (str): what is wanted, for messages.
    RAISES (TypeError): for anything else, for example texts, complex numbers, sparse, masked or
        meta tensors.
    """
    if type(values) is numpy.ndarray and values.dtype.kind in "biuf":
        return values
    try:
        array = _read(values)
    except (TypeError, ValueError, RuntimeError, AttributeError, OverflowError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        are_texts = True
    else:
        if array.dtype.kind in "biuf":
            return array
        reason = f"its dtype is {array.dtype}"
        are_texts = array.dtype.kind in "OSU"
    value = " ".join(short_repr(values).split())
    message = f"Cannot compare {name} = {value} ({reason}): expected {expected}."
    if are_texts:
        message += (
            " Vectors of texts are encode(texts); Docs and Spans compare themselves: "
            "doc.similarity(other)."
        )
    raise TypeError(message)


def _read(values: Any) -> numpy.ndarray:
    array = numpy.asarray(_on_cpu(values))
    is_nullable = array.dtype == object and array.size
    if is_nullable and all(isinstance(item, Real) for item in array.flat):
        # A nullable column of a table without gaps
        return array.astype("float64")
    return array


def _on_cpu(values: Any) -> Any:
    """Return what NumPy can read without loss.

    RAISES (TypeError): if it would leave something out.
    """
    if isinstance(values, list | tuple):
        return _items_on_cpu(values)
    if is_cupy_array(values):
        return to_numpy(values)
    if is_torch_array(values):
        return _numbers_of_tensor(values)
    if hasattr(values, "toarray") or hasattr(values, "todense"):
        raise TypeError("it is sparse: make it dense, x.toarray()")
    if isinstance(values, numpy.ma.MaskedArray) and numpy.ma.is_masked(values):
        raise TypeError("it has masked numbers: fill them, x.filled(0), or leave their rows out")
    return values


def _items_on_cpu(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items of a list as NumPy can read them; a list of plain ones as it is."""
    kinds = set(map(type, items))
    if all(issubclass(kind, _PLAIN) for kind in kinds):
        return items
    return [item if isinstance(item, _PLAIN) else _on_cpu(item) for item in items]


def _numbers_of_tensor(tensor: Any) -> numpy.ndarray:
    if tensor.is_meta:
        raise TypeError("it has no numbers: it is on the device 'meta'")
    if tensor.is_nested or tensor.is_quantized or str(tensor.layout) != "torch.strided":
        raise TypeError("it is sparse, nested or quantized: make it dense, x.to_dense()")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        # NumPy has no bfloat16
        tensor = tensor.float()
    return tensor.numpy()


def as_rows(vectors: ArrayLike, name: str) -> numpy.ndarray:
    """Return vectors, (n, width), see as_array.

    RAISES (TypeError, ValueError): for other things, other shapes.
    """
    rows = as_array(vectors, name, "vectors, a float array of shape (n, width)")
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(Errors.NOT_ROWS.format(name=name, given=rows.shape))
    return rows


def checked(
    vectors: ArrayLike, name: str, dtype: str = "float32", *, start: int = 0
) -> numpy.ndarray:
    """Return vectors as a contiguous array on the CPU.

    vectors (float array of shape (n, width), see as_array): a vector a row. name (str): what
        messages call them.
    dtype (str): of the result. start (int): the number of the first row, in messages.
    RETURNS (float array of shape (n, width)).
    RAISES (ValueError): if the shape is another, there is no row, or a number is not finite.
    """
    given = as_rows(vectors, name)
    rows, fits = _converted(given, dtype)
    if not fits.all():
        first = int(fits.all(axis=1).argmin())
        raise ValueError(
            f"Row {start + first} of the {name} is not finite in {dtype}: it has NaN, infinity, or "
            "numbers too large or too small for it. Leave it out, or look for why the pipeline "
            "gives such a vector."
        )
    return rows


# Numbers out of range are found
@numpy_state(all="ignore")
def _converted(given: numpy.ndarray, dtype: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return contiguous rows of a dtype, and which numbers are finite in it, bool.

    Numbers of a row that loses digits are not.
    """
    rows = numpy.ascontiguousarray(given, dtype=dtype)
    fits = numpy.isfinite(rows)
    if given.dtype.kind == "f" and given.dtype.itemsize > rows.dtype.itemsize:
        number = numpy.finfo(dtype)
        largest = abs(given).max(axis=1, keepdims=True)
        # Smaller ones lose digits, or become 0
        fits &= (largest == 0) | (largest >= number.tiny / number.eps)
    return rows, fits
