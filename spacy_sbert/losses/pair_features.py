"""Features of two vectors for a classifier or a regressor of pairs: u, v, |u - v| and u * v."""

from collections.abc import Sequence

from thinc.types import Floats2d
from thinc.util import get_array_module

from ..similarity import RowsT

PARTS = ("u", "v", "abs_diff", "product")
SYMMETRIC = ("abs_diff", "product")  # the same with u and v exchanged


def concatenated(u: RowsT, v: RowsT, *, parts: Sequence[str]) -> RowsT:
    """Concatenate parts of paired rows, such as [u_i; v_i; |u_i - v_i|].

    u, v (float (n, width), NumPy or CuPy): the vectors of the pairs.
    parts (Sequence[str]): some of PARTS; abs_diff is |u - v|, product u * v.
    RETURNS (float (n, len(parts) * width)): the features.
    SOURCE: Reimers and Gurevych 2019, Table 6; Tai et al. 2015, Improved Semantic Representations From Tree-Structured
        LSTM Networks, section 4.2, for the symmetric ones.
    """
    values = {"u": lambda: u, "v": lambda: v, "abs_diff": lambda: abs(u - v), "product": lambda: u * v}
    return get_array_module(u).concatenate([values[part]() for part in parts], axis=1)


def backprop_concatenated(u: Floats2d, v: Floats2d, *, parts: Sequence[str], d_features: Floats2d) -> list[Floats2d]:
    """Return du and dv, from the derivative of the features, float (n, len(parts) * width)."""
    pieces = get_array_module(u).split(d_features, len(parts), axis=1)
    shares = [_backprop_part(u, v, part, d) for part, d in zip(parts, pieces, strict=True)]
    return [sum(of_member[1:], start=of_member[0]) for of_member in zip(*shares, strict=True)]


def _backprop_part(u: Floats2d, v: Floats2d, part: str, d: Floats2d) -> tuple[Floats2d, Floats2d]:
    xp = get_array_module(u)
    if part == "abs_diff":
        d = d * xp.sign(u - v)
        return d, -d
    if part == "product":
        return d * v, d * u
    zero = xp.zeros_like(d)
    return (d, zero) if part == "u" else (zero, d)
