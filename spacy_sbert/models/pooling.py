"""From the states of windows to the vectors of rows.

pool windows >> average the windows of a row >> dense >> unit length >> truncation
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..errors import Errors
from ..validation import ConfiguredModel, WidthOrOff, check
from .encoded_docs import DEFAULT_SETTINGS, EncodeSettings
from .heads import (
    VectorLayer,
    VectorsAndBackprop,
    normalization,
    truncation,
    window_average,
    zero_rows,
)
from .poolings import make_pooling, pooling_of_text
from .sbert_config import SentenceTransformersConfig
from .span_batch import Array, EncodedSpans, TokenEmbeddings


class SentencePooling(ConfiguredModel[EncodedSpans, Floats2d]):
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
        dense: VectorLayer | None = None,
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
    def dense(self) -> VectorLayer | None:
        """The dense layer, None if there is none."""
        if len(self.layers) < 3:
            return None
        return self.layers[2]

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
        width = self.pooled_width(hidden)
        if self.dense is not None:
            width = self.dense.get_dim("nO")
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
        if self.truncate_dim or folder is None:
            return self.truncate_dim
        return folder.truncate_dim

    def normalizes(self, folder: SentenceTransformersConfig | None) -> bool:
        """Return whether vectors get unit length.

        folder: of the encoder, None if it is not known.
        """
        if self.normalize is not None:
            return self.normalize
        if folder is None:
            return self.attrs["upstream_normalize"]
        if folder.unknown_modules:
            raise _unknown_modules(folder)
        return folder.normalize

    def pool_rows(
        self, batch: EncodedSpans, is_train: bool, settings: EncodeSettings = DEFAULT_SETTINGS
    ) -> tuple[Floats2d, Callable[[Floats2d], Any]]:
        """Return the vectors of rows: windows are pooled and averaged, the vectors finished.

        RETURNS (float (rows, width), Callable): the vectors, on the model's device, and from their
            gradient to what the backprop of batch returns.
        """
        rows = batch.rows
        # It may raise: before the states are computed
        finishing = self._finishing(rows.settings, settings.truncate_dim)
        windows, backprop_windows = self._pool_windows(batch, is_train, settings.truncate_dim)
        if len(rows.row_of) > len(rows.spans):
            finishing.insert(0, window_average(rows.row_of, rows.window_weights))
        has_text = rows.has_text
        if not has_text.all():
            # A dense layer makes a vector of zeros, too
            finishing.append(zero_rows(numpy.flatnonzero(~has_text)))
        vectors = windows
        callbacks = [backprop_windows]
        for layer in finishing:
            vectors, backprop_layer = layer(vectors, is_train)
            callbacks.append(backprop_layer)

        def backprop(d_vectors: Floats2d) -> object:
            gradient: Any = d_vectors
            for callback in reversed(callbacks):
                gradient = callback(gradient)
            return gradient

        return vectors, backprop

    def _finishing(
        self, folder: SentenceTransformersConfig | None, truncate_dim: int | None
    ) -> list[VectorLayer]:
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
    ) -> tuple[Floats2d, Callable[[Floats2d], Any]]:
        """Pool the windows of a batch, part by part as the encoder gives their states.

        RETURNS (float (windows, width), Callable): the pooled windows, and from their gradient to
            what the backprop of batch returns.
        """
        windows: Array = None
        callbacks = []
        for part in batch.states:
            if windows is None:
                hidden = part.values.shape[1]
                # Raises if that is less than truncate_dim
                self.width(hidden, batch.rows.settings, truncate_dim=truncate_dim)
                shape = (len(batch.lengths), self.pooled_width(hidden))
                windows = self.ops.xp.zeros(shape, dtype=part.values.dtype)
            windows[part.windows], backprop_part = self._pool_part(part, batch.n_lead, is_train)
            if is_train:
                callbacks.append((part.windows, backprop_part))

        def backprop(d_windows: Array) -> object:
            return batch.backprop(
                [backprop_part(d_windows[numbers]) for numbers, backprop_part in callbacks]
            )

        return windows, backprop

    def _pool_part(self, part: TokenEmbeddings, n_lead: int, is_train: bool) -> VectorsAndBackprop:
        """Pool each window, without its first n_lead wordpieces.

        Merged windows, which have no special tokens, are pooled as text.
        """
        states = part.values
        if not len(part.lengths):
            return self.ops.alloc2f(0, self.pooled_width(states.shape[1])), lambda d_pooled: states
        layer = self.layers[0]
        if part.is_merged:
            layer = pooling_of_text(self.pooling_name)
        elif n_lead:
            layer = make_pooling(self.pooling_name, n_lead)
        pooled, backprop = layer(Ragged(states, cast(Any, part.lengths)), is_train)
        return pooled, lambda d_pooled: backprop(d_pooled).dataXd


def _init(model: SentencePooling, X: object = None, Y: object = None) -> None:
    if model.dense is not None:
        model.dense.initialize()


def _unknown_modules(folder: SentenceTransformersConfig) -> ValueError:
    """Return the error for a folder with modules that are not followed."""
    unknown = ", ".join(folder.unknown_modules)
    remedy = ""
    if set(folder.unknown_modules) == {"Dense"}:
        remedy = f"It comes with python -m spacy sbert import {folder.name} OUT. "
    return ValueError(
        f"The folder {folder.name} describes a sentence encoder with {unknown}, and normalize = "
        f'"auto" follows the folder. {remedy}Set normalize = true or false to use the transformer '
        f"and the pooling without {unknown}."
    )
