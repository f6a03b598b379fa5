"""What a classifier of pairs sees of two vectors."""

from collections.abc import Callable, Sequence
from typing import Any

from thinc.types import Floats2d
from thinc.util import get_array_module

PairDerivative = Callable[[Any], list[Any]]


def _u(u: Any, v: Any) -> tuple[Any, PairDerivative]:
    return u, lambda d: [d, get_array_module(d).zeros_like(d)]


def _v(u: Any, v: Any) -> tuple[Any, PairDerivative]:
    return v, lambda d: [get_array_module(d).zeros_like(d), d]


def _abs_diff(u: Any, v: Any) -> tuple[Any, PairDerivative]:
    sign = get_array_module(u).sign(u - v)
    return abs(u - v), lambda d: [d * sign, -d * sign]


def _product(u: Any, v: Any) -> tuple[Any, PairDerivative]:
    return u * v, lambda d: [d * v, d * u]


PARTS: dict[str, Callable[[Any, Any], tuple[Any, PairDerivative]]] = {
    "u": _u,
    "v": _v,
    "abs_diff": _abs_diff,
    "product": _product,
}


def concatenate_parts(u: Floats2d, v: Floats2d, parts: Sequence[str]) -> tuple[Floats2d, PairDerivative]:
    """The parts side by side.

    u, v (float (n, width)): the vectors of the pairs.
    parts (Sequence[str]): some of PARTS.
    RETURNS (float (n, len(parts) * width), Callable): the features, and from their derivative du and dv.
    SOURCE: Reimers and Gurevych 2019, Table 6.
    """
    xp = get_array_module(u)
    values, derivatives = zip(*(PARTS[part](u, v) for part in parts), strict=True)

    def backprop(d_features: Any) -> list[Any]:
        pieces = xp.split(d_features, len(parts), axis=1)
        shares = [derivative(d) for derivative, d in zip(derivatives, pieces, strict=True)]
        return [sum(share[member] for share in shares) for member in (0, 1)]

    return xp.concatenate(values, axis=1), backprop
