"""Pooling: token embeddings to one vector a sequence, windows averaged, and the layers after it applied."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats1d, Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from ..errors import Errors
from ..validation import ConfiguredModel, WidthOrOff, check
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings
from .heads import truncation, unit_length
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenEmbeddings

# From a Ragged x of float (wordpieces, width), with the number n of wordpieces in each row, to y, float (rows, width).
# Special tokens are wordpieces, too. Lengths that are NumPy's need no synchronization with a GPU.
Pooling = Model[Ragged, Floats2d]
_Pooled = tuple[Floats2d, Callable[[Floats2d], Ragged]]
_STRETCH = 16  # as PyTorch adds up, so that sums round as in a pooling written in it


def _row_sums(ops: Ops, states: Floats2d, lengths: Ints1d) -> Floats2d:
    """Add up the states of each row's wordpieces.

    y_r = sum_s (sum_(w in s) x_rw), s = stretches of 16 wordpieces

    states: float (wordpieces, width), row by row. lengths: int (rows,), wordpieces in each.
    RETURNS (float (rows, width)): zeros for a row of none.
    SOURCE: Higham 1993, The Accuracy of Floating Point Summation, section 4, on blocks of fixed size.
    """
    if len(states) <= _STRETCH:  # as those of a Span or Token
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    counts = to_numpy(lengths)
    n_stretches = -(-counts // _STRETCH)
    if not len(counts) or n_stretches.max() <= 1:
        return ops.reduce_sum(states, ops.asarray1i(lengths))
    held = counts > 0
    sizes = numpy.full(n_stretches.sum(), _STRETCH, dtype="int32")
    sizes[n_stretches.cumsum()[held] - 1] -= (_STRETCH * n_stretches - counts)[held]  # a row's last may be shorter
    of_stretches = ops.reduce_sum(states, ops.asarray1i(cast(Any, sizes)))
    return ops.reduce_sum(of_stretches, ops.asarray1i(cast(Any, n_stretches.astype("int32"))))


def _column(ops: Ops, divisors: Ints1d | Floats1d, like: Floats2d) -> Floats2d:
    """Return what the sums of rows are divided by, of their dtype, (rows, 1); 1 where a row has no wordpieces."""
    return ops.xp.maximum(divisors, 1)[:, None].astype(like.dtype)


def _mean(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Average the states of a row's wordpieces.

    y_r = sum_w x_rw / n_r

    SOURCE: Reimers and Gurevych 2019, section 3 (MEAN-strategy).
    """
    lengths = model.ops.asarray1i(states.lengths)
    sums = _row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_mean(d_pooled, lengths), lengths)

    return sums / _column(model.ops, lengths, sums), backprop


def _mean_sqrt_len(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Add up the states of a row's wordpieces, and divide by the root of their number.

    y_r = sum_w x_rw / sqrt(n_r)

    SOURCE: Cer et al. 2018 (Universal Sentence Encoder), on its transformer.
    """
    lengths = model.ops.asarray1i(states.lengths)
    sums = _row_sums(model.ops, states.dataXd, states.lengths)  # type: ignore[arg-type]
    roots = _column(model.ops, model.ops.xp.sqrt(lengths), sums)

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / roots, lengths), lengths)

    return sums / roots, backprop


def _weighted_mean(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Average the states of a row's wordpieces, weighted by their positions, from 1.

    y_r = sum_w w x_rw / sum_w w,   w = 1 .. n_r

    SOURCE: Muennighoff 2022 (SGPT).
    """
    counts, lengths = to_numpy(states.lengths), cast(Any, model.ops.asarray1i(states.lengths))
    firsts = numpy.repeat(numpy.cumsum(counts) - counts, counts)
    places = numpy.arange(1, len(firsts) + 1) - firsts
    positions = model.ops.xp.asarray(places[:, None], dtype=states.dataXd.dtype)
    totals = _column(model.ops, lengths * (lengths + 1) / 2, cast(Any, states.dataXd))

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_sum(d_pooled / totals, lengths) * positions, lengths)

    return _row_sums(model.ops, cast(Any, states.dataXd * positions), states.lengths) / totals, backprop


