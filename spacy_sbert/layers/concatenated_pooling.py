"""Several poolings of the same wordpieces, one behind the other."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .mean_pooling import Pooling


def concatenated_pooling(poolings: Sequence[Pooling]) -> Pooling:
    """Pool a row in several ways, and concatenate the results.

    y_r = [p_1(x_r); ...; p_k(x_r)]

    poolings (list[Model]): p, k layers, from a row's wordpieces to a vector.
    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, k width).
    SOURCE: Reimers and Gurevych 2019, section 3, for each of the strategies.
    """
    return Model("concatenated_pooling", forward, layers=list(poolings))


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    copy_of: Any = model.ops.xp.ascontiguousarray  # Thinc's reductions take no view
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        parts = zip(callbacks, pairwise(borders), strict=True)
        d_states = [back(copy_of(d_pooled[:, start:end])).dataXd for back, (start, end) in parts]
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop
