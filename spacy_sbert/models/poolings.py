"""The poolings, and the one place where a pooling is registered.

Each makes one vector of the states of a sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar, cast

import numpy
from thinc.api import Model, Ops, chain
from thinc.types import Floats1d, Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from .heads import VectorsAndBackprop
from .ragged import ragged_arange

# A layer from the states of sequences, float (wordpieces, width), to their vectors, float (n,
# width)
Pooling = Model[Ragged, Floats2d]
# A function of ops, x, the wordpieces of each sequence, and how many at its start were left out
_Rule = Callable[[Ops, Floats2d, Ints1d, int], VectorsAndBackprop]
_RuleT = TypeVar("_RuleT", bound=_Rule)


@dataclass(frozen=True)
class PoolingKind:
    """One kind of pooling, as it is registered.

    rule (Callable): from ops, the states x, float (wordpieces, width), the wordpieces of each
        sequence, int (n,), and how many at the start of each were left out, to the vectors, float
        (n, width), and what takes their gradient to that of x.
    layer (str): the name of its Thinc layer, a part of saved pipelines.
    of_text (str): the pooling of a part of a text that has no special tokens of its own.
    flag, mode (str): how the config.json of sentence-transformers' Pooling module names it, by a
        flag of its own or among several; "" if it is unknown there.
    """

    rule: _Rule
    layer: str
    of_text: str
    flag: str = ""
    mode: str = ""


# The keys are the names that configs use; those with a flag stand in the order in which
# sentence-transformers concatenates them
POOLING: dict[str, PoolingKind] = {}


def register_pooling(
    name: str, *, layer: str = "", of_text: str = "", flag: str = "", mode: str = ""
) -> Callable[[_RuleT], _RuleT]:
    """Register a rule as the pooling of a name: the one place where a pooling is made known.

    For the arguments see PoolingKind. By default the layer is called after the pooling, and a part
    of a text is pooled as the text is: a rule that relies on special tokens needs of_text =
    "mean". Each sequence has at least one wordpiece, and their numbers are an array of NumPy.
    RAISES (ValueError): if the name is taken, or has a "+", which joins several.

    Example:
        @register_pooling("second")
        def second(ops, x, n, n_lead):
            seconds = numpy.cumsum(n) - n + numpy.minimum(n - 1, 1)

            def backprop(d_y):
                d_x = ops.alloc2f(*x.shape)
                d_x[seconds] = d_y
                return d_x

            return x[seconds], backprop

    """
    if name in POOLING or "+" in name:
        raise ValueError(f"Cannot register the pooling '{name}': choose another name, without '+'.")

    def register(rule: _RuleT) -> _RuleT:
        POOLING[name] = PoolingKind(rule, layer or f"{name}_pooling", of_text or name, flag, mode)
        return rule

    return register


# PyTorch adds up so many at a time: sums round as in a pooling that is written in it
_STRETCH = 16


def _row_sums(ops: Ops, x: Floats2d, n: Ints1d) -> Floats2d:
    """Add up the states of each row's wordpieces; zeros for a row of none.

    y_r = sum_s (sum_(w in s) x_rw), s = stretches of 16 wordpieces

    SOURCE: Higham 1993, The Accuracy of Floating Point Summation, section 4, on blocks of fixed
        size.
    """
    # Most Spans and Tokens are that short
    if len(x) <= _STRETCH:
        return ops.reduce_sum(x, ops.asarray1i(n))
    counts = to_numpy(n)
    n_stretches = -(-counts // _STRETCH)
    if not len(counts) or n_stretches.max() <= 1:
        return ops.reduce_sum(x, ops.asarray1i(n))
    sizes = numpy.full(n_stretches.sum(), _STRETCH, dtype="int32")
    # The last stretch of a row may be shorter
    has_wordpieces = counts > 0
    lasts = n_stretches.cumsum() - 1
    too_many = _STRETCH * n_stretches - counts
    sizes[lasts[has_wordpieces]] -= too_many[has_wordpieces]
    of_stretches = ops.reduce_sum(x, ops.asarray1i(cast(Any, sizes)))
    return ops.reduce_sum(of_stretches, ops.asarray1i(cast(Any, n_stretches.astype("int32"))))


def _column(ops: Ops, divisors: Ints1d | Floats1d, like: Floats2d) -> Floats2d:
    """Return what the sums of rows are divided by, of their dtype, (rows, 1).

    1 where a row has no wordpieces.
    """
    return ops.xp.maximum(divisors, 1)[:, None].astype(like.dtype)


# The rules. x_rw is the state of wordpiece w of row r, which has n_r wordpieces, special tokens
# among them; y_r is its vector. Of a row whose first wordpieces are not pooled, those of a prompt,
# w goes on from them, as in sentence-transformers. Lengths that are NumPy's need no synchronization
# with a GPU.


@register_pooling("cls", of_text="mean", flag="pooling_mode_cls_token", mode="cls")
def _cls(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Take the first state: y_r = x_r1.

    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    y, starts_ends = ops.reduce_first(x, ops.asarray1i(n))
    return y, lambda d_y: ops.backprop_reduce_first(d_y, starts_ends)


@register_pooling("max", flag="pooling_mode_max_tokens", mode="max")
def _max(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Take the maximum of each dimension d: y_rd = max_w x_rwd.

    Its gradient goes to the first wordpiece that attains it.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    lengths = ops.asarray1i(n)
    y, which = ops.reduce_max(x, lengths)
    return y, lambda d_y: ops.backprop_reduce_max(d_y, which, lengths)


@register_pooling("mean", flag="pooling_mode_mean_tokens", mode="mean")
def _mean(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Average the states: y_r = sum_w x_rw / n_r.

    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    lengths = ops.asarray1i(n)
    sums = _row_sums(ops, x, n)
    y = sums / _column(ops, lengths, sums)
    return y, lambda d_y: ops.backprop_reduce_mean(d_y, lengths)


@register_pooling(
    "mean_sqrt_len", flag="pooling_mode_mean_sqrt_len_tokens", mode="mean_sqrt_len_tokens"
)
def _mean_sqrt_len(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Divide the sum of the states by the root of their number: y_r = sum_w x_rw / sqrt(n_r).

    SOURCE: Cer et al. 2018 (Universal Sentence Encoder).
    """
    lengths = ops.asarray1i(n)
    sums = _row_sums(ops, x, n)
    roots = _column(ops, ops.xp.sqrt(lengths), sums)
    return sums / roots, lambda d_y: ops.backprop_reduce_sum(d_y / roots, lengths)


