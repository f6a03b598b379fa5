"""Similarity and distance of paired vectors: the one definition that use, training and evaluation share."""

from typing import Protocol, TypeVar, cast, overload

import numpy
from thinc.types import Floats1d, Floats2d, Ints2d
from thinc.util import get_array_module

RowsT = TypeVar("RowsT", numpy.ndarray, Floats2d)  # float (n, width), NumPy or CuPy


class OfPairs(Protocol):
    """A number for each pair of rows, of their kind of array."""

    @overload
    def __call__(self, u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray: ...
    @overload
    def __call__(self, u: Floats2d, v: Floats2d) -> Floats1d: ...


def _of_pairs(function: object) -> OfPairs:
    return cast(OfPairs, function)


@_of_pairs
def cosine(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Cosine similarity of paired rows.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0 where u or v is the zero vector.

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the similarities, from -1 to 1 up to rounding.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    return (unit_length(u) * unit_length(v)).sum(axis=1)


@_of_pairs
def euclidean(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Euclidean distance of paired rows.

    ||u - v|| = sqrt(sum_k (u_k - v_k)^2)

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the distances, at least 0.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    return lengths(u - v)


@_of_pairs
def manhattan(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Manhattan distance of paired rows.

    sum_k |u_k - v_k|

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the distances, at least 0.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    return abs(u - v).sum(axis=1)


def lengths(rows: numpy.ndarray) -> numpy.ndarray:
    """||x||, the Euclidean length of each row, float (n,).

    rows (float array of shape (n, width), NumPy or CuPy): the vectors.
    """
    _, norms, exponents = in_range(rows)
    return get_array_module(rows).ldexp(norms, exponents)[:, 0]


def unit_length(rows: RowsT) -> RowsT:
    """x / ||x||, and the zero vector where x is it.

    rows (float array of shape (n, width), NumPy or CuPy): the vectors.
    RETURNS (float array of shape (n, width), of the same dtype and device): of length 1 or 0.
    """
    scaled, norms, _ = in_range(rows)
    xp = get_array_module(rows)
    return scaled / xp.where(norms == 0, xp.ones_like(norms), norms)


def in_range(rows: RowsT) -> tuple[RowsT, RowsT, Ints2d]:
    """Rows as such whose squares can be summed: those too long or too short for it divided by a power of two.

    x_r = 2^e_r y_r

    rows (float array of shape (n, width), NumPy or CuPy): x, the vectors.
    RETURNS (float (n, width), float (n, 1), int32 (n, 1)): y, its norms ||y_r||, and e, which is 0 for all rows but
        those whose sum of squares overflows, or has lost digits to underflow.
    """
    xp = get_array_module(rows)
    scaled = xp.asarray(rows, dtype=None if numpy.dtype(rows.dtype).kind == "f" else "float64")
    with numpy.errstate(over="ignore"):  # it is looked at
        squares = (scaled * scaled).sum(axis=1, keepdims=True)
    exponents = xp.zeros(squares.shape, dtype="int32")
    number = numpy.finfo(scaled.dtype)
    odd = ~((squares >= number.tiny / number.eps) & (squares <= number.max))
    chosen = numpy.flatnonzero(odd) if xp is numpy else slice(len(odd))  # of a GPU, which are odd is not waited for
    if scaled[chosen].size:
        exponents[chosen] = xp.frexp(abs(scaled[chosen]).max(axis=1, keepdims=True))[1] * odd[chosen]
        scaled = scaled.copy()
        scaled[chosen] = xp.ldexp(scaled[chosen], -exponents[chosen])
        squares[chosen] = (scaled[chosen] * scaled[chosen]).sum(axis=1, keepdims=True)
    return scaled, xp.sqrt(squares), exponents
