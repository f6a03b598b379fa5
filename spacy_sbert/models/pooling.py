"""From the states of windows to the vectors of rows.

Windows are pooled and averaged, and the vectors of rows finished.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ragged
from thinc.util import to_numpy

from ..errors import Errors
from ..validation import ConfiguredModel, WidthOrOff, check
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings
from .heads import normalization, truncation
from .poolings import make_pooling, pooling_of_text
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenEmbeddings

# float (rows, width) on the model's device, and a copy of the states of each window that Spans and
# Tokens need, float32 (wordpieces, width); none if they need none
PooledRows = tuple[Floats2d, list[numpy.ndarray]]


class SentencePooling(ConfiguredModel[EncodedSpans, PooledRows]):
    """Pool each row of each Doc, average the windows of a long row, and finish the vectors.

    To finish is to apply a dense layer, normalization and truncation, as far as there are any. The
    attr upstream_normalize says whether the folder of a transformer of another package normalizes.

    pooling (str): see make_pooling.
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
        layers: list[Model] = [make_pooling(pooling), normalization()]
        if dense is not None:
            layers.append(dense)
        super().__init__(
            "sentence_pooling",
            SentencePooling.pool_rows,
            init=_init,
            layers=layers,
            attrs={"upstream_normalize": False},
        )
        self.pooling_name = pooling
        self.normalize = normalize
        self.truncate_dim = truncate_dim

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
                f"the folder. {remedy}Set normalize = true or false to use the transformer and the "
                f"pooling without {unknown}."
            )
        return folder.normalize

    def pool_rows(
        self, batch: EncodedSpans, is_train: bool, settings: EncodeSettings = DEFAULT_SETTINGS
    ) -> tuple[PooledRows, Callable[[Array], Any]]:
        """Return the vectors of rows: windows are pooled and averaged, the vectors finished.

        RETURNS (PooledRows, Callable): from the gradient of the vectors to what the backprop of
            batch returns.
        """
        finishing = self._finishing(batch.rows.settings, settings.truncate_dim)
        windows, copies, backprop_windows = self._pool_windows(
            batch, is_train, settings.truncate_dim
        )
        vectors, backprop_rows = _row_vectors(
            self.ops,
            finishing,
            windows,
            batch.rows.row_of,
            batch.rows.window_weights,
            is_train=is_train,
        )
        return (vectors, copies), lambda d_vectors: backprop_windows(backprop_rows(d_vectors))

    def _finishing(
        self, folder: SentenceTransformersConfig | None, truncate_dim: int | None
    ) -> list[Model[Floats2d, Floats2d]]:
        """Return the layers that finish the vector of a row: dense, unit length, truncation."""
        layers = []
        if self.dense is not None:
            layers.append(self.dense)
        if self.normalizes(folder):
            layers.append(self.layers[1])
        kept_width = self._kept_width(folder, truncate_dim)
        if kept_width:
            layers.append(truncation(kept_width))
        return layers

    def _pool_windows(
        self, batch: EncodedSpans, is_train: bool, truncate_dim: int | None
    ) -> tuple[Floats2d, list[numpy.ndarray], Callable[[Array], Any]]:
        """Pool the windows of a batch, part by part as the encoder gives their states.

        RETURNS (float (windows, width), list[ndarray], Callable): the pooled windows, copies of the
            states that Spans and Tokens need, see PooledRows, and from the gradient of the windows
            to what the backprop of batch returns.
        """
        n_windows = len(batch.lengths)
        windows: Array = None
        copies: list[numpy.ndarray] = []
        callbacks = []
        for part in batch.states:
            if windows is None:
                width = part.values.shape[1]
                # Or its error
                self.width(width, batch.rows.settings, truncate_dim=truncate_dim)
                shape = (n_windows, self.pooled_width(width))
                windows = self.ops.xp.zeros(shape, dtype=part.values.dtype)
                if batch.kept is not None:
                    copies = [numpy.zeros((0, width), "f")] * n_windows
            for window, states in _kept_states(part, batch):
                copies[window] = states
            windows[part.windows], backprop_part = self._pool_part(part, batch.n_lead, is_train)
            if is_train:
                callbacks.append((part.windows, backprop_part))

        def backprop(d_windows: Array) -> object:
            return batch.backprop(
                [backprop_part(d_windows[numbers]) for numbers, backprop_part in callbacks]
            )

        return windows, copies, backprop

    def _pool_part(
        self, part: TokenEmbeddings, n_lead: int, is_train: bool
    ) -> tuple[Floats2d, Callable[[Array], Array]]:
        """Pool each window, without its first n_lead wordpieces.

        Merged windows, which have no special tokens, are pooled as text.
        """
        values = part.values
        lengths = part.lengths
        if not len(lengths):
            return self.ops.alloc2f(0, self.pooled_width(values.shape[1])), lambda d_pooled: values
        layer = self.layers[0]
        put_back = None
        if part.is_merged:
            layer = pooling_of_text(self.pooling_name)
        elif n_lead:
            layer = make_pooling(self.pooling_name, n_lead)
            values, lengths, put_back = _without_leading(values, lengths, n_lead)
        pooled, backprop_layer = layer(Ragged(values, cast(Any, lengths)), is_train)

        def backprop(d_pooled: Array) -> Array:
            d_values = backprop_layer(d_pooled).dataXd
            return d_values if put_back is None else put_back(d_values)

        return pooled, backprop


def _kept_states(part: TokenEmbeddings, batch: EncodedSpans) -> Iterator[tuple[int, numpy.ndarray]]:
    """Yield the number of each window, and a copy of the states that Spans and Tokens need.

    A view would keep the states of all windows in memory.
    """
    if batch.kept is None:
        return
    values = to_numpy(part.values)
    kept_starts = (numpy.cumsum(batch.lengths) - batch.lengths)[part.windows].tolist()
    lengths = part.lengths.tolist()
    start = 0
    for window, kept_start, length in zip(part.windows.tolist(), kept_starts, lengths, strict=True):
        is_kept = batch.kept[kept_start : kept_start + length]
        yield window, values[start : start + length][is_kept]
        start += length


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
    totals = numpy.bincount(row_of, weights=weights)
    averages, backprop_average = _average_windows(ops, windows, row_of, weights, totals)
    vectors: Any = averages
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
        return backprop_average(d_rows)

    return vectors, backprop


def _average_windows(
    ops: Ops,
    windows: Floats2d,
    row_of: numpy.ndarray,
    weights: numpy.ndarray,
    totals: numpy.ndarray,
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Average the windows of each row by weights that add up to totals, see _row_vectors."""
    counts = numpy.bincount(row_of)
    shares = (weights / numpy.maximum(totals, 1)[row_of])[:, None]
    shares = ops.xp.asarray(shares, dtype=windows.dtype)
    if len(counts) == len(row_of):
        return windows * shares, lambda d_rows: d_rows * shares
    lengths = ops.asarray1i(cast(Any, counts))
    averages = ops.reduce_sum(windows * shares, lengths)
    return averages, lambda d_rows: ops.backprop_reduce_sum(d_rows, lengths) * shares
