"""Last-token pooling, for encoders that read from left to right."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .mean_pooling import Pooling


def last_token_pooling() -> Pooling:
    """Take the state of a row's last wordpiece, be it a special token or not.

    y_r = x_rn

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Neelakantan et al. 2022 (Text and Code Embeddings by Contrastive Pre-Training).
    """
    return Model("last_token_pooling", forward)


def forward(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, lasts = model.ops.reduce_last(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_last(d_pooled, lasts), lengths)

    return pooled, backprop
