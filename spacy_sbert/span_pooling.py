"""Pooling of any Span of tokens over its wordpieces in context, from what is kept of each token."""

from dataclasses import dataclass

import numpy
from thinc.types import Floats1d, Floats2d, Ints1d

Part = tuple[Floats1d | None, int]


@dataclass
class TokenStates:
    """What pooling needs to know of each token to pool any Span: n tokens, of which m continue a wordpiece.

    A wordpiece belongs to the token it begins in. Where it reaches over into the next token ("cannot" is one
    wordpiece and two tokens), that token also carries it, so that a Span that begins there does not lose it and a
    Span over both counts it once.

    values: float32 (n, width), sum (or maximum) of the wordpieces that begin in the token.
    counts: int32 (n,), how many they are.
    carried_at: int32 (m,), the tokens into which a wordpiece reaches over.
    carried_values: float32 (m, width) and carried_counts: int32 (m,): the same of the wordpieces that do so.
    """

    values: Floats2d
    counts: Ints1d
    carried_at: Ints1d
    carried_values: Floats2d
    carried_counts: Ints1d


def reduce_tokens(tokens: TokenStates, start: int, end: int, pooling: str) -> Part:
    """Sum (or maximum) and number of the wordpieces in the tokens [start, end).

    RETURNS (float32 array of shape (width,), int): None and 0 where there is no wordpiece.
    """
    counts = tokens.counts[start:end]
    carried = numpy.flatnonzero(tokens.carried_at == start)[: max(end - start, 0)]
    values = numpy.concatenate([tokens.values[start:end][counts > 0], tokens.carried_values[carried]])
    count = int(counts.sum()) + int(tokens.carried_counts[carried].sum())
    if not count:
        return None, 0
    return (values.max(axis=0) if pooling == "max" else values.sum(axis=0)), count


def finish(parts: list[Part], pooling: str, normalize: bool) -> Floats1d | None:
    """The vector of a stretch whose wordpieces were reduced in one or several parts; None if there are none.

    "max" takes the maximum; "mean" and "cls" the mean, since a stretch that is no row has no CLS token of its own.

    normalize (bool): whether the vector gets unit length, as the rows do.
    """
    held = [value for value, count in parts if count]
    if not held:
        return None
    if pooling == "max":
        vector = numpy.max(held, axis=0)
    else:
        vector = numpy.sum(held, axis=0) / numpy.float32(sum(count for _, count in parts))
    return vector / numpy.linalg.norm(vector) if normalize else vector
