"""From a transformer's wordpiece states to one vector a row, and back."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from spacy_transformers.data_classes import TransformerData
from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_array_module
from transformers.file_utils import ModelOutput

from ..encoder.align import among
from ..encoder.rows import RowBatch, Rows, outermost, rows_of
from ..encoder.settings import EncoderSettings
from ..errors.checks import WidthOrOff, check
from ..layers.leading import without_leading
from ..layers.pooling import make_pooling
from ..layers.truncation import truncation
from ..layers.unit_length import unit_length
from ..similarity import as_numpy
from .encoded import EncodedDoc, WordpieceStates
from .errors import Errors
from .row_vectors import row_vectors
from .span_pooling import stretch_vector


class SentencePooling(Model[list[TransformerData], list[EncodedDoc]]):
    """Pool each row of each Doc, average the windows of a row that was too long for one, and finish: a dense layer,
    normalisation, truncation, as far as there are any.

    Input: one TransformerData a Doc. Output: one EncodedDoc a Doc. Its backprop takes the gradient of each EncodedDoc's
    vectors, float (rows, width), and returns the gradient of each TransformerData that has rows. Its attrs:
    token_vectors, whether to return what other Spans and Tokens need; upstream_normalize, what the folder of a
    transformer says that does not tell it with its output.

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
        attrs = {"token_vectors": True, "upstream_normalize": False}
        layers: list[Model] = [make_pooling(pooling), unit_length(), *([] if dense is None else [dense])]
        super().__init__("sentence_pooling", forward, init=init, layers=layers, attrs=attrs)
        self.pooling_name = pooling  # no attrs: those are saved, and would win over the config when loaded
        self.normalize = normalize
        self.truncate_dim = truncate_dim

    @property
    def dense(self) -> Model[Floats2d, Floats2d] | None:
        """The dense layer, None if there is none."""
        return self.layers[2] if len(self.layers) > 2 else None

    def copy(self) -> "SentencePooling":
        """A copy with attrs of its own."""
        dense = None if self.dense is None else self.dense.copy()
        copied = SentencePooling(self.pooling_name, self.normalize, dense=dense, truncate_dim=self.truncate_dim)
        copied.attrs.update(self.attrs)
        return copied

    def pooled_width(self, hidden: int) -> int:
        """The width of pooled vectors, before a dense layer; hidden (int): that of the encoder's states."""
        return hidden * len(self.pooling_name.split("+"))

    def width(self, hidden: int, settings: EncoderSettings | None = None, *, truncate_dim: int | None = None) -> int:
        """The width of the vectors; hidden, settings: of the encoder. truncate_dim (int): in place of the pipe's own.

        RAISES (ValueError): if they have no so many dimensions.
        """
        width = self.pooled_width(hidden) if self.dense is None else self.dense.get_dim("nO")
        kept = self._truncated(settings, truncate_dim) or width
        if kept > width:
            raise ValueError(Errors.TRUNCATE_DIM.format(given=kept, width=width))
        return kept

    def finishing(
        self, settings: EncoderSettings | None, normalize: bool, truncate_dim: int | None
    ) -> list[Model[Floats2d, Floats2d]]:
        """The layers that finish a pooled vector.

        settings (EncoderSettings): of the encoder; None if nobody knows. normalize (bool): whether to normalise.
        truncate_dim (int): in place of the pipe's own, None for that.
        """
        width = self._truncated(settings, truncate_dim)
        layers = [] if self.dense is None else [self.dense]
        return [*layers, *([self.layers[1]] if normalize else []), *([truncation(width)] if width else [])]

    def _truncated(self, settings: EncoderSettings | None, truncate_dim: int | None) -> int:
        """To how many dimensions vectors are truncated; 0 for not at all."""
        if truncate_dim is not None:
            return truncate_dim
        return self.truncate_dim or (settings.truncate_dim if settings else 0)

    def normalizes(self, settings: EncoderSettings | None) -> bool:
        """Whether vectors get unit length, which the folder of the encoder may say.

        settings (EncoderSettings): what it says; None if nobody knows.
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


def init(model: SentencePooling, X: Any = None, Y: Any = None) -> None:
    if model.dense is not None:
        model.dense.initialize()


def forward(model: SentencePooling, datas: list[TransformerData], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    return pool_docs(model, datas, is_train)


def pool_docs(
    model: SentencePooling, datas: list[TransformerData], is_train: bool, *, truncate_dim: int | None = None
) -> tuple[list[EncodedDoc], Callable]:
    """See SentencePooling; truncate_dim (int): in place of the pipe's own."""
    held = {i: data for i, data in enumerate(datas) if "last_hidden_state" in data.model_output}
    batch = list(held.values())
    if not batch:
        return [model.without_rows(0) for _ in datas], lambda d_vectors: []
    rows = [rows_of(data) for data in batch]
    settings = rows[0].settings
    unit = model.normalizes(settings)
    finishing = model.finishing(settings, unit, truncate_dim)
    width = model.width(batch[0].width, settings, truncate_dim=truncate_dim)
    encoded = [model.without_rows(width) for _ in datas]
    places = [numpy.flatnonzero(as_numpy(data.wordpieces.attention_mask)) for data in batch]
    states = [_flat_states(model, data, kept) for data, kept in zip(batch, places, strict=True)]
    lengths = numpy.concatenate([as_numpy(d.wordpieces.attention_mask).sum(axis=1) for d in batch]).astype("int32")
    lead = max((getattr(data.wordpieces, "n_lead", 0) for data in batch), default=0)
    vectors, backprop_vectors = pool_rows(model, states, lengths, rows, lead, finishing, is_train)
    for i, data, r, kept, own, found in zip(held, batch, rows, places, states, vectors, strict=True):
        wordpieces = None if is_train else _wordpieces(data, kept, own, r)
        if wordpieces is not None and r.foreign:
            found = _pool_tokens(model, wordpieces, finishing, width)
        wanted = wordpieces if model.attrs["token_vectors"] else None
        encoded[i] = EncodedDoc(r, found, model.pooling_name, unit, wanted, model.dense is not None)

    def backprop(d_vectors: list[Floats2d]) -> list[TransformerData]:
        # A Doc without rows is not in the transformer's batch: positions shift.
        d_states = backprop_vectors([d_vectors[i] for i in held])
        return [_padded(data, kept, d_own) for data, kept, d_own in zip(batch, places, d_states, strict=True)]

    return encoded, backprop


