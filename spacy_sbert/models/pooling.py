"""Pooling layers: token embeddings to one vector a sequence."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats1d, Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

STRETCH = 16  # as PyTorch adds up, so that pooling rounds as a pooling written in it


def _row_sums(ops: Ops, states: Floats2d, lengths: Ints1d) -> Floats2d:
    """Add up the states of each row's wordpieces.

    y_r = sum_s (sum_(w in s) x_rw), s = stretches of 16 wordpieces

    states: float (wordpieces, width), row by row. lengths: int (rows,), wordpieces in each; NumPy's, or the host waits
        for them.
    RETURNS (float (rows, width)): zeros for a row of none.
    SOURCE: Higham 1993, The Accuracy of Floating Point Summation, section 4, on blocks of fixed size.
    """
    if len(states) <= STRETCH:  # as those of a Span or Token
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    counts = to_numpy(lengths)
    n_stretches = -(-counts // STRETCH)
    if not len(counts) or n_stretches.max() <= 1:
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    held = counts > 0
    sizes = numpy.full(n_stretches.sum(), STRETCH, dtype="int32")
    sizes[n_stretches.cumsum()[held] - 1] -= (STRETCH * n_stretches - counts)[held]  # a row's last may be shorter
    of_stretches = ops.reduce_sum(states, ops.asarray1i(cast(Any, sizes)))
    return ops.reduce_sum(of_stretches, ops.asarray1i(cast(Any, n_stretches.astype("int32"))))


def column(ops: Ops, divisors: Ints1d | Floats1d, like: Floats2d) -> Floats2d:
    """Return what the sums of rows are divided by, of their dtype, (rows, 1); 1 where a row has no wordpieces."""
    return ops.xp.maximum(divisors, 1)[:, None].astype(like.dtype)


Pooling = Model[Ragged, Floats2d]


def mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces, special tokens included.

    y_r = sum_w x_rw / n_r

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row. Numbers of NumPy's are
        not waited for.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MEAN-strategy).
    """
    return Model("mean_pooling", _mean)


def _mean(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    sums = _row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_mean(d_pooled, lengths), lengths)

    return sums / column(model.ops, lengths, sums), backprop


def mean_sqrt_len_pooling() -> Pooling:
    """Add up the states of a row's wordpieces, special tokens included, and divide by the root of their number.

    y_r = sum_w x_rw / sqrt(n_r)

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Cer et al. 2018 (Universal Sentence Encoder), on its transformer.
    """
    return Model("mean_sqrt_len_pooling", _mean_sqrt_len)


def _mean_sqrt_len(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    sums = _row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]
    roots = column(model.ops, model.ops.xp.sqrt(lengths), sums)

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / roots, lengths), lengths)

    return sums / roots, backprop


def weighted_mean_pooling() -> Pooling:
    """Average the states of a row's wordpieces, special tokens included, weighted by their positions, from 1.

    y_r = sum_w w x_rw / sum_w w,   w = 1 .. n_r

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Muennighoff 2022 (SGPT).
    """
    return Model("weighted_mean_pooling", _weighted_mean)


def _weighted_mean(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    counts, lengths = to_numpy(states.lengths), cast(Any, model.ops.asarray1i(states.lengths))
    firsts = numpy.repeat(numpy.cumsum(counts) - counts, counts)
    places = numpy.arange(1, len(firsts) + 1) - firsts
    positions = model.ops.xp.asarray(places[:, None], dtype=states.dataXd.dtype)
    totals = column(model.ops, lengths * (lengths + 1) / 2, cast(Any, states.dataXd))

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / totals, lengths) * positions, lengths)

    return _row_sums(model.ops, cast(Any, states.dataXd * positions), states.lengths) / totals, backprop


def max_pooling() -> Pooling:
    """Take the maximum over a row's wordpieces, special tokens included.

    y_rd = max_w x_rwd

    The gradient goes to the first wordpiece that attains the maximum.

    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (MAX-strategy).
    """
    return Model("max_pooling", _max)


def _max(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, which = model.ops.reduce_max(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_max(d_pooled, which, lengths), lengths)

    return pooled, backprop


def cls_pooling() -> Pooling:
    """Take the state of a row's first wordpiece: the CLS token.

    y_r = x_r0

    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Reimers and Gurevych 2019, section 3 (CLS).
    """
    return Model("cls_pooling", _cls)


def _cls(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, starts_ends = model.ops.reduce_first(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_first(d_pooled, starts_ends), lengths)

    return pooled, backprop


def last_token_pooling() -> Pooling:
    """Take the state of a row's last wordpiece, be it a special token or not.

    y_r = x_rn

    Input: x, Ragged of float (wordpieces, width), with the number n of wordpieces in each row.
    Output: y, float (rows, width).
    SOURCE: Neelakantan et al. 2022 (Text and Code Embeddings by Contrastive Pre-Training).
    """
    return Model("last_token_pooling", _last_token)


def _last_token(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    lengths = model.ops.asarray1i(states.lengths)
    pooled, lasts = model.ops.reduce_last(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_last(d_pooled, lasts), lengths)

    return pooled, backprop


def concatenated_pooling(poolings: Sequence[Pooling]) -> Pooling:
    """Pool a row in several ways, and concatenate the results.

    y_r = [p_1(x_r); ...; p_k(x_r)]

    poolings (list[Model]): p, k layers, from a row's wordpieces to a vector.
    Input: x, Ragged of float (wordpieces, width), with the number of wordpieces in each row.
    Output: y, float (rows, k width).
    SOURCE: Reimers and Gurevych 2019, section 3, for each of the strategies.
    """
    return Model("concatenated_pooling", _concatenated, layers=list(poolings))


def _concatenated(model: Pooling, states: Ragged, is_train: bool) -> tuple[Floats2d, Callable]:
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    copy_of: Any = model.ops.xp.ascontiguousarray  # Thinc's reductions take no view
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        parts = zip(callbacks, pairwise(borders), strict=True)
        d_states = [back(copy_of(d_pooled[:, start:end])).dataXd for back, (start, end) in parts]
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop


POOLING = {
    "cls": cls_pooling,
    "max": max_pooling,
    "mean": mean_pooling,
    "mean_sqrt_len": mean_sqrt_len_pooling,
    "weightedmean": weighted_mean_pooling,
    "lasttoken": last_token_pooling,
}


def make_pooling(name: str) -> Pooling:
    """Return the pooling of a name.

    name (str): a name of POOLING, or several joined with "+", such as "cls+mean", whose results are concatenated.
    RAISES (ValueError): for an unknown name.
    """
    names = name.split("+")
    if any(one not in POOLING for one in names):
        raise ValueError(
            f"Unknown pooling '{name}': expected one of {', '.join(POOLING)}, or several joined with '+', "
            "such as cls+mean."
        )
    return POOLING[name]() if len(names) == 1 else concatenated_pooling([POOLING[one]() for one in names])


def stretch_pooling(name: str) -> Pooling:
    """Return the pooling of parts of a text, which have no special tokens of their own.

    It is the mean in place of "cls" and "lasttoken", else that of whole texts.

    name (str): see make_pooling.
    """
    return make_pooling("+".join("mean" if one in ("cls", "lasttoken") else one for one in name.split("+")))
