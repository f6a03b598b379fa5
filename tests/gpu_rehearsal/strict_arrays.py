"""Doubles of CuPy's ndarray and module, on NumPy: what CuPy refuses is refused, and each look at
the host counts.

The rules are those of cupy/_core/core.pyx, _routines_indexing.pyx and _kernel.pyx, CuPy 14: no
implicit conversion to NumPy; NumPy's arrays enter by array and asarray, as an index, or as what an
index of integers is assigned; NumPy's scalars enter everywhere; elements and reductions are arrays
of no dimension. What needs to know a value on the host, or how many elements of a mask are true,
waits for the device: that is counted.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch.utils._pytree import tree_leaves

_LINES = (Path(__file__).parent / "cupy_names.txt").read_text(encoding="utf8").splitlines()
_WORDS = {word for line in _LINES if not line.startswith("#") for word in line.split()}
NAMES = {word for word in _WORDS if not word.startswith(".")}
NDARRAY_NAMES = {word[1:] for word in _WORDS if word.startswith(".")}
# Take what NumPy has
FROM_HOST = {"array", "asarray", "asanyarray"}
# Second argument: may be NumPy's
TAKE_INDICES = {
    "split",
    "array_split",
    "vsplit",
    "hsplit",
    "take",
    "repeat",
}
# Take numbers of the host alone
BY_SHAPE = {
    "zeros",
    "ones",
    "empty",
    "eye",
    "identity",
    "arange",
    "linspace",
}
# Beside the ufuncs
ELEMENTWISE = {"where", "clip", "dot", "matmul"}
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
# Size depends on values
LOOK = {
    "flatnonzero",
    "nonzero",
    "argwhere",
    "unique",
    "bincount",
    "extract",
    "compress",
}
# Answer without an array
PLAIN = {
    "can_cast",
    "isscalar",
    "ndim",
    "shape",
    "size",
    "result_type",
    "promote_types",
}
IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a "
    "NumPy array."
)


class Look(NamedTuple):
    """A value of the device that the host waited for: how, and the module and function that
    asked.
    """

    how: str
    module: str
    function: str


class Looks(list[Look]):
    """All of a while."""

    @property
    def of_package(self) -> list[Look]:
        """Without those of Thinc, whose kernels check the lengths given, and of other packages."""
        return [look for look in self if look.module.startswith("spacy_sbert.")]


LOOKS = Looks()
HERE = {__name__, "thinc.util", "numpy", "copy"}


def look(how: str) -> None:
    """Count one, under the first caller outside the double that asked for itself, as
    thinc.util.to_numpy does not.
    """
    frame: Any = sys._getframe(1)
    while frame.f_globals["__name__"] in HERE:
        frame = frame.f_back
    LOOKS.append(Look(how, frame.f_globals["__name__"], frame.f_code.co_name))


def _reads(how: str, convert: Callable) -> Callable:
    """A method that the host waits for."""

    def read(self: "StrictArray", *args: Any, **kwargs: Any) -> Any:
        look(how)
        return convert(self._array, *args, **kwargs)

    return read


class StrictArray(NDArrayOperatorsMixin):
    """A double of cupy.ndarray; what it holds is never to be had but by what counts."""

    __slots__ = ("_array",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: numpy.ndarray):
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        raise TypeError(IMPLICIT)

    def __array_ufunc__(self, ufunc: numpy.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc.__name__ not in NAMES:
            return NotImplemented
        out = kwargs.pop("out", ())
        return getattr(xp, ufunc.__name__)(*inputs, **({"out": out[0]} if out else {}), **kwargs)

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__module__ != "numpy" or func.__name__ not in NAMES:
            return NotImplemented
        return getattr(xp, func.__name__)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in NDARRAY_NAMES:
            raise AttributeError(f"'cupy.ndarray' object has no attribute '{name}'")
        found = getattr(self._array, name)
        if name in LOOK:
            look(name)
        if not callable(found):
            return _strict(found)
        return lambda *args, **kwargs: _strict(
            _quiet(found, *map(_bare, args), **_bare_values(kwargs))
        )

    # What the host waits for

    def get(self, stream: Any = None, order: str = "C", out: Any = None) -> numpy.ndarray:
        # Else there is nothing to wait for
        if self._array.size:
            look("get")
        return self._array.copy(order=order)

    __bool__ = _reads("bool", bool)
    __float__ = _reads("float", float)
    __int__ = _reads("int", int)
    __str__ = _reads("str", str)
    __format__ = _reads("format", format)
    item = _reads("item", numpy.ndarray.item)
    tolist = _reads("tolist", numpy.ndarray.tolist)
    tobytes = _reads("tobytes", numpy.ndarray.tobytes)
    __reduce__ = _reads("pickle", lambda array: (StrictArray, (array.copy(),)))

    # What stays on the device

    def __repr__(self) -> str:
        return f"StrictArray({self._array!r})"

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Any:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self._array)))

    def __copy__(self, memo: Any = None) -> "StrictArray":
        return StrictArray(self._array.copy())

    __deepcopy__ = __copy__

    def toDlpack(self) -> Any:
        return self._array.__dlpack__()

    def fill(self, value: Any) -> None:
        if isinstance(value, numpy.ndarray) and value.shape:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self._array.fill(_bare(value, from_host=True))

    def set(self, array: numpy.ndarray) -> None:
        if not isinstance(array, numpy.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        self._array[...] = array

    def scatter_add(self, slices: Any, value: Any) -> None:
        numpy.add.at(self._array, _index(slices)[0], _bare(value, from_host=True))

    def __getitem__(self, slices: Any) -> "StrictArray":
        index, _ = _index(slices)
        return StrictArray(self._array[index])

    def __setitem__(self, slices: Any, value: Any) -> None:
        index, is_plain = _index(slices)
        if isinstance(value, StrictArray):
            self._array[index] = value._array
        elif (
            isinstance(slices, slice) and slices == slice(None) and isinstance(value, numpy.ndarray)
        ):
            if value.dtype != self._array.dtype or value.shape != self._array.shape:
                raise ValueError(
                    "copying a numpy.ndarray to a cupy.ndarray by empty slice assignment must "
                    "ensure ..."
                )
            self._array[...] = value
        elif is_plain:
            self[slices].fill(value)
        else:
            # Indices bring what is assigned along
            self._array[index] = _bare(value, from_host=True)


class StrictModule(ModuleType):
    """A double of the module cupy: it has the functions that CuPy has, and they take what CuPy's
    take.
    """

    ndarray = StrictArray

    @staticmethod
    def asnumpy(array: Any) -> numpy.ndarray:
        return array.get() if isinstance(array, StrictArray) else numpy.asarray(array)

    def save(self, file: Any, array: Any) -> None:
        numpy.save(file, self.asnumpy(array))

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(f"module 'cupy' has no attribute '{name}'")
        found = getattr(numpy, name)
        if isinstance(found, type) or not callable(found) or name in PLAIN:
            return found
        return lambda *args, **kwargs: _call(name, found, args, kwargs)


def _call(name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return what a function of NumPy's gives, if CuPy's of this name takes the arguments."""
    if name in COMPARISONS:
        args = tuple(map(_without_dimension, args))
    if isinstance(function, numpy.ufunc) or name in ELEMENTWISE:
        _check_elementwise(name, (*args, *kwargs.values()))
    _check_counts(name, args)
    if name in LOOK or (name == "where" and len(args) == 1):
        look(name)
    bare = [_bare(given, from_host=_is_of_host(name, place)) for place, given in enumerate(args)]
    if name in FROM_HOST and isinstance(args[0], numpy.ndarray):
        # NumPy's asarray copies nothing, and what is on a device is a copy
        bare[0] = args[0].copy()
    found = _quiet(function, *bare, **_bare_values(kwargs))
    if isinstance(found, bool):
        # As of allclose
        found = numpy.asarray(found)
    return _strict(found)


