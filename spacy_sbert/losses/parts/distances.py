"""Distances between vectors, with their derivatives; where one is not differentiable, 0 is taken."""

from collections.abc import Callable

from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ...layers.unit_length import unit_length
from ...similarity import cosine, euclidean, manhattan

Derivative = Callable[[Floats1d], list[Floats2d]]
Paired = Callable[[Floats2d, Floats2d], tuple[Floats1d, Derivative]]

unit_rows = unit_length()  # has neither parameters nor state


def paired_cosine(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """cos(u_i, v_i), and du, dv: the cosine is the dot product of the rows at unit length."""
    (unit_u, back_u), (unit_v, back_v) = (unit_rows(x, True) for x in (u, v))

    def backprop(d_similarity: Floats1d) -> list[Floats2d]:
        d = _column(d_similarity)
        return [back_u(d * unit_v), back_v(d * unit_u)]

    return cosine(u, v), backprop


def cosine_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """1 - cos(u_i, v_i), and du, dv."""
    similarity, backprop = paired_cosine(u, v)
    return 1 - similarity, lambda d_distance: backprop(-d_distance)


def euclidean_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """||u_i - v_i||, and du = (u - v) / ||u - v|| = -dv."""

    def backprop(d_distance: Floats1d) -> list[Floats2d]:
        direction, _ = unit_rows(u - v, True)
        du = _column(d_distance) * direction
        return [du, -du]

    return euclidean(u, v), backprop


def manhattan_distance(u: Floats2d, v: Floats2d) -> tuple[Floats1d, Derivative]:
    """sum_k |u_ik - v_ik|, and du = sign(u - v) = -dv."""

    def backprop(d_distance: Floats1d) -> list[Floats2d]:
        du = _column(d_distance) * get_array_module(u).sign(u - v)
        return [du, -du]

    return manhattan(u, v), backprop


DISTANCES: dict[str, Paired] = {
    "euclidean": euclidean_distance,
    "cosine": cosine_distance,
    "manhattan": manhattan_distance,
}


def farness(X: Floats2d, distance: str) -> Floats2d:
    """How far each row is from each, to find the nearest and the farthest.

    X (float (n, width)): the rows.
    distance (str): one of DISTANCES.
    RETURNS (float (n, n)): grows with the distance, and need not be the distance itself.
    """
    return _FARNESS[distance](X)


def _euclidean_farness(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    x = xp.asarray(X, dtype="float64")  # of long vectors that are near each other float32 would leave rounding alone
    longest = abs(x).max()
    x = x / xp.where(longest == 0, 1.0, longest)
    squares = (x * x).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2 * x @ x.T  # grows with the square of the distance


def _cosine_farness(X: Floats2d) -> Floats2d:
    unit, _ = unit_rows(X, True)
    return -unit @ unit.T


def _manhattan_farness(X: Floats2d) -> Floats2d:
    xp = get_array_module(X)
    far = xp.zeros((len(X), len(X)), dtype=X.dtype)
    for column in xp.asarray(X.T):  # (n, n) in memory, not (n, n, width)
        far += abs(column[:, None] - column[None, :])
    return far


def _column(d: Floats1d) -> Floats2d:
    """(n,) as (n, 1)."""
    return get_array_module(d).expand_dims(d, 1)


_FARNESS: dict[str, Callable[[Floats2d], Floats2d]] = {
    "euclidean": _euclidean_farness,
    "cosine": _cosine_farness,
    "manhattan": _manhattan_farness,
}
