"""Pooling of encoded spans: windows are averaged, then the layers after pooling apply."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ragged
from thinc.util import to_numpy

from ..errors import Errors
from ..validation import ConfiguredModel, WidthOrOff, check
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings
from .heads import truncation, unit_length
from .pooling import make_pooling, stretch_pooling
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenAlignment, TokenEmbeddings

# float (rows, width) on the model's device, and of each window a copy of its states without special tokens, float32
# (wordpieces, width), or None
PooledRows = tuple[Floats2d, list[numpy.ndarray | None]]


class SentencePooling(ConfiguredModel[EncodedSpans, PooledRows]):
    """Pool each row of each Doc, average the windows of a long row, and finish the vectors.

    To finish is to apply a dense layer, normalization and truncation, as far as there are any.

    Input: EncodedSpans. Output: PooledRows. Its backprop takes the gradient of the vectors, float (rows, width), and
    returns what the backprop of its input does. Its attr upstream_normalize: whether the folder of a transformer of
    another package normalizes.

    pooling (str): see make_pooling.
    normalize (bool): whether vectors get unit length; None to do as the encoder's folder says.
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
        attrs = {"upstream_normalize": False}
        layers: list[Model] = [make_pooling(pooling), unit_length(), *([] if dense is None else [dense])]
        super().__init__("sentence_pooling", _forward, init=_init, layers=layers, attrs=attrs)
        self.pooling_name = pooling
        self.normalize = normalize
        self.truncate_dim = truncate_dim

    @property
    def dense(self) -> Model[Floats2d, Floats2d] | None:
        """The dense layer, None if there is none."""
        return self.layers[2] if len(self.layers) > 2 else None

    def pooled_width(self, hidden: int) -> int:
        """Return the width of pooled vectors, before a dense layer; hidden (int): that of the encoder's states."""
        return hidden * len(self.pooling_name.split("+"))

    def width(
        self, hidden: int, settings: SentenceTransformersConfig | None = None, *, truncate_dim: int | None = None
    ) -> int:
        """Return the width of the vectors; hidden, settings: of the encoder; truncate_dim (int): else the pipe's.

        RAISES (ValueError): if they have fewer dimensions than are to be kept.
        """
        width = self.pooled_width(hidden) if self.dense is None else self.dense.get_dim("nO")
        kept = self._truncated(settings, truncate_dim) or width
        if kept > width:
            raise ValueError(Errors.TRUNCATE_DIM.format(given=kept, width=width))
        return kept

    def finishing(
        self, settings: SentenceTransformersConfig | None, truncate_dim: int | None
    ) -> list[Model[Floats2d, Floats2d]]:
        """Return the layers that finish a pooled vector.

        settings (SentenceTransformersConfig): of the encoder's folder; None if they are not known.
        truncate_dim (int): in place of the pipe's own, None for that.
        """
        width, layers = self._truncated(settings, truncate_dim), [] if self.dense is None else [self.dense]
        if self.normalizes(settings):
            layers.append(self.layers[1])
        return [*layers, truncation(width)] if width else layers

    def _truncated(self, settings: SentenceTransformersConfig | None, truncate_dim: int | None) -> int:
        """Return to how many dimensions vectors are truncated; 0 for not at all."""
        if truncate_dim is not None:
            return truncate_dim
        return self.truncate_dim or (settings.truncate_dim if settings else 0)

    def normalizes(self, settings: SentenceTransformersConfig | None) -> bool:
        """Return whether vectors get unit length.

        settings (SentenceTransformersConfig): of the encoder's folder; None if they are not known.
        RAISES (ValueError): if the folder asks for more than pooling and normalisation.
        """
        if self.normalize is not None:
            return self.normalize
        if settings is None:
            return self.attrs["upstream_normalize"]
        if settings.unknown_modules:
            unknown = ", ".join(settings.unknown_modules)
            raise ValueError(
                f"The folder {settings.name} describes a sentence encoder with {unknown}, and normalize = "
                '"auto" follows what the folder says, which is Transformer, Pooling and Normalize. A Dense '
                f"layer comes with python -m spacy sbert import {settings.name} OUT; set normalize = true or "
                f"false to use the transformer and the pooling without {unknown}."
            )
        return settings.normalize

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


def _forward(model: SentencePooling, batch: EncodedSpans, is_train: bool) -> tuple[PooledRows, Callable]:
    return pool_rows(model, batch, is_train)


def pool_rows(
    model: SentencePooling, batch: EncodedSpans, is_train: bool, *, settings: EncodeSettings = DEFAULT_SETTINGS
) -> tuple[PooledRows, Callable[[Array], Any]]:
    """Return the vectors of rows: their windows pooled as the encoder gives them, averaged and finished.

    RETURNS (PooledRows, Callable): from the gradient of the vectors to what the backprop of batch returns.
    """
    xp, folder = model.ops.xp, batch.rows.settings
    finishing = model.finishing(folder, settings.truncate_dim)
    windows: Array = None
    callbacks = []
    states: list[numpy.ndarray | None] = [None] * len(batch.lengths)
    starts = numpy.cumsum(batch.lengths) - batch.lengths
    for part in batch.states:
        if windows is None:
            model.width(part.values.shape[1], folder, truncate_dim=settings.truncate_dim)
        if batch.pieces is not None:
            _keep(states, part, starts, batch.pieces, batch.lengths == 0)
        pooled, backprop_part = model.pool(part, batch.n_lead, is_train)
        if windows is None:
            windows = xp.zeros((len(batch.lengths), pooled.shape[1]), dtype=pooled.dtype)
        windows[part.windows] = pooled
        if is_train:
            callbacks.append((part.windows, backprop_part))
    weights = batch.rows.window_weights * batch.rows.has_text[batch.rows.row_of]
    vectors, backprop_rows = _row_vectors(model.ops, finishing, windows, batch.rows.row_of, weights, is_train=is_train)

    def backprop(d_vectors: Array) -> object:
        d_windows: Array = backprop_rows(d_vectors)
        return batch.backprop([backprop_part(d_windows[own]) for own, backprop_part in callbacks])

    return (vectors, states), backprop


def _without_leading(
    states: Floats2d, lengths: numpy.ndarray, lead: int
) -> tuple[Floats2d, numpy.ndarray, Callable[[Floats2d], Floats2d]]:
    """Drop the first wordpieces of each window, but never all of them.

    states (float (wordpieces, width)): of windows, one after another.
    lengths (int (windows,)): the wordpieces in each.
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

    finishing (list[Model]): f, one after another: a dense layer, normalisation, truncation, or nothing.
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


def _keep(
    states: list[numpy.ndarray | None],
    part: TokenEmbeddings,
    starts: numpy.ndarray,
    pieces: TokenAlignment,
    without_units: numpy.ndarray,
) -> None:
    """Copy the states of each window that is wanted, so that none keeps those of its whole batch in memory."""
    values, ends = to_numpy(part.values), numpy.cumsum(part.lengths)
    for window in numpy.flatnonzero(pieces.windows & without_units):
        states[window] = values[:0]
    for window, start, end in zip(part.windows.tolist(), (ends - part.lengths).tolist(), ends.tolist(), strict=True):
        if pieces.windows[window]:
            of_text = pieces.of_text[starts[window] : starts[window] + end - start]
            states[window] = values[start:end][of_text]
