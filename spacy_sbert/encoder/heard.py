"""What a listener hears of a shared transformer, as flat states of the rows of its Docs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy_transformers.data_classes import TransformerData
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy
from transformers.utils import ModelOutput

from .align import piece_characters
from .padded import RowBatch
from .rows import Pieces, Rows, RowStates, borders_of, row_characters
from .states import Array, Backprop, States
from .unpadded import Unpadded, UnpaddedDoc

CHUNK = 32  # Docs whose states are copied at a time: they stay in the cache


@dataclass
class _Heard:
    """The windows of one Doc.

    rows: of the Doc. lengths: int64 (windows,), the wordpieces of each, N in all. places: int64 (N,), where these stand
    in the flattened padded batch; None if that was not made. characters: int32 (N, 2), of each in the Doc, or where
    those of each token stand. values: float (N, width) in one or more parts.
    """

    rows: Rows
    lengths: numpy.ndarray
    places: numpy.ndarray | None
    characters: numpy.ndarray | Ragged
    values: list[Array]


def heard_rows(datas: list[TransformerData], docs: Sequence[Doc] | None, backprop: Backprop) -> RowStates:
    """The rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc, from whatever batch, padded.
    docs: the Docs, if what other Spans and Tokens need is to be known.
    backprop: takes the gradient of each TransformerData that has rows.
    """
    held = [i for i, data in enumerate(datas) if _has_rows(data)]
    if not held:
        return RowStates.none(len(datas), backprop)
    batch = [datas[i] for i in held]
    heard = [_heard(datas[i], docs[i] if docs else None) for i in held]
    n_rows = dict(zip(held, (len(doc.rows.spans) for doc in heard), strict=True))
    kinds = [[i for i, doc in enumerate(heard) if doc.rows.foreign == is_stretch] for is_stretch in (False, True)]
    firsts = borders_of(len(doc.lengths) for doc in heard)
    parts = [chunk for own in kinds for chunk in minibatch(own, CHUNK)]

    def backprop_states(d_values: list[Array]) -> Any:
        d_datas: dict[int, TransformerData] = {}
        for own, d_part in zip(parts, d_values, strict=True):
            borders = pairwise(borders_of(int(heard[i].lengths.sum()) for i in own))
            found = [d_part[slice(*border)] for border in borders]
            d_datas |= {i: _padded(batch[i], heard[i], d_own) for i, d_own in zip(own, found, strict=True)}
        return backprop([d_datas[i] for i in range(len(batch))])

    rows, borders = _joined([doc.rows for doc in heard]), borders_of(n_rows.get(i, 0) for i in range(len(datas)))
    lengths = numpy.concatenate([doc.lengths for doc in heard])
    found = RowStates(rows, borders, lengths, (_states_of(heard, own, firsts) for own in parts), backprop_states)
    if docs:
        characters = numpy.concatenate([_characters(own, docs[i]) for own, i in zip(heard, held, strict=True)])
        of_text = characters[:, 1] > characters[:, 0]
        found.pieces = Pieces.of_rows(rows, borders, lengths, of_text, characters)
    return found


def _characters(heard: _Heard, doc: Doc) -> numpy.ndarray:
    if isinstance(heard.characters, numpy.ndarray):
        return heard.characters
    return piece_characters(heard.characters, [doc], int(heard.lengths.sum()))


def _states_of(docs: list[_Heard], own: list[int], firsts: list[int]) -> States:
    """Of some of the Docs. Half precision is for the transformer: sums over wordpieces would lose too much in it."""
    given = [values for i in own for values in docs[i].values]
    xp = get_array_module(given[0])
    values = xp.concatenate(given)
    values = values.astype(xp.float32) if values.dtype == xp.float16 else values
    windows = numpy.concatenate([numpy.arange(firsts[i], firsts[i + 1]) for i in own])
    return States(windows, numpy.concatenate([docs[i].lengths for i in own]), values, docs[own[0]].rows.foreign)


def _padded(data: TransformerData, doc: _Heard, d_own: Array) -> TransformerData:
    """The gradient of a Doc's states, in the shape and dtype that the transformer gave them."""
    given = data.model_output["last_hidden_state"]
    places = _all_places(data) if doc.places is None else doc.places
    d_states = get_array_module(given).zeros_like(given)
    d_states.reshape(-1, given.shape[-1])[places] = d_own.astype(given.dtype, copy=False)
    return TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_states), data.align)


def _all_places(data: TransformerData) -> numpy.ndarray:
    """int64 (N,): where the wordpieces of a Doc stand in its flattened padded rows."""
    return numpy.flatnonzero(to_numpy(data.wordpieces.attention_mask))


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


def _has_rows(data: TransformerData) -> bool:
    is_unpadded = isinstance(data, UnpaddedDoc) and not data.is_padded
    return is_unpadded or "last_hidden_state" in data.model_output


def _heard(data: TransformerData, doc: Doc | None) -> _Heard:
    """The rows of a Doc, as its encoder recorded them, or else as the alignment of tokens and wordpieces shows them."""
    found = _as_encoded(data.unpadded, data.number) if isinstance(data, UnpaddedDoc) and not data.is_padded else None
    return found or _read_padded(data, doc)


