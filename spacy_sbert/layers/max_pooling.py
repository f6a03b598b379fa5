"""Max pooling: the maximum of a row's wordpieces over time, dimension by dimension."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Floats3d
from thinc.util import get_array_module

from .mean_pooling import Pooling


def max_pooling() -> Pooling:
    """Take the maximum over the wordpieces that the attention mask keeps, special tokens included.

    y_rd = max over w with mask_rw = 1 of x_rwd

    The gradient goes to the first wordpiece that attains the maximum.

    Input: x, float (rows, wordpieces, width), and mask, (rows, wordpieces), 1 for a wordpiece and 0 for padding.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MAX-strategy).
    """
    return Model("max_pooling", forward)


def forward(model: Pooling, inputs: tuple[Floats3d, Floats2d], is_train: bool) -> tuple[Floats2d, Callable]:
    states, mask = inputs
    xp = get_array_module(states)
    kept = xp.asarray(mask, dtype=bool)[:, :, None]
    which = xp.where(kept, states, xp.asarray(-xp.inf, dtype=states.dtype)).argmax(axis=1)  # (rows, width)
    rows = xp.arange(states.shape[0])[:, None]
    dims = xp.arange(states.shape[2])[None, :]

    def backprop(d_pooled: Floats2d) -> Floats3d:
        d_states = xp.zeros_like(states)
        d_states[rows, which, dims] = d_pooled
        return d_states

    return states[rows, which, dims], backprop
