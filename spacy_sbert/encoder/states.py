"""The states of wordpieces as they pass from an encoder to pooling: flat, in use and in training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy
from thinc.backends import get_array_ops

Array: TypeAlias = Any  # of NumPy or CuPy
Backprop = Callable[[list[Array]], Any]  # takes the gradient of the values of each States


@dataclass
class States:
    """The states of some windows, one after another without padding.

    windows: int64 (k,), the numbers of the windows.
    lengths: int64 (k,), the wordpieces of each, special tokens included.
    values: float (sum of lengths, width), NumPy or CuPy, on the encoder's device.
    is_stretch: whether the windows are stretches of text without special tokens of their own.
    """

    windows: numpy.ndarray
    lengths: numpy.ndarray
    values: Array
    is_stretch: bool = False


def no_gradient(d_values: list[Array]) -> None:
    """The backprop of states that nothing is learned from."""


def in_places(values: Array, places: numpy.ndarray) -> tuple[Array, Callable[[Array], Array]]:
    """Rows of an array, and what takes their gradient to that of the whole array.

    values: float (n, width). places: int64 (k,), which rows; the gradients of one that is there twice add up.
    """
    ops = get_array_ops(values)
    index = ops.xp.asarray(places)

    def backprop(d_rows: Array) -> Array:
        d_values = values * 0
        ops.scatter_add(d_values, index, d_rows)
        return d_values

    return values[index], backprop