@register_pooling(
    "weightedmean",
    layer="weighted_mean_pooling",
    flag="pooling_mode_weightedmean_tokens",
    mode="weightedmean",
)
def _weighted_mean(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Average the states by their positions: y_r = sum_w w x_rw / sum_w w, w = 1 .. n_r.

    SOURCE: Muennighoff 2022 (SGPT).
    """
    counts = to_numpy(n)
    lengths = cast(Any, ops.asarray1i(n))
    places = ragged_arange(numpy.ones_like(counts), counts)
    positions = ops.xp.asarray(places[:, None] + n_lead, dtype=x.dtype)
    totals = _column(ops, lengths * (lengths + 1 + 2 * n_lead) / 2, x)
    sums = _row_sums(ops, cast(Any, x * positions), n)

    def backprop(d_y: Floats2d) -> Floats2d:
        return ops.backprop_reduce_sum(d_y / totals, lengths) * positions

    return sums / totals, backprop


@register_pooling(
    "lasttoken",
    layer="last_token_pooling",
    of_text="mean",
    flag="pooling_mode_lasttoken",
    mode="lasttoken",
)
def _last_token(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int) -> VectorsAndBackprop:
    """Take the last state: y_r = x_rn.

    SOURCE: Neelakantan et al. 2022 (contrastive pre-training).
    """
    y, lasts = ops.reduce_last(x, ops.asarray1i(n))
    return y, lambda d_y: ops.backprop_reduce_last(d_y, lasts)


# The layers of a config's poolings


def pooling_kinds(name: str) -> list[PoolingKind]:
    """Return the kinds that a config's pooling is joined of, with "+".

    RAISES (ValueError): if one is unknown.
    """
    names = name.split("+")
    if not set(names) <= set(POOLING):
        raise ValueError(
            f"Unknown pooling '{name}': expected one of {', '.join(POOLING)}, or several joined "
            "with '+', such as cls+mean."
        )
    return [POOLING[part] for part in names]


def make_pooling(name: str, n_lead: int = 0) -> Pooling:
    """Return the layer of a pooling, or of several joined with "+", whose vectors are concatenated.

    y_r = [p_1(x_r); ...; p_k(x_r)], float (n, k width)

    n_lead (int): how many wordpieces at the start of each sequence are left out, but never all.

    Example:
        layer = make_pooling("cls+mean")
        vectors = layer.predict(Ragged(states, lengths))

    """
    layers: list[Pooling] = [
        Model(kind.layer, partial(_pool, rule=kind.rule, n_lead=n_lead))
        for kind in pooling_kinds(name)
    ]
    layer = layers[0]
    if len(layers) > 1:
        layer = Model("concatenated_pooling", _concatenate, layers=layers)
    if n_lead:
        layer = chain(without_leading(n_lead), layer)
    return layer


def without_leading(n_lead: int) -> Model[Ragged, Ragged]:
    """Leave out the first wordpieces of each sequence, as those of a prompt, but never all.

    Input and output: states of sequences, float (wordpieces, width).
    """
    return Model("without_leading", partial(_drop_leading, n_lead=n_lead))


def _drop_leading(
    model: Model[Ragged, Ragged], states: Ragged, is_train: bool, *, n_lead: int
) -> tuple[Ragged, Callable[[Ragged], Ragged]]:
    x: Any = states.dataXd
    lengths: Any = states.lengths
    dropped = numpy.minimum(n_lead, lengths - 1)
    positions = ragged_arange(numpy.zeros_like(lengths), lengths)
    kept = numpy.flatnonzero(positions >= numpy.repeat(dropped, lengths))

    def backprop(d_kept: Ragged) -> Ragged:
        d_x: Any = x * 0
        d_x[kept] = d_kept.dataXd
        return Ragged(d_x, lengths)

    return Ragged(x[kept], lengths - dropped), backprop


def pooling_of_text(name: str) -> Pooling:
    """Return the pooling of parts of a text, which have no special tokens.

    The mean takes the place of cls and lasttoken.
    """
    return make_pooling("+".join(kind.of_text for kind in pooling_kinds(name)))


def _pool(
    model: Pooling, states: Ragged, is_train: bool, *, rule: _Rule, n_lead: int
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    lengths = states.lengths
    pooled, backprop = rule(model.ops, cast(Floats2d, states.dataXd), lengths, n_lead)
    return pooled, lambda d_pooled: Ragged(backprop(d_pooled), lengths)


def _concatenate(
    model: Pooling, states: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    # Thinc's reductions take no view
    copy_of: Any = model.ops.xp.ascontiguousarray
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        d_states = []
        for callback, (start, end) in zip(callbacks, pairwise(borders), strict=True):
            d_states.append(callback(copy_of(d_pooled[:, start:end])).dataXd)
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop
