"""CLS pooling: the state of a row's first wordpiece."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Floats3d
from thinc.util import get_array_module

from .mean_pooling import Pooling


def cls_pooling() -> Pooling:
    """Take the state of the first wordpiece that the attention mask keeps: the CLS token.

    y_r = x_rw, w the first with mask_rw = 1 (0 unless the tokenizer pads on the left)

    Input: x, float (rows, wordpieces, width), and mask, (rows, wordpieces), 1 for a wordpiece and 0 for padding.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (CLS).
    """
    return Model("cls_pooling", forward)


def forward(model: Pooling, inputs: tuple[Floats3d, Floats2d], is_train: bool) -> tuple[Floats2d, Callable]:
    states, mask = inputs
    xp = get_array_module(states)
    rows = xp.arange(states.shape[0])
    first = xp.asarray(mask, dtype=bool).argmax(axis=1)

    def backprop(d_pooled: Floats2d) -> Floats3d:
        d_states = xp.zeros_like(states)
        d_states[rows, first] = d_pooled
        return d_states

    return states[rows, first], backprop
