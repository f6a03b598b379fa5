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

from ..encoder.rows import RowBatch, Rows, rows_of
from ..errors import Errors
from ..similarity import as_numpy
from ..span_pooling import finish
from ..types import EncoderSettings
from .encoded import EncodedDoc, WordpieceStates
from .mean_pooling import Pooling
from .row_vectors import row_vectors
from .unit_length import unit_length


class SentencePooling(Model[list[TransformerData], list[EncodedDoc]]):
    """Pool each row of each Doc, average the windows of a row that was too long for one, and normalise.

    Input: one TransformerData a Doc. Output: one EncodedDoc a Doc. Its backprop takes the gradient of each EncodedDoc's
    vectors, float (rows, width), and returns the gradient of each TransformerData that has rows. Its attrs:
    token_vectors, whether to return what other Spans and Tokens need; width, of the vectors, once known;
    upstream_normalize, what the folder of a transformer says that does not tell it with its output.

    pooling (Model): from the states of windows to one vector each: mean_pooling, max_pooling or cls_pooling.
    pooling_name (str): "mean", "max" or "cls", for the Spans that are no rows.
    normalize (bool): whether vectors get unit length; None to do as the encoder's folder says.
    """

    def __init__(self, pooling: Pooling, pooling_name: str, normalize: bool | None):
        attrs = {"token_vectors": True, "width": 0, "upstream_normalize": False}
        super().__init__("sentence_pooling", forward, layers=[pooling, unit_length()], attrs=attrs)
        self.pooling_name = pooling_name  # no attrs: those are saved, and would win over the config when loaded
        self.normalize = normalize

    def copy(self) -> "SentencePooling":
        """A copy with attrs of its own."""
        copied = SentencePooling(self.layers[0].copy(), self.pooling_name, self.normalize)
        copied.attrs.update(self.attrs)
        return copied

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

    def without_rows(self) -> EncodedDoc:
        """What a Doc without text gets."""
        return EncodedDoc(Rows.none(), self.ops.alloc2f(0, self.attrs["width"]), self.pooling_name, False, None)


def forward(model: SentencePooling, datas: list[TransformerData], is_train: bool) -> tuple[list[EncodedDoc], Callable]:
    held = {i: data for i, data in enumerate(datas) if "last_hidden_state" in data.model_output}
    batch = list(held.values())
    if batch:
        model.attrs["width"] = batch[0].width
    encoded = [model.without_rows() for _ in datas]
    if not batch:
        return encoded, lambda d_vectors: []
    rows = [rows_of(data) for data in batch]
    unit = model.normalizes(rows[0].settings)
    places = [numpy.flatnonzero(as_numpy(data.wordpieces.attention_mask)) for data in batch]
    states = [_flat_states(model, data, kept) for data, kept in zip(batch, places, strict=True)]
    lengths = numpy.concatenate([as_numpy(d.wordpieces.attention_mask).sum(axis=1) for d in batch]).astype("int32")
    vectors, backprop_vectors = pool_rows(model, states, lengths, rows, unit, is_train)
    for i, data, r, kept, own, found in zip(held, batch, rows, places, states, vectors, strict=True):
        wordpieces = None if is_train else _wordpieces(data, kept, own, r.foreign)
        if wordpieces is not None and r.foreign:
            found = _pool_tokens(model, wordpieces, unit)
        wanted = wordpieces if model.attrs["token_vectors"] else None
        encoded[i] = EncodedDoc(r, found, model.pooling_name, unit, wanted)

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
    normalize: bool,
    is_train: bool,
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    """The vectors of the rows of several Docs, and from their gradient to that of the states.

    states (list[float (wordpieces, width)]): of each Doc's windows, one after another.
    lengths (int32 (windows,)): the wordpieces in each window of all Docs.
    rows (list[Rows]): of each Doc.
    """
    pool, xp = model.layers[0], model.ops.xp
    windows, backprop_pool = pool(Ragged(xp.concatenate(states), model.ops.asarray1i(cast(Any, lengths))), is_train)
    vectors, backprop_rows = vectors_of_windows(model, windows, rows, normalize=normalize, is_train=is_train)
    borders = [0, *accumulate(len(own) for own in states)]

    def backprop(d_vectors: list[Floats2d]) -> list[Floats2d]:
        d_states = backprop_pool(backprop_rows(xp.concatenate(d_vectors))).dataXd
        return [d_states[start:end] for start, end in pairwise(borders)]

    return vectors, backprop


def vectors_of_windows(
    model: SentencePooling, windows: Floats2d, rows: list[Rows], *, normalize: bool, is_train: bool
) -> tuple[list[Floats2d], Callable[[Floats2d], Floats2d]]:
    """The vectors of the rows of each Doc, float (rows, width), from those of all their windows; see row_vectors."""
    borders = [0, *accumulate(len(r.spans) for r in rows)]
    row_of = numpy.concatenate([r.row_of + first for r, first in zip(rows, borders, strict=False)])
    weights = numpy.concatenate([r.window_weights * r.has_text[r.row_of] for r in rows])
    unit = model.layers[1]
    vectors, backprop = row_vectors(unit, windows, row_of, weights, normalize=normalize, is_train=is_train)
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


def _wordpieces(data: TransformerData, kept: numpy.ndarray, states: Floats2d, foreign: bool) -> WordpieceStates:
    batch = data.wordpieces
    if isinstance(batch, RowBatch) and batch.characters is not None and not foreign:
        characters = batch.characters.reshape(-1, 2)[kept]
        of_text = numpy.flatnonzero(characters[:, 1] > characters[:, 0])
        return WordpieceStates(cast(Any, states)[of_text], characters[of_text], None)
    mask = as_numpy(data.wordpieces.attention_mask)
    align_lengths, flat_place = as_numpy(data.align.lengths), numpy.cumsum(mask.reshape(-1) > 0) - 1
    pieces = flat_place[as_numpy(data.align.dataXd).reshape(-1)]
    if foreign:
        pieces, align_lengths = _each_token_once(pieces, align_lengths, mask.sum(axis=1).astype("int64"))
    return WordpieceStates(states, None, Ragged(cast(Any, pieces), cast(Any, align_lengths)))


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


def _pool_tokens(model: SentencePooling, found: WordpieceStates, unit: bool) -> Floats2d:
    """The vector of a Doc whose windows overlap: each token once, without special tokens."""
    chosen = as_numpy(found.states)[numpy.unique(cast(Any, found.align).dataXd)]
    if not len(chosen):
        return model.ops.alloc2f(1, found.states.shape[1])
    value = chosen.max(axis=0) if model.pooling_name == "max" else chosen.sum(axis=0)
    vector = cast(numpy.ndarray, finish([(value, len(chosen))], model.pooling_name, unit))
    return model.ops.asarray2f(cast(Floats2d, vector.reshape(1, -1)))