def pool_rows(
    model: SentencePooling,
    states: list[Floats2d],
    lengths: numpy.ndarray,
    rows: list[Rows],
    lead: int,
    finishing: list[Model[Floats2d, Floats2d]],
    is_train: bool,
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    """The vectors of the rows of several Docs, and from their gradient to that of the states.

    states (list[float (wordpieces, width)]): of each Doc's windows, one after another.
    lengths (int32 (windows,)): the wordpieces in each window of all Docs.
    rows (list[Rows]): of each Doc.
    lead (int): how many wordpieces at the start of each window are not pooled. finishing (list[Model]): see
        row_vectors.
    """
    pool, xp = model.layers[0], model.ops.xp
    pooled, pooled_lengths, backprop_lead = without_leading(xp.concatenate(states), lengths, lead)
    windows, backprop_pool = pool(Ragged(pooled, model.ops.asarray1i(cast(Any, pooled_lengths))), is_train)
    vectors, backprop_rows = vectors_of_windows(model, windows, rows, finishing, is_train=is_train)
    borders = [0, *accumulate(len(own) for own in states)]

    def backprop(d_vectors: list[Floats2d]) -> list[Floats2d]:
        d_states = backprop_lead(backprop_pool(backprop_rows(xp.concatenate(d_vectors))).dataXd)
        return [d_states[start:end] for start, end in pairwise(borders)]

    return vectors, backprop


def vectors_of_windows(
    model: SentencePooling,
    windows: Floats2d,
    rows: list[Rows],
    finishing: list[Model[Floats2d, Floats2d]],
    *,
    is_train: bool,
) -> tuple[list[Floats2d], Callable[[Floats2d], Floats2d]]:
    """The vectors of the rows of each Doc, float (rows, width), from those of all their windows; see row_vectors."""
    borders = [0, *accumulate(len(r.spans) for r in rows)]
    row_of = numpy.concatenate([r.row_of + first for r, first in zip(rows, borders, strict=False)])
    weights = numpy.concatenate([r.window_weights * r.has_text[r.row_of] for r in rows])
    vectors, backprop = row_vectors(model.ops, finishing, windows, row_of, weights, is_train=is_train)
    return [vectors[start:end] for start, end in pairwise(borders)], backprop


def _flat_states(model: SentencePooling, data: TransformerData, kept: numpy.ndarray) -> Floats2d:
    """The states without padding, (wordpieces, width). Half precision is for the transformer: sums over wordpieces
    would lose too much in it."""
    xp = model.ops.xp
    states = data.model_output["last_hidden_state"]  # (windows, wordpieces, width)
    flat = states.reshape(-1, states.shape[-1])[xp.asarray(kept)]
    return flat.astype(xp.float32) if flat.dtype == xp.float16 else flat


def _padded(data: TransformerData, kept: numpy.ndarray, d_own: Floats2d) -> TransformerData:
    """The gradient of a Doc's states, in the shape and dtype that the transformer gave them."""
    given = data.model_output["last_hidden_state"]
    d_states = get_array_module(given).zeros_like(given)
    d_states.reshape(-1, given.shape[-1])[kept] = d_own.astype(given.dtype, copy=False)
    return TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_states), data.align)