def _max(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Take the maximum over a row's wordpieces. The gradient goes to the first wordpiece that attains it.

    y_rd = max_w x_rwd

    SOURCE: Reimers and Gurevych 2019, section 3 (MAX-strategy).
    """
    lengths = model.ops.asarray1i(states.lengths)
    pooled, which = model.ops.reduce_max(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_max(d_pooled, which, lengths), lengths)

    return pooled, backprop


def _cls(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Take the state of a row's first wordpiece: the CLS token.

    y_r = x_r0

    SOURCE: Reimers and Gurevych 2019, section 3 (CLS).
    """
    lengths = model.ops.asarray1i(states.lengths)
    pooled, starts_ends = model.ops.reduce_first(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_first(d_pooled, starts_ends), lengths)

    return pooled, backprop


def _last_token(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Take the state of a row's last wordpiece, be it a special token or not.

    y_r = x_rn

    SOURCE: Neelakantan et al. 2022 (Text and Code Embeddings by Contrastive Pre-Training).
    """
    lengths = model.ops.asarray1i(states.lengths)
    pooled, lasts = model.ops.reduce_last(states.dataXd, lengths)  # type: ignore[arg-type]

    def backprop(d_pooled: Floats2d) -> Ragged:
        return Ragged(model.ops.backprop_reduce_last(d_pooled, lasts), lengths)

    return pooled, backprop


def _concatenated(model: Pooling, states: Ragged, is_train: bool) -> _Pooled:
    """Concatenate the results of several poolings, p_1 to p_k: y is float (rows, k width).

    y_r = [p_1(x_r); ...; p_k(x_r)]
    """
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    copy_of: Any = model.ops.xp.ascontiguousarray  # Thinc's reductions take no view
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        parts = zip(callbacks, pairwise(borders), strict=True)
        d_states = [back(copy_of(d_pooled[:, start:end])).dataXd for back, (start, end) in parts]
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop


POOLING: dict[str, Callable[[Pooling, Ragged, bool], _Pooled]] = {
    "cls": _cls,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len": _mean_sqrt_len,
    "weightedmean": _weighted_mean,
    "lasttoken": _last_token,
}


def _make_pooling(name: str) -> Pooling:
    """Return the pooling of a name.

    name (str): a name of POOLING, or several joined with "+", such as "cls+mean", whose results are concatenated.
    RAISES (ValueError): for an unknown name.
    """
    names = name.split("+")
    if not set(names) <= set(POOLING):
        raise ValueError(
            f"Unknown pooling '{name}': expected one of {', '.join(POOLING)}, or several joined with '+', "
            "such as cls+mean."
        )
    layers: list[Pooling] = [Model(f"{POOLING[part].__name__[1:]}_pooling", POOLING[part]) for part in names]
    return layers[0] if len(layers) == 1 else Model("concatenated_pooling", _concatenated, layers=layers)


def stretch_pooling(name: str) -> Pooling:
    """Return the pooling of parts of a text, which have no special tokens: the mean in place of "cls" and "lasttoken".

    name (str): see _make_pooling.
    """
    return _make_pooling("+".join("mean" if part in ("cls", "lasttoken") else part for part in name.split("+")))


# Of windows, rows and their vectors

# float (rows, width) on the model's device, and a copy of the states of each window that Spans and Tokens need, float32
# (wordpieces, width); none if they need none
PooledRows = tuple[Floats2d, list[numpy.ndarray]]


class SentencePooling(ConfiguredModel[EncodedSpans, PooledRows]):
    """Pool each row of each Doc, average the windows of a long row, and finish the vectors.

    To finish is to apply a dense layer, normalization and truncation, as far as there are any.

    Input: EncodedSpans. Output: PooledRows. Its backprop takes the gradient of the vectors, float (rows, width), and
    returns what the backprop of its input does. Its attr upstream_normalize: whether the folder of a transformer of
    another package normalizes.

    pooling (str): see _make_pooling.
    normalize (bool): whether vectors get unit length; None to do as the encoder's folder specifies.
    dense (Model): from pooled vectors to others; None for none.
    truncate_dim (int): how many dimensions of a vector are kept; 0 for all, or as many as the encoder's folder says.
    """

    def __init__(
        self,
        pooling: str,
        normalize: bool | None,
        *,
        dense: Model[Floats2d, Floats2d] | None = None,
        truncate_dim: int = 0,
    ):
        check("truncate_dim", truncate_dim, WidthOrOff)
        layers: list[Model] = [_make_pooling(pooling), unit_length(), *([] if dense is None else [dense])]
        attrs = {"upstream_normalize": False}
        super().__init__("sentence_pooling", pool_rows, init=_init, layers=layers, attrs=attrs)
        self.pooling_name, self.normalize, self.truncate_dim = pooling, normalize, truncate_dim

    @property
    def dense(self) -> Model[Floats2d, Floats2d] | None:
        """The dense layer, None if there is none."""
        return self.layers[2] if len(self.layers) > 2 else None

    def pooled_width(self, hidden: int) -> int:
        """Return the width of pooled vectors, before a dense layer; hidden (int): that of the encoder's states."""
        return hidden * len(self.pooling_name.split("+"))

    def width(
        self, hidden: int, folder: SentenceTransformersConfig | None = None, *, truncate_dim: int | None = None
    ) -> int:
        """Return the width of the vectors; hidden, folder: of the encoder; truncate_dim (int): else the pipe's.

        RAISES (ValueError): if they have fewer dimensions than should be kept.
        """
        width = self.pooled_width(hidden) if self.dense is None else self.dense.get_dim("nO")
        kept = self._kept_width(folder, truncate_dim) or width
        if kept > width:
            raise ValueError(Errors.TRUNCATE_DIM.format(given=kept, width=width))
        return kept

    def _kept_width(self, folder: SentenceTransformersConfig | None, truncate_dim: int | None) -> int:
        """Return to how many dimensions vectors are truncated; 0 for not at all."""
        if truncate_dim is not None:
            return truncate_dim
        return self.truncate_dim or (folder.truncate_dim if folder else 0)

    def finishing(
        self, folder: SentenceTransformersConfig | None, truncate_dim: int | None
    ) -> list[Model[Floats2d, Floats2d]]:
        """Return the layers that finish a pooled vector.

        folder (SentenceTransformersConfig): of the encoder; None if it is not known.
        truncate_dim (int): in place of the pipe's own, None for that.
        """
        width, layers = self._kept_width(folder, truncate_dim), [] if self.dense is None else [self.dense]
        if self.normalizes(folder):
            layers.append(self.layers[1])
        return [*layers, truncation(width)] if width else layers

    def normalizes(self, folder: SentenceTransformersConfig | None) -> bool:
        """Return whether vectors get unit length.

        folder (SentenceTransformersConfig): of the encoder; None if it is not known.
        RAISES (ValueError): if the folder asks for more than pooling and normalization.
        """
        if self.normalize is not None:
            return self.normalize
        if folder is None:
            return self.attrs["upstream_normalize"]
        if folder.unknown_modules:
            unknown = ", ".join(folder.unknown_modules)
            raise ValueError(
                f"The folder {folder.name} describes a sentence encoder with {unknown}, and normalize = "
                '"auto" follows the folder: Transformer, Pooling and Normalize are known. A Dense '
                f"layer comes with python -m spacy sbert import {folder.name} OUT; set normalize = true or "
                f"false to use the transformer and the pooling without {unknown}."
            )
        return folder.normalize

    def pool(self, part: TokenEmbeddings, n_lead: int, is_train: bool) -> tuple[Floats2d, Callable[[Array], Array]]:
        """Pool each window, its first n_lead wordpieces left out, or each stretch of text without special tokens.

        RETURNS (Floats2d, Callable): the callback returns the gradient of the values.
        """
        layer = stretch_pooling(self.pooling_name) if part.is_stretch else self.layers[0]
        values, lengths = part.values, part.lengths
        if not len(lengths):
            return self.ops.alloc2f(0, self.pooled_width(values.shape[1])), lambda d_pooled: values
        if n_lead:
            values, lengths, put_back = _without_leading(values, lengths, n_lead)
        pooled, backprop = layer(Ragged(values, lengths), is_train)  # type: ignore[arg-type]

        def backprop_values(d_pooled: Array) -> Array:
            d_values = backprop(d_pooled).dataXd
            return put_back(d_values) if n_lead else d_values

        return pooled, backprop_values


def _init(model: SentencePooling, X: object = None, Y: object = None) -> None:
    if model.dense is not None:
        model.dense.initialize()


def pool_rows(
    model: SentencePooling, batch: EncodedSpans, is_train: bool, *, settings: EncodeSettings = DEFAULT_SETTINGS
) -> tuple[PooledRows, Callable[[Array], Any]]:
    """Return the vectors of rows: their windows pooled as the encoder gives them, averaged and finished.

    RETURNS (PooledRows, Callable): from the gradient of the vectors to what the backprop of batch returns.
    """
    xp, folder, lengths = model.ops.xp, batch.rows.settings, batch.lengths
    finishing = model.finishing(folder, settings.truncate_dim)
    windows: Array = None
    callbacks = []
    starts, copies = numpy.cumsum(lengths) - lengths, [numpy.zeros((0, 0), "f")] * len(lengths)
    for part in batch.states:
        if windows is None:
            width = part.values.shape[1]
            model.width(width, folder, truncate_dim=settings.truncate_dim)
            windows = xp.zeros((len(lengths), model.pooled_width(width)), dtype=part.values.dtype)
            copies = [numpy.zeros((0, width), "f")] * len(lengths)
        if batch.kept is not None:  # none keeps the states of its whole batch in memory
            values, ends = to_numpy(part.values), numpy.cumsum(part.lengths)
            bounds = zip(part.windows.tolist(), (ends - part.lengths).tolist(), ends.tolist(), strict=True)
            for window, start, end in bounds:
                copies[window] = values[start:end][batch.kept[starts[window] : starts[window] + end - start]]
        pooled, backprop_part = model.pool(part, batch.n_lead, is_train)
        windows[part.windows] = pooled
        if is_train:
            callbacks.append((part.windows, backprop_part))
    vectors, backprop_rows = _row_vectors(
        model.ops, finishing, windows, batch.rows.row_of, batch.rows.window_weights, is_train=is_train
    )

    def backprop(d_vectors: Array) -> object:
        d_windows: Array = backprop_rows(d_vectors)
        return batch.backprop([backprop_part(d_windows[own]) for own, backprop_part in callbacks])

    return (vectors, [] if batch.kept is None else copies), backprop


def _without_leading(
    states: Floats2d, lengths: numpy.ndarray, lead: int
) -> tuple[Floats2d, numpy.ndarray, Callable[[Floats2d], Floats2d]]:
    """Drop the first wordpieces of each window, but never all of them.

    states (float (wordpieces, width)): of windows, one after another. lengths (int (windows,)): wordpieces in each.
    lead (int): how many to drop of each.
    RETURNS (float (kept wordpieces, width), int (windows,), Callable): the states and lengths that are left, and from
        the gradient of these states to that of all.
    """
    dropped = numpy.minimum(lead, lengths - 1)
    places = numpy.arange(len(states)) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
    kept = numpy.flatnonzero(places >= numpy.repeat(dropped, lengths))

    def backprop(d_kept: Floats2d) -> Floats2d:
        d_states: Any = states * 0
        d_states[kept] = d_kept
        return d_states

    return cast(Any, states)[kept], lengths - dropped, backprop


def _row_vectors(
    ops: Ops,
    finishing: Sequence[Model[Floats2d, Floats2d]],
    windows: Floats2d,
    row_of: numpy.ndarray,
    weights: numpy.ndarray,
    *,
    is_train: bool,
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Average the windows of each row, and apply the layers that finish a vector.

    Windows are weighted by their wordpieces, so that a last window of a word or two counts for no more than that.

    y_r = f(sum_i w_i x_i / sum_i w_i) over the windows i of row r, and 0 where no window has a wordpiece

    finishing (list[Model]): f, one after another: a dense layer, normalization, truncation, or nothing.
    windows (float (windows, width)): x.
    row_of (int64 (windows,)): the row of each window; ascending, each row has one.
    weights (int64 (windows,)): w, the wordpieces in each window, special tokens left out.
    RETURNS (float (rows, width), Callable): y, and from its gradient to that of x.
    """
    counts = numpy.bincount(row_of)
    totals = numpy.bincount(row_of, weights=weights)
    shares = ops.xp.asarray((weights / numpy.maximum(totals, 1)[row_of])[:, None], dtype=windows.dtype)
    vectors = windows * shares
    lengths = ops.asarray1i(cast(Any, counts))
    if len(counts) < len(row_of):
        vectors = ops.reduce_sum(vectors, lengths)
    callbacks = []
    for layer in finishing:
        vectors, callback = layer(vectors, is_train)
        callbacks.append(callback)
    empty = numpy.flatnonzero(totals == 0)
    if len(empty):  # a dense layer makes a vector of zeros, too
        vectors = vectors.copy()
        vectors[empty] = 0

    def backprop(d_vectors: Floats2d) -> Floats2d:
        d_rows = ops.xp.array(d_vectors, dtype=windows.dtype)  # a copy
        d_rows[empty] = 0
        for callback in reversed(callbacks):
            d_rows = callback(d_rows)
        return (d_rows if len(counts) == len(row_of) else ops.backprop_reduce_sum(d_rows, lengths)) * shares

    return vectors, backprop
