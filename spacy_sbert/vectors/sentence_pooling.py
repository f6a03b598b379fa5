"""From a transformer's wordpiece states to one vector a row, and back."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy
from spacy_transformers.data_classes import TransformerData
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..encoder.engine.windows import spread
from ..encoder.heard import row_states
from ..encoder.rows import Pieces, Rows, RowStates
from ..encoder.settings import FolderSettings
from ..encoder.states import Array, States
from ..errors.checks import WidthOrOff, check
from ..errors.configured import Configured
from ..layers.leading import without_leading
from ..layers.pooling import make_pooling, stretch_pooling
from ..layers.truncation import truncation
from ..layers.unit_length import unit_length
from ..similarity import as_numpy
from .call import AS_CONFIGURED, Call
from .encoded import EncodedDoc, wordpieces_of
from .errors import Errors
from .row_vectors import row_vectors


class SentencePooling(Configured[list[TransformerData], list[EncodedDoc]]):
    """Pool each row of each Doc, average the windows of a row that was too long for one, and finish: a dense layer,
    normalisation, truncation, as far as there are any.

    Input: one TransformerData a Doc. Output: one EncodedDoc a Doc. Its backprop takes the gradient of each EncodedDoc's
    vectors, float (rows, width), and returns the gradient of each TransformerData that has rows. Its attr
    upstream_normalize: what the folder of a transformer says that does not tell it with its output.

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
        super().__init__("sentence_pooling", forward, init=init, layers=layers, attrs=attrs)
        self.pooling_name = pooling
        self.normalize = normalize
        self.truncate_dim = truncate_dim

    @property
    def dense(self) -> Model[Floats2d, Floats2d] | None:
        """The dense layer, None if there is none."""
        return self.layers[2] if len(self.layers) > 2 else None

    def pooled_width(self, hidden: int) -> int:
        """The width of pooled vectors, before a dense layer; hidden (int): that of the encoder's states."""
        return hidden * len(self.pooling_name.split("+"))

    def width(self, hidden: int, settings: FolderSettings | None = None, *, truncate_dim: int | None = None) -> int:
        """The width of the vectors; hidden, settings: of the encoder. truncate_dim (int): in place of the pipe's own.

        RAISES (ValueError): if they have no so many dimensions.
        """
        width = self.pooled_width(hidden) if self.dense is None else self.dense.get_dim("nO")
        kept = self._truncated(settings, truncate_dim) or width
        if kept > width:
            raise ValueError(Errors.TRUNCATE_DIM.format(given=kept, width=width))
        return kept

    def finishing(
        self, settings: FolderSettings | None, normalize: bool, truncate_dim: int | None
    ) -> list[Model[Floats2d, Floats2d]]:
        """The layers that finish a pooled vector.

        settings (FolderSettings): of the encoder; None if nobody knows. normalize (bool): whether to normalise.
        truncate_dim (int): in place of the pipe's own, None for that.
        """
        width = self._truncated(settings, truncate_dim)
        layers = [] if self.dense is None else [self.dense]
        return [*layers, *([self.layers[1]] if normalize else []), *([truncation(width)] if width else [])]

    def _truncated(self, settings: FolderSettings | None, truncate_dim: int | None) -> int:
        """To how many dimensions vectors are truncated; 0 for not at all."""
        if truncate_dim is not None:
            return truncate_dim
        return self.truncate_dim or (settings.truncate_dim if settings else 0)

    def normalizes(self, settings: FolderSettings | None) -> bool:
        """Whether vectors get unit length, which the folder of the encoder may say.

        settings (FolderSettings): what it says; None if nobody knows.
        RAISES (ValueError): if the folder asks for more than pooling and normalisation.
        """
        if self.normalize is not None:
            return self.normalize
        if settings is None:
            return self.attrs["upstream_normalize"]
        if settings.unknown_modules:
            unknown = ", ".join(settings.unknown_modules)
            raise ValueError(Errors.UNKNOWN_MODULES.format(folder=settings.name, unknown=unknown))
        return settings.normalize

    def without_rows(self, width: int) -> EncodedDoc:
        """What a Doc without text gets; width (int): of the vectors of others."""
        return EncodedDoc(Rows.none(), self.ops.alloc2f(0, width), self.pooling_name, False, None)

    def pool(self, states: Ragged, is_train: bool, *, is_stretch: bool) -> tuple[Floats2d, Callable[[Array], Ragged]]:
        """Pool each window, or each stretch of text, which has no special tokens of its own."""
        layer = stretch_pooling(self.pooling_name) if is_stretch else self.layers[0]
        return layer(states, is_train)


