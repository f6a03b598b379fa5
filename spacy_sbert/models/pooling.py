"""Pooling: token embeddings to one vector a sequence, windows averaged, and the layers after it applied."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats1d, Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from ..errors import Errors
from ..validation import ConfiguredModel, WidthOrOff, check
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings
from .heads import normalization, truncation
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenEmbeddings

# From a Ragged of the states of rows, float (wordpieces, width), to a vector of each, float (rows,
# width). x_rw is the state of wordpiece w of row r, which has n_r wordpieces, special tokens among
# them; y_r is its vector:
#
# mean y_r = sum_w x_rw / n_r Reimers and Gurevych 2019, section 3
# mean_sqrt_len y_r = sum_w x_rw / sqrt(n_r) Cer et al. 2018 (Universal Sentence Encoder)
#   weightedmean    y_r = sum_w w x_rw / sum_w w,   w = 1 .. n_r      Muennighoff 2022 (SGPT)
# max y_rd = max_w x_rwd Reimers and Gurevych 2019, section 3
# cls y_r = x_r1 Reimers and Gurevych 2019, section 3
# lasttoken y_r = x_rn Neelakantan et al. 2022 (contrastive pre-training)
#   p_1+...+p_k     y_r = [p_1(x_r); ...; p_k(x_r)]                   (rows, k width)
#
# Of a row whose first wordpieces are not pooled, those of a prompt, w goes on from them: as in
# sentence-transformers. The gradient of a maximum goes to the first wordpiece that attains it.
# Lengths that are NumPy's need no synchronization with a GPU.
Pooling = Model[Ragged, Floats2d]
# y, and from its gradient to that of x
_Pooled = tuple[Floats2d, Callable[[Floats2d], Floats2d]]
# As PyTorch adds up, so that sums round as in a pooling written in it
_STRETCH = 16


def _row_sums(ops: Ops, x: Floats2d, n: Ints1d) -> Floats2d:
    """Add up the states of each row's wordpieces; zeros for a row of none.

    y_r = sum_s (sum_(w in s) x_rw), s = stretches of 16 wordpieces

    SOURCE: Higham 1993, The Accuracy of Floating Point Summation, section 4, on blocks of fixed
        size.
    """
    # As those of a Span or Token
    if len(x) <= _STRETCH:
        return ops.reduce_sum(x, ops.asarray1i(n))
    counts = to_numpy(n)
    n_stretches = -(-counts // _STRETCH)
    if not len(counts) or n_stretches.max() <= 1:
        return ops.reduce_sum(x, ops.asarray1i(n))
    held = counts > 0
    sizes = numpy.full(n_stretches.sum(), _STRETCH, dtype="int32")
    # A row's last may be shorter
    sizes[n_stretches.cumsum()[held] - 1] -= (_STRETCH * n_stretches - counts)[held]
    of_stretches = ops.reduce_sum(x, ops.asarray1i(cast(Any, sizes)))
    return ops.reduce_sum(of_stretches, ops.asarray1i(cast(Any, n_stretches.astype("int32"))))


def _column(ops: Ops, divisors: Ints1d | Floats1d, like: Floats2d) -> Floats2d:
    """Return what the sums of rows are divided by, of their dtype, (rows, 1).

    1 where a row has no wordpieces.
    """
    return ops.xp.maximum(divisors, 1)[:, None].astype(like.dtype)


def _mean(ops: Ops, x: Floats2d, n: Ints1d) -> _Pooled:
    lengths, sums = ops.asarray1i(n), _row_sums(ops, x, n)
    return sums / _column(ops, lengths, sums), lambda d_y: ops.backprop_reduce_mean(d_y, lengths)


def _mean_sqrt_len(ops: Ops, x: Floats2d, n: Ints1d) -> _Pooled:
    lengths, sums = ops.asarray1i(n), _row_sums(ops, x, n)
    roots = _column(ops, ops.xp.sqrt(lengths), sums)
    return sums / roots, lambda d_y: ops.backprop_reduce_sum(d_y / roots, lengths)


def _weighted_mean(ops: Ops, x: Floats2d, n: Ints1d, n_lead: int = 0) -> _Pooled:
    """Return the weighted mean of rows whose first n_lead wordpieces were left out."""
    counts, lengths = to_numpy(n), cast(Any, ops.asarray1i(n))
    places = numpy.arange(1, counts.sum() + 1) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    positions = ops.xp.asarray(places[:, None] + n_lead, dtype=x.dtype)
    totals = _column(ops, lengths * (lengths + 1 + 2 * n_lead) / 2, x)
    sums = _row_sums(ops, cast(Any, x * positions), n)
    return sums / totals, lambda d_y: ops.backprop_reduce_sum(d_y / totals, lengths) * positions


def _max(ops: Ops, x: Floats2d, n: Ints1d) -> _Pooled:
    lengths = ops.asarray1i(n)
    y, which = ops.reduce_max(x, lengths)
    return y, lambda d_y: ops.backprop_reduce_max(d_y, which, lengths)


def _cls(ops: Ops, x: Floats2d, n: Ints1d) -> _Pooled:
    y, starts_ends = ops.reduce_first(x, ops.asarray1i(n))
    return y, lambda d_y: ops.backprop_reduce_first(d_y, starts_ends)


def _last_token(ops: Ops, x: Floats2d, n: Ints1d) -> _Pooled:
    y, lasts = ops.reduce_last(x, ops.asarray1i(n))
    return y, lambda d_y: ops.backprop_reduce_last(d_y, lasts)


POOLING: dict[str, Callable[[Ops, Floats2d, Ints1d], _Pooled]] = {
    "cls": _cls,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len": _mean_sqrt_len,
    "weightedmean": _weighted_mean,
    "lasttoken": _last_token,
}


def _pool(
    model: Pooling,
    states: Ragged,
    is_train: bool,
    *,
    pooling: Callable[[Ops, Floats2d, Ints1d], _Pooled],
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    pooled, backprop = pooling(model.ops, cast(Floats2d, states.dataXd), states.lengths)
    return pooled, lambda d_pooled: Ragged(backprop(d_pooled), states.lengths)


def _concatenate(
    model: Pooling, states: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    pooled, callbacks = zip(*(layer(states, is_train) for layer in model.layers), strict=True)
    # Thinc's reductions take no view
    copy_of: Any = model.ops.xp.ascontiguousarray
    borders = [0, *accumulate(part.shape[1] for part in pooled)]

    def backprop(d_pooled: Floats2d) -> Ragged:
        parts = zip(callbacks, pairwise(borders), strict=True)
        d_states = [back(copy_of(d_pooled[:, start:end])).dataXd for back, (start, end) in parts]
        return Ragged(sum(d_states[1:], start=d_states[0]), states.lengths)

    return model.ops.xp.concatenate(pooled, axis=1), backprop


def _make_pooling(name: str, n_lead: int = 0) -> Pooling:
    """Return a pooling by its name in POOLING, or several joined with "+", whose results are concatenated.

    n_lead (int): how many wordpieces at the start of each row were left out.
    """
    names = name.split("+")
    if not set(names) <= set(POOLING):
        raise ValueError(
            f"Unknown pooling '{name}': expected one of {', '.join(POOLING)}, or several joined "
            "with '+', "
            "such as cls+mean."
        )
    rules: dict[str, Any] = {**POOLING, "weightedmean": partial(_weighted_mean, n_lead=n_lead)}
    layers: list[Pooling] = [
        Model(f"{POOLING[part].__name__[1:]}_pooling", partial(_pool, pooling=rules[part]))
        for part in names
    ]
    return (
        layers[0]
        if len(layers) == 1
        else Model("concatenated_pooling", _concatenate, layers=layers)
    )


def stretch_pooling(name: str) -> Pooling:
    """Return the pooling of parts of a text, which have no special tokens: the mean in place of cls and lasttoken."""
    return _make_pooling(
        "+".join("mean" if part in ("cls", "lasttoken") else part for part in name.split("+"))
    )


# Of windows, rows and their vectors

# float (rows, width) on the model's device, and a copy of the states of each window that Spans and
# Tokens need, float32 (wordpieces, width); none if they need none
PooledRows = tuple[Floats2d, list[numpy.ndarray]]


class SentencePooling(ConfiguredModel[EncodedSpans, PooledRows]):
    """Pool each row of each Doc, average the windows of a long row, and finish the vectors.

    To finish is to apply a dense layer, normalization and truncation, as far as there are any. The
    attr upstream_normalize says whether the folder of a transformer of another package normalizes.

    pooling (str): see _make_pooling.
    normalize (bool): whether vectors get unit length; None to do as the encoder's folder specifies.
    dense (Model): from pooled vectors to others; None for none.
    truncate_dim (int): how many dimensions of a vector are kept; 0 for all, or as many as the
        encoder's folder says.
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
        layers: list[Model] = [
            _make_pooling(pooling),
            normalization(),
            *([] if dense is None else [dense]),
        ]
        attrs = {"upstream_normalize": False}
        super().__init__(
            "sentence_pooling", SentencePooling.pool_rows, init=_init, layers=layers, attrs=attrs
        )
        self.pooling_name, self.normalize, self.truncate_dim = pooling, normalize, truncate_dim

    @property
    def dense(self) -> Model[Floats2d, Floats2d] | None:
        """The dense layer, None if there is none."""
        return self.layers[2] if len(self.layers) > 2 else None

    def pooled_width(self, hidden: int) -> int:
        """Return the width of pooled vectors, before a dense layer.

        hidden (int): that of the encoder's states.
        """
        return hidden * len(self.pooling_name.split("+"))

    def width(
        self,
        hidden: int,
        folder: SentenceTransformersConfig | None = None,
        *,
        truncate_dim: int | None = None,
    ) -> int:
        """Return the width of the vectors.

        hidden, folder: of the encoder; truncate_dim (int): else the pipe's.
        """
        width = self.pooled_width(hidden) if self.dense is None else self.dense.get_dim("nO")
        kept = self._kept_width(folder, truncate_dim) or width
        if kept > width:
            raise ValueError(Errors.TRUNCATE_DIM.format(given=kept, width=width))
        return kept

    def _kept_width(
        self, folder: SentenceTransformersConfig | None, truncate_dim: int | None
    ) -> int:
        """Return to how many dimensions vectors are truncated; 0 for not at all."""
        if truncate_dim is not None:
            return truncate_dim
        return self.truncate_dim or (folder.truncate_dim if folder else 0)

    def normalizes(self, folder: SentenceTransformersConfig | None) -> bool:
        """Return whether vectors get unit length.

        folder: of the encoder, None if it is not known.
        """
        if self.normalize is not None:
            return self.normalize
        if folder is None:
            return self.attrs["upstream_normalize"]
        if folder.unknown_modules:
            unknown = ", ".join(folder.unknown_modules)
            is_dense = set(folder.unknown_modules) == {"Dense"}
            remedy = (
                f"It comes with python -m spacy sbert import {folder.name} OUT. "
                if is_dense
                else ""
            )
            raise ValueError(
                f"The folder {folder.name} describes a sentence encoder with {unknown}, and "
                'normalize = "auto" follows '
                f"the folder. {remedy}Set normalize = true or false to use the transformer and "
                "the pooling without "
                f"{unknown}."
            )
        return folder.normalize

    def pool_rows(
        self, batch: EncodedSpans, is_train: bool, settings: EncodeSettings = DEFAULT_SETTINGS
    ) -> tuple[PooledRows, Callable[[Array], Any]]:
        """Return the vectors of rows: their windows pooled as the encoder gives them, averaged and finished.

        RETURNS (PooledRows, Callable): from the gradient of the vectors to what the backprop of
            batch returns.
        """
        folder, lengths, truncate_dim = batch.rows.settings, batch.lengths, settings.truncate_dim
        finishing: list[Model[Floats2d, Floats2d]] = [] if self.dense is None else [self.dense]
        finishing += [self.layers[1]] if self.normalizes(folder) else []
        if kept_width := self._kept_width(folder, truncate_dim):
            finishing.append(truncation(kept_width))
        windows: Array = None
        callbacks = []
        starts, copies = numpy.cumsum(lengths) - lengths, [numpy.zeros((0, 0), "f")] * len(lengths)
        for part in batch.states:
            if windows is None:
                width = part.values.shape[1]
                self.width(width, folder, truncate_dim=truncate_dim)
                windows = self.ops.xp.zeros(
                    (len(lengths), self.pooled_width(width)), dtype=part.values.dtype
                )
                copies = [numpy.zeros((0, width), "f")] * len(lengths)
            # None keeps the states of its whole batch in memory
            if batch.kept is not None:
                values, ends = to_numpy(part.values), numpy.cumsum(part.lengths)
                bounds = zip(
                    part.windows.tolist(),
                    (ends - part.lengths).tolist(),
                    ends.tolist(),
                    strict=True,
                )
                for window, start, end in bounds:
                    copies[window] = values[start:end][
                        batch.kept[starts[window] : starts[window] + end - start]
                    ]
            windows[part.windows], backprop_part = self._pool_windows(part, batch.n_lead, is_train)
            if is_train:
                callbacks.append((part.windows, backprop_part))
        rows = batch.rows
        vectors, backprop_rows = _row_vectors(
            self.ops, finishing, windows, rows.row_of, rows.window_weights, is_train=is_train
        )

        def backprop(d_vectors: Array) -> object:
            d_windows: Array = backprop_rows(d_vectors)
            return batch.backprop(
                [backprop_part(d_windows[own]) for own, backprop_part in callbacks]
            )

        return (vectors, [] if batch.kept is None else copies), backprop

    def _pool_windows(
        self, part: TokenEmbeddings, n_lead: int, is_train: bool
    ) -> tuple[Floats2d, Callable[[Array], Array]]:
        """Pool each window, its first n_lead wordpieces left out, or each stretch of text without special tokens."""
        values, lengths = part.values, part.lengths
        if not len(lengths):
            return self.ops.alloc2f(0, self.pooled_width(values.shape[1])), lambda d_pooled: values
        if not n_lead or part.is_stretch:
            layer = stretch_pooling(self.pooling_name) if part.is_stretch else self.layers[0]
            pooled, backprop = layer(Ragged(values, lengths), is_train)  # type: ignore[arg-type]
            return pooled, lambda d_pooled: backprop(d_pooled).dataXd
        layer = _make_pooling(self.pooling_name, n_lead)
        values, lengths, put_back = _without_leading(values, lengths, n_lead)
        pooled, backprop = layer(Ragged(values, lengths), is_train)  # type: ignore[arg-type]
        return pooled, lambda d_pooled: put_back(backprop(d_pooled).dataXd)


