"""Pooling of any Span or Token over its wordpieces in context, from what is kept of a Doc's wordpieces."""

import numpy

Part = tuple[numpy.ndarray | None, int]


def pool_wordpieces(states: numpy.ndarray, characters: numpy.ndarray, start: int, end: int, pooling: str) -> Part:
    """Sum (or maximum) and number of the wordpieces that cover any of the characters [start, end).

    A wordpiece may reach over tokens ("cannot" is one wordpiece and two tokens): it counts in both, and once in a Span
    of both.

    states (float32 (wordpieces, width)): in context.
    characters (int32 (wordpieces, 2)): where each begins and ends.
    RETURNS (float32 array of shape (width,), int): None and 0 where there is no wordpiece.
    """
    chosen = states[(characters[:, 0] < end) & (characters[:, 1] > start)]
    if not len(chosen):
        return None, 0
    return (chosen.max(axis=0) if pooling == "max" else chosen.sum(axis=0)), len(chosen)


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
