"""Pooling of any Span or Token over its wordpieces in context, from what is kept of a Doc's wordpieces."""

from functools import cache
from typing import cast

import numpy
from thinc.types import Floats2d, Ints1d, Ragged

from ..layers.mean_pooling import Pooling
from ..layers.pooling import stretch_pooling
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
    """The pooled wordpieces of a stretch that is not a row, on the CPU; see stretch_pooling.

    states (float32 (wordpieces, width)): of the stretch, not none, in the order of the text.
    pooling (str): see make_pooling.
    RETURNS (float32 array of shape (width of the pooling,)).
    """
    lengths = numpy.array([len(states)], dtype="int32")
    row = Ragged(cast(Floats2d, numpy.ascontiguousarray(states)), cast(Ints1d, lengths))
    return cast(numpy.ndarray, _pooling_of_stretches(pooling).predict(row))[0]


def finished(vector: numpy.ndarray, width: int, normalize: bool) -> numpy.ndarray:
    """A pooled vector as the rows are: scaled to unit length, and truncated.

    width (int): to which it is truncated. normalize (bool): whether to scale it.
    """
    return (unit_length(vector[None])[0] if normalize else vector)[:width]


@cache
def _pooling_of_stretches(name: str) -> Pooling:
    layer = stretch_pooling(name)
    layer.to_cpu()  # where the vectors on a Doc lie
    return layer