def _init(model: SentencePooling, X: object = None, Y: object = None) -> None:
    if model.dense is not None:
        model.dense.initialize()


def _without_leading(
    states: Floats2d, lengths: numpy.ndarray, lead: int
) -> tuple[Floats2d, numpy.ndarray, Callable[[Floats2d], Floats2d]]:
    """Drop the first wordpieces of each window, but never all.

    Return what is left, and from its gradient to all's.
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

    y_r = f(sum_i w_i x_i / sum_i w_i) over the windows i of row r, and 0 where no window has a
    wordpiece

    finishing (list[Model]): f. windows (float (windows, width)): x. row_of (int64 (windows,)):
        ascending, each row has a window. weights (int64 (windows,)): w, the wordpieces in each
        window, special tokens left out.
    RETURNS (float (rows, width), Callable): y, and from its gradient to that of x.
    """
    counts = numpy.bincount(row_of)
    totals = numpy.bincount(row_of, weights=weights)
    shares = ops.xp.asarray(
        (weights / numpy.maximum(totals, 1)[row_of])[:, None], dtype=windows.dtype
    )
    vectors, lengths = windows * shares, ops.asarray1i(cast(Any, counts))
    if len(counts) < len(row_of):
        vectors = ops.reduce_sum(vectors, lengths)
    callbacks = []
    for layer in finishing:
        vectors, callback = layer(vectors, is_train)
        callbacks.append(callback)
    empty = numpy.flatnonzero(totals == 0)
    # A dense layer makes a vector of zeros, too
    if len(empty):
        vectors = vectors.copy()
        vectors[empty] = 0

    def backprop(d_vectors: Floats2d) -> Floats2d:
        # A copy
        d_rows = ops.xp.array(d_vectors, dtype=windows.dtype)
        d_rows[empty] = 0
        for callback in reversed(callbacks):
            d_rows = callback(d_rows)
        return (
            d_rows if len(counts) == len(row_of) else ops.backprop_reduce_sum(d_rows, lengths)
        ) * shares

    return vectors, backprop
