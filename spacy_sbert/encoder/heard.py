"""What a listener hears of a shared transformer, as flat states of the rows of its Docs."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy
from spacy_transformers.data_classes import TransformerData
from thinc.types import Ragged
from thinc.util import get_array_module
from transformers.file_utils import ModelOutput

from ..similarity import as_numpy
from .padded import RowBatch
from .rows import Pieces, Rows, RowStates, borders_of, outermost
from .states import Array, States


@dataclass
class _Heard:
    """The windows of one Doc.

    rows: of the Doc. lengths: int64 (windows,), the wordpieces of each, N in all. places: int64 (N,), where these stand
    in the flattened padded batch. of_text, characters: see Pieces. align: gives the alignment of tokens to the N
    wordpieces; None where characters are known.
    """

    rows: Rows
    lengths: numpy.ndarray
    places: numpy.ndarray
    of_text: numpy.ndarray
    characters: numpy.ndarray
    align: Callable[[], Ragged] | None


def row_states(datas: list[TransformerData]) -> RowStates | None:
    """The rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc, from whatever batch, padded.
    RETURNS (RowStates): its backprop returns the gradient of each TransformerData that has rows; None if none has.
    """
    batch = [data for data in datas if "last_hidden_state" in data.model_output]
    if not batch:
        return None
    docs = [_heard(data) for data in batch]
    counts = [0 if "last_hidden_state" not in data.model_output else 1 for data in datas]
    of_datas = [docs[place - 1] if count else None for place, count in zip(numpy.cumsum(counts), counts, strict=True)]
    window_borders = borders_of(0 if doc is None else len(doc.lengths) for doc in of_datas)
    kinds = [[i for i, doc in enumerate(docs) if doc.rows.foreign == is_stretch] for is_stretch in (False, True)]
    firsts = numpy.array([border for border, count in zip(window_borders, counts, strict=False) if count])
    parts = [(own, _states_of(batch, docs, own, firsts)) for own in kinds if own]

    def backprop(d_values: list[Array]) -> list[TransformerData]:
        d_datas: dict[int, TransformerData] = {}
        for (own, _), d_part in zip(parts, d_values, strict=True):
            borders = pairwise(borders_of(len(docs[i].places) for i in own))
            d_datas |= {
                i: _padded(batch[i], docs[i], d_part[slice(*border)]) for i, border in zip(own, borders, strict=True)
            }
        return [d_datas[i] for i in range(len(batch))]

    return RowStates(
        rows=_joined([doc.rows for doc in docs]),
        row_borders=borders_of(0 if doc is None else len(doc.rows.spans) for doc in of_datas),
        window_borders=window_borders,
        lengths=numpy.concatenate([doc.lengths for doc in docs]),
        states=[states for _, states in parts],
        backprop=backprop,
        pieces=Pieces(
            numpy.concatenate([doc.of_text for doc in docs]),
            numpy.concatenate([doc.characters for doc in docs]),
            lambda: [doc.align() if doc.align else None for doc in docs],
        ),
    )


def _states_of(batch: list[TransformerData], docs: list[_Heard], own: list[int], firsts: numpy.ndarray) -> States:
    """Of some of the Docs. Half precision is for the transformer: sums over wordpieces would lose too much in it."""
    given = [batch[i].model_output["last_hidden_state"] for i in own]  # (windows, wordpieces, width)
    xp = get_array_module(given[0])
    flat = [
        states.reshape(-1, states.shape[-1])[xp.asarray(docs[i].places)] for states, i in zip(given, own, strict=True)
    ]
    values = xp.concatenate(flat)
    values = values.astype(xp.float32) if values.dtype == xp.float16 else values
    windows = numpy.concatenate([firsts[i] + numpy.arange(len(docs[i].lengths)) for i in own])
    return States(windows, numpy.concatenate([docs[i].lengths for i in own]), values, docs[own[0]].rows.foreign)


def _padded(data: TransformerData, doc: _Heard, d_own: Array) -> TransformerData:
    """The gradient of a Doc's states, in the shape and dtype that the transformer gave them."""
    given = data.model_output["last_hidden_state"]
    d_states = get_array_module(given).zeros_like(given)
    d_states.reshape(-1, given.shape[-1])[doc.places] = d_own.astype(given.dtype, copy=False)
    return TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_states), data.align)


def _joined(rows: list[Rows]) -> Rows:
    """Those of several Docs as one."""
    borders = borders_of(len(own.spans) for own in rows)
    characters = [own.characters for own in rows if own.characters is not None]
    return Rows(
        numpy.concatenate([own.spans for own in rows]),
        numpy.concatenate([own.row_of + first for own, first in zip(rows, borders, strict=False)]),
        numpy.concatenate([own.window_weights for own in rows]),
        numpy.concatenate([own.has_text for own in rows]),
        numpy.concatenate([own.n_cut for own in rows]),
        rows[0].settings,
        numpy.concatenate(characters) if len(characters) == len(rows) else None,
        numpy.concatenate([numpy.full(len(own.spans), own.foreign) for own in rows]),
    )


