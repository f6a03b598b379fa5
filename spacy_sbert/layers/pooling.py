"""Poolings: from the states of a row's wordpieces, special tokens included, to one vector.

Each is a layer from x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row, to y, float
(rows, width).
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from .errors import Errors
from .row_sums import column, row_sums

Pooling = Model[Ragged, Floats2d]
Pooled = tuple[Floats2d, Callable[[Floats2d], Ragged]]


def cls_pooling() -> Pooling:
    """Take the state of a row's first wordpiece: the CLS token.

    y_r = x_r0

    SOURCE: Reimers and Gurevych 2019, section 3 (CLS).
    """
    return Model("cls_pooling", _first)


def last_token_pooling() -> Pooling:
    """Take the state of a row's last wordpiece, be it a special token or not, for encoders that read rightwards.

    y_r = x_rn

    SOURCE: Neelakantan et al. 2022 (Text and Code Embeddings by Contrastive Pre-Training).
    """
    return Model("last_token_pooling", _last)


def max_pooling() -> Pooling:
    """Take the maximum over a row's wordpieces; the gradient goes to the first that attains it.

    y_rd = max_w x_rwd

    SOURCE: Reimers and Gurevych 2019, section 3 (MAX-strategy).
    """
    return Model("max_pooling", _max)


def mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces.

    y_r = sum_w x_rw / n_r

    SOURCE: Reimers and Gurevych 2019, section 3 (MEAN-strategy).
    """
    return Model("mean_pooling", _mean)


def mean_sqrt_len_pooling() -> Pooling:
    """Add up the states of a row's wordpieces, and divide by the root of their number.

    y_r = sum_w x_rw / sqrt(n_r)

    SOURCE: Cer et al. 2018 (Universal Sentence Encoder), on its transformer.
    """
    return Model("mean_sqrt_len_pooling", _mean_sqrt_len)


def weighted_mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces, weighted by their positions: for encoders that read from left to right.

    y_r = sum_w w x_rw / sum_w w,   w = 1 .. n_r

    SOURCE: Muennighoff 2022 (SGPT).
    """
    return Model("weighted_mean_pooling", _weighted_mean)


def concatenated_pooling(poolings: Sequence[Pooling]) -> Pooling:
    """Pool a row in several ways, and concatenate the results.

    y_r = [p_1(x_r); ...; p_k(x_r)], float (rows, k width)

    poolings (list[Model]): p, k of them.
    SOURCE: Reimers and Gurevych 2019, section 3, for each of the strategies.
    """
    return Model("concatenated_pooling", _concatenated, layers=list(poolings))


POOLING = {
    "cls": cls_pooling,
    "max": max_pooling,
    "mean": mean_pooling,
    "mean_sqrt_len": mean_sqrt_len_pooling,
    "weightedmean": weighted_mean_pooling,
    "lasttoken": last_token_pooling,
}


def make_pooling(name: str) -> Pooling:
    """The pooling of a name.

    name (str): a name of POOLING, or several joined with "+", such as "cls+mean", whose results are concatenated.
    RAISES (ValueError): for an unknown name.
    """
    names = name.split("+")
    if any(one not in POOLING for one in names):
        raise ValueError(Errors.UNKNOWN_POOLING.format(given=name, expected=", ".join(POOLING)))
    return POOLING[name]() if len(names) == 1 else concatenated_pooling([POOLING[one]() for one in names])


def stretch_pooling(name: str) -> Pooling:
    """The pooling of stretches of text that are not rows, and so have no special tokens of their own: the mean in place
    of "cls" and "lasttoken", else that of rows.

    name (str): see make_pooling.
    """
    return make_pooling("+".join("mean" if one in ("cls", "lasttoken") else one for one in name.split("+")))


def _first(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, lengths = model.ops, states.lengths
    pooled, starts_ends = ops.reduce_first(states.dataXd, lengths)  # type: ignore[arg-type]
    return pooled, lambda d_pooled: Ragged(ops.backprop_reduce_first(d_pooled, starts_ends), lengths)


def _last(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, lengths = model.ops, states.lengths
    pooled, lasts = ops.reduce_last(states.dataXd, lengths)  # type: ignore[arg-type]
    return pooled, lambda d_pooled: Ragged(ops.backprop_reduce_last(d_pooled, lasts), lengths)


def _max(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, lengths = model.ops, states.lengths
    pooled, which = ops.reduce_max(states.dataXd, lengths)  # type: ignore[arg-type]
    return pooled, lambda d_pooled: Ragged(ops.backprop_reduce_max(d_pooled, which, lengths), lengths)


def _mean(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, lengths = model.ops, states.lengths
    sums = row_sums(ops, states.dataXd, lengths)  # type: ignore[arg-type]
    mean = sums / column(ops, lengths, sums)
    return mean, lambda d_pooled: Ragged(ops.backprop_reduce_mean(d_pooled, lengths), lengths)


def _mean_sqrt_len(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, lengths = model.ops, states.lengths
    sums = row_sums(ops, states.dataXd, lengths)  # type: ignore[arg-type]
    roots = column(ops, ops.xp.sqrt(lengths), sums)
    return sums / roots, lambda d_pooled: Ragged(ops.backprop_reduce_sum(d_pooled / roots, lengths), lengths)


def _weighted_mean(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    ops, xp, lengths, x = model.ops, model.ops.xp, states.lengths, states.dataXd
    firsts = xp.repeat(xp.cumsum(lengths) - lengths, lengths.tolist())
    positions = (xp.arange(1, len(firsts) + 1) - firsts)[:, None].astype(x.dtype)
    totals = column(ops, lengths * (lengths + 1) / 2, x)  # type: ignore[arg-type]
    mean = row_sums(ops, x * positions, lengths) / totals
    return mean, lambda d_pooled: Ragged(ops.backprop_reduce_sum(d_pooled / totals, lengths) * positions, lengths)


def _concatenated(model: Pooling, states: Ragged, is_train: bool) -> Pooled:
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        parts = zip(callbacks, pairwise(borders), strict=True)
        own = model.ops.xp.ascontiguousarray  # Thinc's reductions take no view
        d_states = [back(own(d_pooled[:, start:end])).dataXd for back, (start, end) in parts]
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop
