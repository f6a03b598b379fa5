"""Batches of a shared transformer: packed for `sbert`, padded for other listeners."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy.util import minibatch
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from thinc.api import torch2xp, xp2torch
from thinc.types import Ragged
from thinc.util import get_array_module, to_numpy
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from .engine.packing import ragged_arange
from .sbert_config import SentenceTransformersConfig
from .span_batch import (
    Array,
    Backprop,
    EncodedSpans,
    SpanBatch,
    TokenAlignment,
    TokenEmbeddings,
    align_wordpieces,
    borders_of,
    doc_characters,
    encode_spans,
    piece_characters,
    row_characters,
    span_text,
)
from .tokenization import BatchTokenizer, TokenizedBatch

Arrays = list[torch.Tensor] | torch.Tensor


@dataclass
class PaddedBatch(WordpieceBatch):
    """A WordpieceBatch that knows what its rows are; one row a window, several windows for a Span that was too long.

    spans: int64 (windows, 3), for each window the number of its Span in the batch and the Span's start and end token.
    n_text: int64 (windows,), wordpieces without special tokens.
    n_cut: int64 (windows,), wordpieces of the text that were cut off.
    row_characters: int64 (windows, 2), where each window's Span begins and ends in its Doc, white space left out.
    characters: int32 (windows, wordpieces, 2), those of each wordpiece in its Doc; None for a slow tokenizer.
    settings: of the encoder that made the batch.
    """

    spans: numpy.ndarray
    n_text: numpy.ndarray
    n_cut: numpy.ndarray
    row_characters: numpy.ndarray
    characters: numpy.ndarray | None
    settings: SentenceTransformersConfig

    def __getitem__(self, index: int | slice) -> "PaddedBatch":
        part = slice(index, index + 1) if isinstance(index, int) else index
        base = super().__getitem__(part)
        ours = {name: getattr(self, name)[part] for name in ("spans", "n_text", "n_cut", "row_characters")}
        characters = None if self.characters is None else self.characters[part]
        return PaddedBatch(**vars(base), **ours, characters=characters, settings=self.settings)


class PaddedOutput(FullTransformerBatch):
    """A FullTransformerBatch whose rows need not cover their Docs.

    The members of a pair may leave out tokens before, between and behind them. The alignment that each Doc gets speaks
    of all its tokens all the same, as components that work on tokens (ner, textcat) expect.
    """

    def split_by_doc(self) -> list[TransformerData]:
        tokens = borders_of(len(spans[0].doc) if spans else 0 for spans in self.spans)
        batch = cast(PaddedBatch, self.wordpieces)
        return split(batch, self.model_output, self.align, borders_of(map(len, self.spans)), tokens)


class SharedBatch:
    """A batch of spans of a shared transformer, N wordpieces in all. It holds no Doc, since Docs hold it.

    tokenizer (BatchTokenizer): of the encoder.
    spans (list[list[Span]]): the spans of each Doc, in the order of the text; not all empty.
    prompt (str): put before each span.

    wordpieces: the tokens of all windows. encoded: the batch, still without states. nested: the spans of each Doc, one
    for each of their windows. align: the indices of the wordpieces of each token. token_borders: where the tokens of
    each Doc begin, and where the last end. characters: int32 (N, 2), of each wordpiece in its Doc; None for a slow
    tokenizer.
    """

    def __init__(self, tokenizer: BatchTokenizer, spans: list[list[Span]], prompt: str = ""):
        flat = [span for doc_spans in spans for span in doc_spans]
        self.tokenizer = tokenizer
        self.wordpieces, self.encoded = encode_spans(tokenizer, spans, prompt=prompt, with_pieces=False, offsets=True)
        doc_of = [number for number, doc_spans in enumerate(spans) for _ in doc_spans]
        self.align = align_wordpieces(tokenizer, self.wordpieces, flat, doc_of, [span_text(span) for span in flat])
        self.characters = doc_characters(self.wordpieces, flat)
        self.token_borders = borders_of(len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans)
        self._states: list[TokenEmbeddings] = []
        self._device = torch.device("cpu")
        self._pooled: torch.Tensor | None = None

    def nested(self, spans: list[list[Span]]) -> list[list[Span]]:
        """Return the spans of each Doc, one for each of their windows."""
        counts = iter(numpy.bincount(self.encoded.rows.row_of, minlength=self.encoded.borders[-1]).tolist())
        return [[same for span in doc_spans for same in [span] * next(counts)] for doc_spans in spans]

    def padded(self) -> tuple["PaddedBatch", Ragged]:
        """Return the wordpieces as a padded batch, and the alignment of tokens with it."""
        lengths = self.wordpieces.lengths
        places = ragged_arange(numpy.arange(len(lengths)) * int(lengths.max()), lengths)
        align = Ragged(places[self.align.dataXd].astype("int32"), self.align.lengths)
        return _pad(self, places), align

    def keep_states(
        self, states: Iterable[TokenEmbeddings], device: torch.device, pooler: torch.nn.Module | None
    ) -> None:
        """Keep the states of the windows, to be padded when they are read.

        device (torch.device): of the network; the thread that reads the states may use another by default.
        pooler (Module): of the network, None if it has none. It reads the first state of each window now: the weights
            may change before its output is read.
        """
        self._states, self._device = list(states), device
        self._pooled = None if pooler is None else _pool(pooler, self.values, device)

    @cached_property
    def starts(self) -> list[int]:
        """The start of each window among all wordpieces, and the end of the last."""
        return borders_of(self.wordpieces.lengths.tolist())

    @cached_property
    def values(self) -> list[Array]:
        """The states of each window, float32 (wordpieces, width)."""
        values: list[Array] = [None] * len(self.wordpieces.lengths)
        for part in self._states:
            borders = pairwise(borders_of(part.lengths.tolist()))
            for window, (start, end) in zip(part.windows.tolist(), borders, strict=True):
                values[window] = part.values[start:end]
        return values

    @cached_property
    def output(self) -> tuple["PaddedBatch", BaseModelOutputWithPooling, Ragged]:
        """The fields of a FullTransformerBatch: wordpieces, output of the model and alignment."""
        batch, align = self.padded()
        states, _ = pad_states(self.wordpieces, self._states, self._states[0].values.shape[1], self._device)
        return batch, BaseModelOutputWithPooling(cast(Any, states), pooler_output=cast(Any, self._pooled)), align

    @cached_property
    def docs(self) -> list[TransformerData]:
        """The output of each Doc."""
        return split(*self.output, self.encoded.window_borders, self.token_borders)


def split(
    batch: PaddedBatch, output: ModelOutput, align: Ragged, windows: list[int], tokens: list[int]
) -> list[TransformerData]:
    """Return what each Doc gets of a padded batch; windows, tokens (list[int]): see SharedBatch."""
    arrays = {key: _to_arrays(value) for key, value in output.items() if _doc_has_rows(value)}
    row_width = batch.input_ids.shape[1]
    pieces = numpy.append(0, numpy.cumsum(numpy.asarray(align.lengths)))[tokens].tolist()
    found = []
    for row, token, piece in zip(pairwise(windows), pairwise(tokens), pairwise(pieces), strict=True):
        if row[0] == row[1]:
            found.append(TransformerData.empty())
            continue
        own = Ragged(align.dataXd[slice(*piece)] - row[0] * row_width, align.lengths[slice(*token)])
        model_output = ModelOutput({key: _part(value, slice(*row)) for key, value in arrays.items()})
        found.append(TransformerData(batch[slice(*row)], model_output, own))
    return found


def pad_states(
    wordpieces: TokenizedBatch, parts: Iterable[TokenEmbeddings], width: int, device: torch.device
) -> tuple[torch.Tensor, Callable[[torch.Tensor], list[Array]]]:
    """Return the states of windows in a padded batch, and from its gradient to those of the values.

    width (int): of the states.
    RETURNS (float32 (windows, wordpieces, width), Callable): a row a window, zeros at padding.
    """
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    padded = torch.zeros(shape[0] * shape[1], width, device=device)
    places = []
    for part in parts:
        places.append(torch.from_numpy(ragged_arange(part.windows * shape[1], part.lengths)).to(device))
        padded[places[-1]] = xp2torch(part.values, device=device)

    def backprop(d_padded: torch.Tensor) -> list[Array]:
        flat = d_padded.reshape(-1, width).to(device)  # a thread that does not know of the GPU makes it on the CPU
        return [torch2xp(flat[of_part]) for of_part in places]

    return padded.view(*shape, width), backprop


def _pad(shared: SharedBatch, places: numpy.ndarray) -> PaddedBatch:
    tokenizer, wordpieces, rows = shared.tokenizer, shared.wordpieces, shared.encoded.rows
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    ids = numpy.full(shape, tokenizer.pad_id, dtype="int64")
    ids.reshape(-1)[places] = wordpieces.ids
    mask = numpy.zeros(shape, dtype="float32")
    mask.reshape(-1)[places] = 1
    type_ids = numpy.full(shape, tokenizer.pad_type_id, dtype="int64") if tokenizer.has_type_ids else None
    if type_ids is not None:
        type_ids.reshape(-1)[places] = 0 if wordpieces.type_ids is None else wordpieces.type_ids
    characters = None
    if shared.characters is not None:
        characters = numpy.zeros((*shape, 2), dtype="int32")
        characters.reshape(-1, 2)[places] = shared.characters
    return PaddedBatch(
        strings=tokenizer.strings[ids].tolist(),
        input_ids=ids,  # type: ignore[arg-type]
        attention_mask=mask,  # type: ignore[arg-type]
        lengths=wordpieces.lengths.tolist(),
        token_type_ids=type_ids,  # type: ignore[arg-type]
        spans=numpy.column_stack([wordpieces.text_of, rows.spans[rows.row_of]]),
        n_text=rows.window_weights,
        n_cut=wordpieces.n_cut,
        row_characters=cast(numpy.ndarray, rows.characters)[rows.row_of],
        characters=characters,
        settings=tokenizer.settings,
    )


def _doc_has_rows(value: object) -> bool:
    return torch.is_tensor(value) or (isinstance(value, tuple) and all(map(torch.is_tensor, value)))


def _to_arrays(value: Arrays) -> Array:
    return torch2xp(value) if isinstance(value, torch.Tensor) else [torch2xp(part) for part in value]


def _part(value: Array, rows: slice) -> Array:
    return [array[rows] for array in value] if isinstance(value, list) else value[rows]


class UnpaddedBatch(FullTransformerBatch):
    """A FullTransformerBatch that is padded when a field is read.

    spans (list[list[Span]]): the spans of each Doc, one for each window. shared (SharedBatch): with its states.
    """

    def __init__(self, spans: list[list[Span]], shared: SharedBatch):
        self.spans, self._shared = spans, shared
        self.cached_doc_data = [
            _UnpaddedDoc(shared, number) if doc_spans else TransformerData.empty()
            for number, doc_spans in enumerate(spans)
        ]

    @cached_property
    def wordpieces(self) -> PaddedBatch:  # type: ignore[override]
        return self._shared.output[0]

    @cached_property
    def model_output(self) -> BaseModelOutputWithPooling:  # type: ignore[override]
        return self._shared.output[1]

    @cached_property
    def align(self) -> Ragged:  # type: ignore[override]
        return self._shared.output[2]


class _UnpaddedDoc(TransformerData):
    """A TransformerData that is padded when a field is read; fields can be set.

    shared (SharedBatch): its batch. number (int): the index of the Doc in the batch.
    """

    def __init__(self, shared: SharedBatch, number: int):
        self.shared, self.number = shared, number

    @property
    def is_padded(self) -> bool:
        """True if the padded states were read, or others were set, which then count."""
        return "model_output" in vars(self)

    @cached_property
    def wordpieces(self) -> PaddedBatch:  # type: ignore[override]
        return cast(PaddedBatch, self.shared.docs[self.number].wordpieces)

    @cached_property
    def model_output(self) -> ModelOutput:  # type: ignore[override]
        return self.shared.docs[self.number].model_output

    @cached_property
    def align(self) -> Ragged:  # type: ignore[override]
        return self.shared.docs[self.number].align

    def __reduce__(self) -> tuple[type, tuple]:
        return TransformerData, (self.wordpieces, self.model_output, self.align)


@torch.no_grad()
def _pool(pooler: torch.nn.Module, windows: list[Array], device: torch.device) -> torch.Tensor:
    """float32 (windows, width): the pooler's output, which has no dropout."""
    firsts = get_array_module(windows[0]).stack([values[:1] for values in windows])
    return pooler(xp2torch(firsts, device=device))


