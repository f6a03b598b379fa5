"""Pooling of any Span of tokens over its wordpieces in context, from what is kept of each token."""

from dataclasses import dataclass

import numpy

Part = tuple[numpy.ndarray | None, int]


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

    values: numpy.ndarray
    counts: numpy.ndarray
    carried_at: numpy.ndarray
    carried_values: numpy.ndarray
    carried_counts: numpy.ndarray


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


def finish(parts: list[Part], pooling: str, normalize: bool) -> numpy.ndarray | None:
    """The vector of a stretch whose wordpieces were reduced in one or several parts; None if there are none.

    "max" takes the maximum; "mean" and "cls" the mean, since a stretch that is no row has no CLS token of its own.

    normalize (bool): whether the vector gets unit length, as the rows do.
    """
    held = [value for value, _ in parts if value is not None]
    if not held:
        return None
    if pooling == "max":
        vector = numpy.max(held, axis=0)
    else:
        vector = numpy.sum(held, axis=0) / numpy.float32(sum(count for _, count in parts))
    return vector / numpy.linalg.norm(vector) if normalize else vector
