"""Pooling of any Span or Token over its wordpieces in context, from what is kept of a Doc's wordpieces."""

from typing import Any

import numpy

from ..similarity import unit_length


def covering(states: numpy.ndarray, characters: numpy.ndarray, start: int, end: int) -> numpy.ndarray:
    """The states of the wordpieces that cover any of the characters [start, end).

    A wordpiece may reach over tokens ("cannot" is one wordpiece and two tokens): it counts in both, and once in a Span
    of both.

    states (float32 (wordpieces, width)): in context.
    characters (int32 (wordpieces, 2)): where each begins and ends.
    RETURNS (float32 (covering wordpieces, width)).
    """
    return states[(characters[:, 0] < end) & (characters[:, 1] > start)]


def stretch_vector(states: numpy.ndarray, pooling: str) -> numpy.ndarray:
    """The pooled wordpieces of a stretch that is no row; several poolings are concatenated.

    "cls" and "lasttoken" take the mean, since such a stretch has neither token of its own; the others are what they are
    of rows.

    states (float32 (wordpieces, width)): of the stretch, not none, in the order of the text.
    pooling (str): see make_pooling.
    RETURNS (float32 array of shape (width of the pooling,)).
    """
    return numpy.concatenate([_pooled(states, name) for name in pooling.split("+")])


def finished(vector: numpy.ndarray, width: int, normalize: bool) -> numpy.ndarray:
    """A pooled vector as the rows are: scaled to unit length, and truncated.

    width (int): to which it is truncated. normalize (bool): whether to scale it.
    """
    return (unit_length(vector[None])[0] if normalize else vector)[:width]


def _pooled(states: numpy.ndarray, name: str) -> numpy.ndarray:
    if name == "max":
        return states.max(axis=0)
    if name == "weightedmean":
        weights: Any = numpy.arange(1, len(states) + 1, dtype=states.dtype)
        return weights @ states / weights.sum()
    divisor = len(states) ** 0.5 if name == "mean_sqrt_len" else len(states)
    return states.sum(axis=0) / states.dtype.type(divisor)