def _heard(data: TransformerData) -> _Heard:
    """The rows of a Doc, as its encoder recorded them, or else as the alignment of tokens and wordpieces shows them."""
    batch = data.wordpieces
    mask = as_numpy(batch.attention_mask)
    lengths, places = mask.sum(axis=1).astype("int64"), numpy.flatnonzero(mask)
    rows = _recorded_rows(batch) if isinstance(batch, RowBatch) else _aligned_rows(data)
    if rows is None:
        return _stretch(data, lengths, places)
    if isinstance(batch, RowBatch) and batch.characters is not None:
        characters = batch.characters.reshape(-1, 2)[places]
        return _Heard(rows, lengths, places, characters[:, 1] > characters[:, 0], characters, None)
    no_characters = numpy.zeros((len(places), 2), dtype="int32")
    of_all = numpy.ones(len(places), dtype=bool)
    return _Heard(rows, lengths, places, of_all, no_characters, lambda: _flat_align(data, places))


def _flat_align(data: TransformerData, places: numpy.ndarray) -> Ragged:
    """The alignment of tokens to wordpieces counted without padding."""
    padded = as_numpy(data.align.dataXd).reshape(-1)
    return Ragged(numpy.searchsorted(places, padded), as_numpy(data.align.lengths))  # type: ignore[arg-type]


def _recorded_rows(batch: RowBatch) -> Rows | None:
    """None if rows overlap, sentences behind the row of their Doc left aside."""
    n_text, n_cut, settings = batch.n_text, batch.n_cut, batch.settings
    if len(batch.spans) == 1:  # as most Docs have it
        row_of = numpy.zeros(1, "int64")
        return Rows(batch.spans[:, 1:], row_of, n_text, n_text > 0, n_cut, settings, batch.row_characters)
    _, first, row_of = numpy.unique(batch.spans[:, 0], return_index=True, return_inverse=True)
    spans = batch.spans[first, 1:]
    apart = spans[1:] if outermost(spans).sum() == 1 else spans
    if (apart[1:, 0] < apart[:-1, 1]).any():
        return None
    has_text = numpy.bincount(row_of, weights=n_text) > 0
    cut = numpy.bincount(row_of, weights=n_cut).astype("int64")
    return Rows(spans, row_of, n_text, has_text, cut, settings, batch.row_characters[first])


def _aligned_rows(data: TransformerData) -> Rows | None:
    """None if a token is in two rows."""
    n_rows, row_width = data.wordpieces.input_ids.shape
    lengths = as_numpy(data.align.lengths)
    n_tokens = len(lengths)
    tokens = numpy.repeat(numpy.arange(n_tokens), lengths)
    rows = as_numpy(data.align.dataXd).reshape(-1) // row_width
    shared = numpy.unique(numpy.stack([tokens, rows]), axis=1)
    if len(numpy.unique(shared[0])) < shared.shape[1]:
        return None
    row_of = numpy.arange(n_rows)
    has_text = numpy.bincount(rows, minlength=n_rows) > 0
    # Tokens without wordpieces (white space, what was cut) go to the row before them.
    starts = numpy.full(n_rows, n_tokens)
    numpy.minimum.at(starts, rows, tokens)
    starts = numpy.minimum.accumulate(starts[::-1])[::-1].copy()
    starts[0] = 0
    ends = numpy.append(starts[1:], n_tokens)
    last = starts - 1
    numpy.maximum.at(last, rows, tokens)
    return Rows(numpy.stack([starts, ends], axis=1), row_of, row_of + 1, has_text, ends - last - 1, None)


def _stretch(data: TransformerData, lengths: numpy.ndarray, places: numpy.ndarray) -> _Heard:
    """One row for the whole Doc, whose windows overlap: the wordpieces of each token once, without special tokens."""
    batch, align = data.wordpieces, _flat_align(data, places)
    pieces, align_lengths = as_numpy(align.dataXd), as_numpy(align.lengths)
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    # A token's wordpieces ascend: its first is in the first of the windows that it is in.
    starts = numpy.cumsum(align_lengths) - align_lengths
    tokens = numpy.repeat(numpy.arange(len(align_lengths)), align_lengths)
    once = windows == windows[starts[tokens]]
    counts = numpy.bincount(tokens[once], minlength=len(align_lengths))
    chosen, index = numpy.unique(pieces[once], return_inverse=True)
    recorded = batch if isinstance(batch, RowBatch) else None
    has_text = numpy.array([len(chosen) > 0])
    rows = Rows(
        numpy.array([[0, recorded.spans[:, 2].max() if recorded else len(counts)]]),
        numpy.zeros(1, dtype="int64"),
        numpy.ones(1, dtype="int64"),
        has_text,
        numpy.array([recorded.n_cut.sum() if recorded else 0]),
        recorded.settings if recorded else None,
        is_stretch=numpy.array([True]),
    )
    places = places[chosen if len(chosen) else [0]]  # a special token stands for no text
    of_all, no_characters = numpy.ones(len(places), dtype=bool), numpy.zeros((len(places), 2), dtype="int32")
    found = Ragged(index, counts)  # type: ignore[arg-type]
    return _Heard(rows, numpy.array([len(places)]), places, of_all, no_characters, lambda: found)