def _wordpieces(data: TransformerData, kept: numpy.ndarray, states: Floats2d, rows: Rows) -> WordpieceStates:
    batch, foreign = data.wordpieces, rows.foreign
    mask = as_numpy(batch.attention_mask)
    lengths = mask.sum(axis=1).astype("int64")
    context = numpy.repeat(outermost(rows.spans)[rows.row_of], lengths)  # (wordpieces,)
    if isinstance(batch, RowBatch) and batch.characters is not None and not foreign:
        characters = batch.characters.reshape(-1, 2)[kept]
        of_text = numpy.flatnonzero((characters[:, 1] > characters[:, 0]) & context)
        return WordpieceStates(cast(Any, states)[of_text], characters[of_text], None)
    align_lengths, flat_place = as_numpy(data.align.lengths), numpy.cumsum(mask.reshape(-1) > 0) - 1
    pieces = flat_place[as_numpy(data.align.dataXd).reshape(-1)]
    if foreign:
        pieces, align_lengths = _each_token_once(pieces, align_lengths, lengths)
    align = among(Ragged(cast(Any, pieces), cast(Any, align_lengths)), context)
    return WordpieceStates(states if context.all() else cast(Any, states)[context], None, align)


def _each_token_once(
    pieces: numpy.ndarray, align_lengths: numpy.ndarray, lengths: numpy.ndarray
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The alignment to the first of the overlapping windows that a token is in."""
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    # A token's wordpieces ascend: its first is in the first window.
    starts = numpy.cumsum(align_lengths) - align_lengths
    tokens = numpy.repeat(numpy.arange(len(align_lengths)), align_lengths)
    kept = windows == windows[starts[tokens]]
    return pieces[kept], numpy.bincount(tokens[kept], minlength=len(align_lengths))


def _pool_tokens(
    model: SentencePooling, found: WordpieceStates, finishing: list[Model[Floats2d, Floats2d]], width: int
) -> Floats2d:
    """The vector of a Doc whose windows overlap: each token once, without special tokens."""
    chosen = as_numpy(found.states)[numpy.unique(cast(Any, found.align).dataXd)]
    if not len(chosen):
        return model.ops.alloc2f(1, width)
    vector = model.ops.asarray2f(cast(Floats2d, stretch_vector(chosen, model.pooling_name)[None]))
    for layer in finishing:
        vector = layer.predict(vector)
    return vector