CHUNK = 32  # Docs whose states are copied at a time: they stay in the cache


@dataclass
class _Heard:
    """The windows of one Doc.

    rows: of the Doc. lengths: int64 (windows,), the wordpieces of each, N in all. places: int64 (N,), where these stand
    in the flattened padded batch; None if that was not made. characters: int32 (N, 2), of each in the Doc, or where
    those of each token stand. values: float (N, width) in one or more parts.
    """

    rows: SpanBatch
    lengths: numpy.ndarray
    places: numpy.ndarray | None
    characters: numpy.ndarray | Ragged
    values: list[Array]


def spans_from_transformer_data(
    datas: list[TransformerData], docs: Sequence[Doc] | None, backprop: Backprop
) -> EncodedSpans:
    """Return the rows of Docs as a transformer encoded them, and its states without padding.

    datas: of each Doc, from whatever batch, padded.
    docs: the Docs, if what other Spans and Tokens need is to be known.
    backprop: takes the gradient of each TransformerData that has rows.
    """
    held = [i for i, data in enumerate(datas) if _has_rows(data)]
    if not held:
        return EncodedSpans.none(len(datas), backprop)
    batch = [datas[i] for i in held]
    heard = [_heard(datas[i], docs[i] if docs else None) for i in held]
    n_rows = dict(zip(held, (len(doc.rows.spans) for doc in heard), strict=True))
    kinds = [[i for i, doc in enumerate(heard) if doc.rows.foreign == is_stretch] for is_stretch in (False, True)]
    firsts = borders_of(len(doc.lengths) for doc in heard)
    parts = [chunk for own in kinds for chunk in minibatch(own, CHUNK)]

    def backprop_states(d_values: list[Array]) -> object:
        d_datas: dict[int, TransformerData] = {}
        for own, d_part in zip(parts, d_values, strict=True):
            borders = pairwise(borders_of(int(heard[i].lengths.sum()) for i in own))
            found = [d_part[slice(*border)] for border in borders]
            d_datas |= {i: _padded(batch[i], heard[i], d_own) for i, d_own in zip(own, found, strict=True)}
        return backprop([d_datas[i] for i in range(len(batch))])

    rows, borders = _joined([doc.rows for doc in heard]), borders_of(n_rows.get(i, 0) for i in range(len(datas)))
    lengths = numpy.concatenate([doc.lengths for doc in heard])
    found = EncodedSpans(rows, borders, lengths, (_states_of(heard, own, firsts) for own in parts), backprop_states)
    if docs:
        characters = numpy.concatenate([_characters(own, docs[i]) for own, i in zip(heard, held, strict=True)])
        of_text = characters[:, 1] > characters[:, 0]
        found.pieces = TokenAlignment.of_rows(rows, borders, lengths, of_text, characters)
    return found