def _as_encoded(unpadded: Unpadded, number: int) -> _Heard | None:
    """The rows of a Doc without padding; None if they overlap, see _recorded_rows."""
    shared = unpadded.shared
    own, windows = (slice(*of[number : number + 2]) for of in (shared.borders, shared.window_borders))
    rows = shared.rows.part(own, windows)
    if _overlap(rows.spans):
        return None
    first, last = unpadded.starts[windows.start], unpadded.starts[windows.stop]
    characters: numpy.ndarray | Ragged
    if shared.characters is not None:
        characters = shared.characters[first:last]
    else:
        tokens = slice(*shared.token_borders[number : number + 2])
        of_tokens = shared.align[tokens]
        characters = Ragged(of_tokens.dataXd - first, of_tokens.lengths)
    return _Heard(rows, shared.wordpieces.lengths[windows], None, characters, unpadded.values[windows])


def _read_padded(data: TransformerData, doc: Doc | None) -> _Heard:
    batch = data.wordpieces
    lengths, places = to_numpy(batch.attention_mask).sum(axis=1).astype("int64"), _all_places(data)
    rows = _recorded_rows(batch) if isinstance(batch, RowBatch) else _aligned_rows(data)
    if rows is not None and isinstance(batch, RowBatch) and batch.characters is not None:
        return _Heard(rows, lengths, places, batch.characters.reshape(-1, 2)[places], _values(data, places))
    align: Ragged = _flat_align(data, places)
    if rows is None:
        rows, align, chosen = _stretch(data, align, lengths)
        lengths, places = numpy.array([len(chosen)]), places[chosen]
    if doc is not None and rows.characters is None:
        spans = [doc[start:end] for start, end in rows.spans.tolist()]
        rows = replace(rows, characters=row_characters(spans, [span.text for span in spans]))
    return _Heard(rows, lengths, places, align, _values(data, places))


def _values(data: TransformerData, places: numpy.ndarray) -> list[Array]:
    states = data.model_output["last_hidden_state"]  # (windows, wordpieces, width)
    return [states.reshape(-1, states.shape[-1])[get_array_module(states).asarray(places)]]


def _flat_align(data: TransformerData, places: numpy.ndarray) -> Ragged:
    """The alignment of tokens to wordpieces counted without padding."""
    padded = to_numpy(data.align.dataXd).reshape(-1)
    return Ragged(numpy.searchsorted(places, padded), to_numpy(data.align.lengths))


def _recorded_rows(batch: RowBatch) -> Rows | None:
    """None if rows overlap, sentences behind the row of their Doc left aside."""
    n_text, n_cut, settings = batch.n_text, batch.n_cut, batch.settings
    if len(batch.spans) == 1:  # as most Docs have it
        row_of = numpy.zeros(1, "int64")
        return Rows(batch.spans[:, 1:], row_of, n_text, n_text > 0, n_cut, settings, batch.row_characters)
    _, first, row_of = numpy.unique(batch.spans[:, 0], return_index=True, return_inverse=True)
    spans = batch.spans[first, 1:]
    if _overlap(spans):
        return None
    has_text = numpy.bincount(row_of, weights=n_text) > 0
    cut = numpy.bincount(row_of, weights=n_cut).astype("int64")
    return Rows(spans, row_of, n_text, has_text, cut, settings, batch.row_characters[first])


def _overlap(spans: numpy.ndarray) -> bool:
    """Whether rows, int64 (n, 2), share tokens; sentences behind the row of their Doc do not count."""
    if len(spans) == 1:  # as most Docs have it
        return False
    apart = spans[1:] if (spans[1:, 1] <= spans[0, 1]).all() else spans
    return bool((apart[1:, 0] < apart[:-1, 1]).any())


def _aligned_rows(data: TransformerData) -> Rows | None:
    """None if a token is in two rows."""
    n_rows, row_width = data.wordpieces.input_ids.shape
    lengths = to_numpy(data.align.lengths)
    n_tokens = len(lengths)
    tokens = numpy.repeat(numpy.arange(n_tokens), lengths)
    rows = to_numpy(data.align.dataXd).reshape(-1) // row_width
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


def _stretch(data: TransformerData, align: Ragged, lengths: numpy.ndarray) -> tuple[Rows, Ragged, numpy.ndarray]:
    """One row for the whole Doc, whose windows overlap: the wordpieces of each token once, without special tokens.

    RETURNS (Rows, Ragged, int64 (k,)): the row, the alignment of tokens to its k wordpieces, and which they are.
    """
    recorded = data.wordpieces if isinstance(data.wordpieces, RowBatch) else None
    pieces, align_lengths = to_numpy(align.dataXd), to_numpy(align.lengths)
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    # A token's wordpieces ascend: its first is in the first of the windows that it is in.
    starts = numpy.cumsum(align_lengths) - align_lengths
    tokens = numpy.repeat(numpy.arange(len(align_lengths)), align_lengths)
    once = windows == windows[starts[tokens]]
    counts = numpy.bincount(tokens[once], minlength=len(align_lengths))
    chosen, index = numpy.unique(pieces[once], return_inverse=True)
    rows = Rows(
        numpy.array([[0, recorded.spans[:, 2].max() if recorded else len(counts)]]),
        numpy.zeros(1, dtype="int64"),
        numpy.ones(1, dtype="int64"),
        numpy.array([len(chosen) > 0]),
        numpy.array([recorded.n_cut.sum() if recorded else 0]),
        recorded.settings if recorded else None,
        is_stretch=numpy.array([True]),
    )
    chosen = chosen if len(chosen) else numpy.zeros(1, dtype="int64")  # a special token stands for no text
    return rows, Ragged(index, counts), chosen  # type: ignore[arg-type]