def _without_dimension(given: Any) -> Any:
    """Return the number of an array of the host without a dimension, which CuPy compares."""
    if isinstance(given, numpy.ndarray) and not given.ndim:
        return given.item()
    return given


def _check_elementwise(name: str, arguments: tuple) -> None:
    """Refuse arrays of the host in a function of elements, and None where numbers are compared."""
    refused = (numpy.ndarray, list)
    if name in COMPARISONS:
        refused += (type(None),)
    for given in arguments:
        if isinstance(given, refused):
            raise TypeError(f"Unsupported type {type(given)}")


def _check_counts(name: str, args: tuple) -> None:
    """Refuse arrays of the device as a shape, and as places or counts."""
    if name in BY_SHAPE and any(isinstance(each, StrictArray) for each in tree_leaves(args)):
        raise TypeError("'cupy.ndarray' object cannot be interpreted as an integer")
    takes_counts = name in TAKE_INDICES and name != "take"
    if takes_counts and len(args) > 1 and isinstance(args[1], StrictArray):
        raise ValueError(f"cupy.ndarray cannot be given to {name} as places or counts")


def _is_of_host(name: str, place: int) -> bool:
    """Return whether a function takes an array of the host in this place."""
    return name in FROM_HOST or (name in TAKE_INDICES and place == 1)


def _quiet(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """No kernel warns."""
    with numpy.errstate(all="ignore"):
        return function(*args, **kwargs)


def _bare(given: Any, *, from_host: bool = False) -> Any:
    """What NumPy computes with in place of an argument."""
    if isinstance(given, StrictArray):
        return given._array
    if isinstance(given, numpy.ndarray) and not from_host:
        raise TypeError(f"Unsupported type {type(given)}")
    if isinstance(given, list | tuple):
        if 0 < sum(isinstance(each, StrictArray) for each in given) < len(given):
            raise TypeError(IMPLICIT)
        return type(given)(_bare(each, from_host=from_host) for each in given)
    return given


def _bare_values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: _bare(given) for key, given in kwargs.items()}


def _strict(found: Any) -> Any:
    """What CuPy returns in place of a result: arrays, also of what is a scalar of NumPy's."""
    if isinstance(found, numpy.ndarray | numpy.generic):
        return StrictArray(numpy.asarray(found))
    return type(found)(map(_strict, found)) if isinstance(found, list | tuple) else found


def _index(slices: Any) -> tuple[tuple, bool]:
    """What NumPy indexes with, never down to a scalar, and whether it is of slices and numbers
    alone.
    """
    given = slices if isinstance(slices, tuple) else (slices,)
    index = [
        _bare(_slice(each) if isinstance(each, slice) else each, from_host=True) for each in given
    ]
    arrays = [
        numpy.asarray(each)
        for each in index
        if isinstance(each, numpy.ndarray | list | bool | numpy.bool_)
    ]
    for mask in arrays:
        if mask.dtype == bool and mask.size:
            # How many are true
            look("mask")
    if not any(each is Ellipsis for each in index):
        index.append(Ellipsis)
    return tuple(index), not arrays


def _slice(given: slice) -> slice:
    """CuPy reads the ends of slices, although its arrays have no __index__."""
    ends = (given.start, given.stop, given.step)
    return slice(*(int(end) if isinstance(end, StrictArray) else end for end in ends))


xp = StrictModule("cupy")