def _characters(heard: _Heard, doc: Doc) -> numpy.ndarray:
    if isinstance(heard.characters, numpy.ndarray):
        return heard.characters
    return piece_characters(heard.characters, [doc], int(heard.lengths.sum()))


def _states_of(docs: list[_Heard], own: list[int], firsts: list[int]) -> TokenEmbeddings:
    """Of some of the Docs. Half precision is for the transformer: sums over wordpieces would lose too much in it."""
    given = [values for i in own for values in docs[i].values]
    xp = get_array_module(given[0])
    values = xp.concatenate(given)
    values = values.astype(xp.float32) if values.dtype == xp.float16 else values
    windows = numpy.concatenate([numpy.arange(firsts[i], firsts[i + 1]) for i in own])
    return TokenEmbeddings(
        windows, numpy.concatenate([docs[i].lengths for i in own]), values, docs[own[0]].rows.foreign
    )


def _padded(data: TransformerData, doc: _Heard, d_own: Array) -> TransformerData:
    """Return the gradient of a Doc's states, in the shape and dtype that the transformer gave them."""
    given = data.model_output["last_hidden_state"]
    places = _all_places(data) if doc.places is None else doc.places
    d_states = get_array_module(given).zeros_like(given)
    d_states.reshape(-1, given.shape[-1])[places] = d_own.astype(given.dtype, copy=False)
    return TransformerData(data.wordpieces, ModelOutput(last_hidden_state=d_states), data.align)


