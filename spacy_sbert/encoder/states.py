"""The states of wordpieces as they pass from an encoder to pooling: flat, in use and in training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy

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