@dataclass
class Pooled:
    """The vectors of rows.

    vectors: float (rows, width), on the model's device.
    normalize: whether they have unit length.
    states: float32 (wordpieces, width) of the text of each window, NumPy arrays of their own; None for a window of
        which nobody asked for them.
    """

    vectors: Array
    normalize: bool
    states: list[numpy.ndarray | None]


def init(model: SentencePooling, X: Any = None, Y: Any = None) -> None:
    if model.dense is not None:
        model.dense.initialize()


def forward(model: SentencePooling, datas: list[TransformerData], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return encode_docs(model, row_states(datas), len(datas), is_train)


def encode_docs(
    model: SentencePooling,
    batch: RowStates | None,
    n_docs: int,
    is_train: bool,
    *,
    call: Call = AS_CONFIGURED,
    width: int = 0,
) -> tuple[list[EncodedDoc], Callable[[list[Array]], Any]]:
    """The rows of Docs and their vectors; the callback takes the gradient of the vectors of each Doc.

    batch (RowStates): of the Docs; None if none has a row.
    n_docs (int): how many there are.
    call (Call): what is not as the config says.
    width (int): of vectors, where there is no row to tell.
    """
    if batch is None:
        return [model.without_rows(width) for _ in range(n_docs)], lambda d_vectors: []
    pooled, backprop = pool_rows(model, batch, is_train, call=call)
    wordpieces = iter(wordpieces_of(batch, batch.pieces, pooled.states) if batch.pieces else ())
    encoded = []
    for row, window in zip(pairwise(batch.borders), pairwise(batch.window_borders), strict=True):
        if row[0] == row[1]:
            encoded.append(model.without_rows(pooled.vectors.shape[1]))
            continue
        own, vectors = batch.rows.part(slice(*row), slice(*window)), pooled.vectors[slice(*row)]
        kinds = model.pooling_name, pooled.normalize
        encoded.append(EncodedDoc(own, vectors, *kinds, next(wordpieces, None), model.dense is not None))
    return encoded, lambda d_vectors: backprop(model.ops.xp.concatenate(d_vectors))


def pool_rows(
    model: SentencePooling, batch: RowStates, is_train: bool, *, call: Call = AS_CONFIGURED
) -> tuple[Pooled, Callable[[Array], Any]]:
    """The vectors of rows: their windows pooled as the encoder gives them, averaged and finished.

    RETURNS (Pooled, Callable): from the gradient of the vectors to what the backprop of batch returns.
    """
    xp, settings = model.ops.xp, batch.rows.settings
    normalize = model.normalizes(settings)
    finishing = model.finishing(settings, normalize, call.truncate_dim)
    windows: Array = None
    parts, callbacks = [], []
    states: list[numpy.ndarray | None] = [None] * len(batch.lengths)
    starts = numpy.cumsum(batch.lengths) - batch.lengths
    for part in batch.states:
        values, lengths, backprop_lead = without_leading(part.values, part.lengths, batch.n_lead)
        ragged = Ragged(values, model.ops.asarray1i(lengths))  # type: ignore[arg-type]
        pooled, backprop_pool = model.pool(ragged, is_train, is_stretch=part.is_stretch)
        if windows is None:
            model.width(part.values.shape[1], settings, truncate_dim=call.truncate_dim)
            windows = xp.zeros((len(batch.lengths), pooled.shape[1]), dtype=pooled.dtype)
        windows[part.windows] = pooled
        if is_train:
            parts.append(part.windows)
            callbacks.append((backprop_lead, backprop_pool))
        if batch.pieces is not None:
            _keep(states, part, starts, batch.pieces)
    weights = batch.rows.window_weights * batch.rows.has_text[batch.rows.row_of]
    vectors, backprop_rows = row_vectors(model.ops, finishing, windows, batch.rows.row_of, weights, is_train=is_train)

    def backprop(d_vectors: Array) -> Any:
        d_windows: Array = backprop_rows(d_vectors)
        found = zip(parts, callbacks, strict=True)
        return batch.backprop([lead(cast(Floats2d, pool(d_windows[own]).dataXd)) for own, (lead, pool) in found])

    return Pooled(vectors, normalize, states), backprop


def _keep(states: list[numpy.ndarray | None], part: States, starts: numpy.ndarray, pieces: Pieces) -> None:
    """Copy the states of each window that is wanted, so that none keeps those of its whole batch in memory."""
    found, ends = as_numpy(part.values), numpy.cumsum(part.lengths)
    of_text = pieces.of_text[spread(starts[part.windows], part.lengths)]
    for window, start, end in zip(part.windows.tolist(), (ends - part.lengths).tolist(), ends.tolist(), strict=True):
        if pieces.windows[window]:
            states[window] = found[start:end][of_text[start:end]]