def _all_places(data: TransformerData) -> numpy.ndarray:
    """int64 (N,): where the wordpieces of a Doc stand in its flattened padded rows."""
    return numpy.flatnonzero(to_numpy(data.wordpieces.attention_mask))


def _joined(rows: list[SpanBatch]) -> SpanBatch:
    """Those of several Docs as one."""
    borders = borders_of(len(own.spans) for own in rows)
    characters = [own.characters for own in rows if own.characters is not None]
    return SpanBatch(
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
    is_unpadded = isinstance(data, _UnpaddedDoc) and not data.is_padded
    return is_unpadded or "last_hidden_state" in data.model_output


def _heard(data: TransformerData, doc: Doc | None) -> _Heard:
    """Return the rows of a Doc as its encoder recorded them, or else as the alignment shows them."""
    found = _as_encoded(data.shared, data.number) if isinstance(data, _UnpaddedDoc) and not data.is_padded else None
    return found or _read_padded(data, doc)


def _as_encoded(shared: SharedBatch, number: int) -> _Heard | None:
    """Return the rows of a Doc without padding; None if they overlap, see _recorded_rows."""
    encoded = shared.encoded
    own, windows = (slice(*of[number : number + 2]) for of in (encoded.borders, encoded.window_borders))
    rows = encoded.rows.part(own, windows)
    if _overlap(rows.spans):
        return None
    first, last = shared.starts[windows.start], shared.starts[windows.stop]
    characters: numpy.ndarray | Ragged
    if shared.characters is not None:
        characters = shared.characters[first:last]
    else:
        tokens = slice(*shared.token_borders[number : number + 2])
        of_tokens = shared.align[tokens]
        characters = Ragged(of_tokens.dataXd - first, of_tokens.lengths)
    return _Heard(rows, shared.wordpieces.lengths[windows], None, characters, shared.values[windows])


def _read_padded(data: TransformerData, doc: Doc | None) -> _Heard:
    batch = data.wordpieces
    lengths, places = to_numpy(batch.attention_mask).sum(axis=1).astype("int64"), _all_places(data)
    rows = _recorded_rows(batch) if isinstance(batch, PaddedBatch) else _aligned_rows(data)
    if rows is not None and isinstance(batch, PaddedBatch) and batch.characters is not None:
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
    """Return the alignment of tokens to wordpieces counted without padding."""
    padded = to_numpy(data.align.dataXd).reshape(-1)
    return Ragged(numpy.searchsorted(places, padded), to_numpy(data.align.lengths))


def _recorded_rows(batch: PaddedBatch) -> SpanBatch | None:
    """None if rows overlap, sentences behind the row of their Doc left aside."""
    n_text, n_cut, settings = batch.n_text, batch.n_cut, batch.settings
    if len(batch.spans) == 1:  # as most Docs have it
        row_of = numpy.zeros(1, "int64")
        return SpanBatch(batch.spans[:, 1:], row_of, n_text, n_text > 0, n_cut, settings, batch.row_characters)
    _, first, row_of = numpy.unique(batch.spans[:, 0], return_index=True, return_inverse=True)
    spans = batch.spans[first, 1:]
    if _overlap(spans):
        return None
    has_text = numpy.bincount(row_of, weights=n_text) > 0
    cut = numpy.bincount(row_of, weights=n_cut).astype("int64")
    return SpanBatch(spans, row_of, n_text, has_text, cut, settings, batch.row_characters[first])


def _overlap(spans: numpy.ndarray) -> bool:
    """Whether rows, int64 (n, 2), share tokens; sentences behind the row of their Doc do not count."""
    if len(spans) == 1:  # as most Docs have it
        return False
    apart = spans[1:] if (spans[1:, 1] <= spans[0, 1]).all() else spans
    return bool((apart[1:, 0] < apart[:-1, 1]).any())


def _aligned_rows(data: TransformerData) -> SpanBatch | None:
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
    return SpanBatch(numpy.stack([starts, ends], axis=1), row_of, row_of + 1, has_text, ends - last - 1, None)


def _stretch(data: TransformerData, align: Ragged, lengths: numpy.ndarray) -> tuple[SpanBatch, Ragged, numpy.ndarray]:
    """One row for the whole Doc, whose windows overlap: the wordpieces of each token once, without special tokens.

    RETURNS (Rows, Ragged, int64 (k,)): the row, the alignment of tokens to its k wordpieces, and which they are.
    """
    recorded = data.wordpieces if isinstance(data.wordpieces, PaddedBatch) else None
    pieces, align_lengths = to_numpy(align.dataXd), to_numpy(align.lengths)
    windows = numpy.repeat(numpy.arange(len(lengths)), lengths)[pieces]
    # A token's wordpieces ascend: its first is in the first of the windows that it is in.
    starts = numpy.cumsum(align_lengths) - align_lengths
    tokens = numpy.repeat(numpy.arange(len(align_lengths)), align_lengths)
    once = windows == windows[starts[tokens]]
    counts = numpy.bincount(tokens[once], minlength=len(align_lengths))
    chosen, index = numpy.unique(pieces[once], return_inverse=True)
    rows = SpanBatch(
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
