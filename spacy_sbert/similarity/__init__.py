"""Similarity and distance of paired vectors: the one definition that use, training and evaluation share."""

from typing import Any

import numpy
from thinc.util import get_array_module


def cosine(u: Any, v: Any) -> Any:
    """Cosine similarity of paired rows.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0 where u or v is the zero vector.

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the similarities, from -1 to 1 up to rounding.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    return (unit_length(u) * unit_length(v)).sum(axis=1)


def unit_length(rows: Any) -> Any:
    """x / ||x||, and the zero vector where x is it.

    rows (float array of shape (n, width), NumPy or CuPy): the vectors.
    RETURNS (float array of shape (n, width), of the same dtype and device): of length 1 or 0.
    """
    scaled, norms, _ = in_range(rows)
    xp = get_array_module(rows)
    return scaled / xp.where(norms == 0, xp.ones_like(norms), norms)


def in_range(rows: Any) -> tuple[Any, Any, Any]:
    """Rows as such whose squares can be summed: those too long or too short for it divided by a power of two.

    x_r = 2^e_r y_r

    rows (float array of shape (n, width), NumPy or CuPy): x, the vectors.
    RETURNS (float (n, width), float (n, 1), int32 (n, 1)): y, its norms ||y_r||, and e, which is 0 for all rows but
        those whose sum of squares overflows, or has lost digits to underflow.
    """
    xp = get_array_module(rows)
    rows = rows if rows.dtype.kind == "f" else rows.astype("float64")
    with numpy.errstate(over="ignore"):  # it is looked at
        squares = (rows * rows).sum(axis=1, keepdims=True)
    exponents = xp.zeros(squares.shape, dtype="int32")
    number = numpy.finfo(rows.dtype)
    odd = ~((squares >= number.tiny / number.eps) & (squares <= number.max))[:, 0]
    if rows.shape[1] and odd.any():
        exponents[odd] = xp.frexp(abs(rows[odd]).max(axis=1, keepdims=True))[1]
        rows = rows.copy()
        rows[odd] = xp.ldexp(rows[odd], -exponents[odd])
        squares[odd] = (rows[odd] * rows[odd]).sum(axis=1, keepdims=True)
    return rows, xp.sqrt(squares), exponents


def euclidean(u: Any, v: Any) -> Any:
    """Euclidean distance of paired rows.

    ||u - v|| = sqrt(sum_k (u_k - v_k)^2)

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the distances, at least 0.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    _, norms, exponents = in_range(u - v)
    return get_array_module(u).ldexp(norms, exponents)[:, 0]


def manhattan(u: Any, v: Any) -> Any:
    """Manhattan distance of paired rows.

    sum_k |u_k - v_k|

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the distances, at least 0.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    return get_array_module(u).abs(u - v).sum(axis=1)


def as_numpy(array: Any) -> numpy.ndarray:
    """The array on the CPU: itself when it is a NumPy array, a copy when it is a CuPy array."""
    return array if isinstance(array, numpy.ndarray) else array.get()
