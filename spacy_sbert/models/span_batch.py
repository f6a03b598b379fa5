"""A batch of spans: their token ids, and their token embeddings after the encoder."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeAlias, cast

import numpy
from spacy.attrs import IDX, IS_SPACE, LEMMA, LENGTH, MORPH, NORM, POS, TAG
from spacy.tokens import Doc, Span
from spacy_alignments.tokenizations import get_alignments
from thinc.backends import get_array_ops
from thinc.types import Ints2d, Ragged

from .engine.packing import ragged_arange
from .sbert_config import SentenceTransformersConfig
from .spans import trimmed
from .tokenization import BatchTokenizer, TokenizedBatch

Array: TypeAlias = Any  # of NumPy or CuPy
Backprop = Callable[[list[Array]], Any]  # takes the gradient of the values of each States


@dataclass
class TokenEmbeddings:
    """The states of some windows, one after another without padding.

    windows: int64 (k,), the numbers of the windows.
    lengths: int64 (k,), the wordpieces of each, special tokens included.
    values: float (sum of lengths, width), NumPy or CuPy, on the encoder's device.
    is_stretch: whether the windows are stretches of text without special tokens of their own.
    """

    windows: numpy.ndarray
    lengths: numpy.ndarray
    values: Array
    is_stretch: bool = False


def no_gradient(d_values: list[Array]) -> None:
    """Return the backprop of states that nothing is learned from."""


def in_places(values: Array, places: numpy.ndarray) -> tuple[Array, Callable[[Array], Array]]:
    """Rows of an array, and what takes their gradient to that of the whole array.

    values: float (n, width). places: int64 (k,), which rows; the gradients of one that is there twice add up.
    """
    ops = get_array_ops(values)
    index = ops.xp.asarray(places)

    def backprop(d_rows: Array) -> Array:
        d_values = values * 0
        ops.scatter_add(d_values, index, d_rows)
        return d_values

    return values[index], backprop


def _align_offsets(spans: list[Span], doc_of: list[int], offsets: numpy.ndarray, span_of: numpy.ndarray) -> Ragged:
    """Align tokens with wordpieces by the characters that both cover.

    A wordpiece belongs to every token of its Span of which it covers a character, the space behind a token counting as
    its own. That is what get_alignment_via_offset_mapping of spacy-transformers does, for all rows at once.

    spans (list[Span]): the Spans that were encoded, in the order of their Docs.
    doc_of (list[int]): the Doc of each Span, as numbers that ascend: a Doc may be in a batch twice.
    offsets (int64 (wordpieces, 2)): the characters of each wordpiece, counted from its Span's start.
    span_of (int64 (wordpieces,)): the Span each wordpiece is of.
    RETURNS (Ragged of int32): for each token of every Doc that has a Span, in the order of the Docs, the ascending
        indices of its wordpieces.
    """
    positions, n_tokens = _doc_positions(spans, doc_of)
    token_starts = _token_starts(spans, positions)
    counts_of = numpy.array([len(starts) for starts in token_starts])
    # Spans are laid end to end on one line of characters, so that a single search finds every token.
    firsts = numpy.array([int(starts[0]) for starts in token_starts])
    lasts = [int(starts[-1]) + len(span[-1].text_with_ws) for starts, span in zip(token_starts, spans, strict=True)]
    lengths = numpy.array(lasts) - firsts
    shifts = numpy.cumsum(lengths) - lengths  # (rows,)
    line = numpy.concatenate(token_starts) + numpy.repeat(shifts - firsts, counts_of)
    shift = shifts[span_of]
    begin, end = offsets[:, 0] + shift, offsets[:, 1] + shift
    end = numpy.minimum(end, shift + lengths[span_of])  # no wordpiece reaches into another Span
    pieces = numpy.flatnonzero(end > begin)
    first = numpy.searchsorted(line, begin[pieces], side="right") - 1
    last = numpy.searchsorted(line, end[pieces] - 1, side="right") - 1

    n_tokens_of = last - first + 1  # of each wordpiece
    owners = ragged_arange(first, n_tokens_of)
    places = numpy.array([span.start for span in spans]) + positions  # of rows' first tokens among those of all Docs
    tokens = ragged_arange(places, counts_of)[owners]
    pieces = numpy.repeat(pieces, n_tokens_of)
    order = numpy.lexsort((pieces, tokens))
    counts = numpy.bincount(tokens, minlength=n_tokens).astype("int32")
    return Ragged(cast(Any, pieces[order].astype("int32")), cast(Any, counts))


def align_wordpieces(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, spans: list[Span], doc_of: list[int], texts: list[str]
) -> Ragged:
    """For each token of every Doc that has a Span, the ascending indices of its wordpieces; see _align_offsets."""
    span_of = numpy.repeat(wordpieces.text_of, wordpieces.lengths)
    if wordpieces.offsets is not None:
        return _align_offsets(spans, doc_of, wordpieces.offsets, span_of)
    kept = numpy.flatnonzero(~wordpieces.special)
    borders = numpy.searchsorted(span_of[kept], numpy.arange(1, len(spans)))
    return _align_texts(spans, doc_of, tokenizer.pieces_of(texts), numpy.split(kept, borders))


def _doc_positions(spans: list[Span], doc_of: list[int]) -> tuple[list[int], int]:
    """Where the tokens of each Span's Doc begin among those of all Docs, and how many there are."""
    positions: dict[int, int] = {}
    total = 0
    for span, number in zip(spans, doc_of, strict=True):
        if number not in positions:
            positions[number] = total
            total += len(span.doc)
    return [positions[number] for number in doc_of], total


def _align_texts(spans: list[Span], doc_of: list[int], pieces: list[list[str]], places: list[numpy.ndarray]) -> Ragged:
    """Align tokens with the wordpieces of a slow tokenizer, which does not say what characters they cover.

    spans (list[Span]), doc_of (list[int]): see _align_offsets.
    pieces (list[list[str]]): all wordpieces of each Span, special tokens left out, before it was cut.
    places (list[int64 (kept pieces,)]): the indices of the wordpieces that were kept.
    RETURNS (Ragged of int32): as _align_offsets.
    SOURCE: spacy-alignments, which spacy-transformers aligns with, too.
    """
    positions, n_tokens = _doc_positions(spans, doc_of)
    pieces_of: list[set[int]] = [set() for _ in range(n_tokens)]
    for span, position, own, kept in zip(spans, positions, pieces, places, strict=True):
        of_tokens, _ = get_alignments([token.text for token in span], own)
        for token, found in zip(span, of_tokens, strict=True):
            pieces_of[position + token.i].update(int(kept[piece]) for piece in found if piece < len(kept))
    return Ragged(
        cast(Any, numpy.array([piece for own in pieces_of for piece in sorted(own)], dtype="int32")),
        cast(Any, numpy.array([len(own) for own in pieces_of], dtype="int32")),
    )


def piece_characters(align: Ragged, docs: Sequence[Doc], n_pieces: int) -> numpy.ndarray:
    """Where wordpieces stand in their Docs, by the tokens that they belong to.

    align (Ragged of int32): see _align_offsets. docs (list[Doc]): whose tokens these are, one Doc after another.
    RETURNS (int32 (n_pieces, 2)): from the first character of the first token to the last of the last one; nowhere,
        (0, 0), for the wordpieces of none.
    """
    found = numpy.concatenate([numpy.asarray(doc.to_array([IDX, LENGTH])).astype("int32") for doc in docs])
    starts, ends = found[:, 0], found[:, 0] + found[:, 1]
    counts, pieces = numpy.asarray(align.lengths), numpy.asarray(align.dataXd).reshape(-1)
    tokens = numpy.repeat(numpy.arange(len(counts)), counts)
    characters = numpy.zeros((n_pieces, 2), dtype="int32")
    characters[pieces[::-1], 0] = starts[tokens[::-1]]
    characters[pieces, 1] = ends[tokens]
    return characters


def _token_starts(spans: list[Span], positions: list[int]) -> list[numpy.ndarray]:
    """For each row its tokens' first characters in the Doc; positions (list[int]): see _doc_positions."""
    found, of_doc, known = [], numpy.zeros(0, dtype="int64"), -1
    for span, position in zip(spans, positions, strict=True):
        if position != known:
            of_doc, known = cast(Any, span.doc).to_array(IDX).astype("int64"), position
        found.append(of_doc[span.start : span.end])
    return found


@dataclass
class SpanBatch:
    """The rows of one Doc, or of several, one after another.

    spans: int64 (rows, 2), start and end token.
    row_of: int64 (windows,), the row to which each window belongs; ascending.
    window_weights: int64 (windows,), the wordpieces in each window, without special tokens.
    has_text: bool (rows,), whether there are wordpieces beside the special tokens.
    n_cut: int64 (rows,), wordpieces cut off; tokens at the row's end that have no wordpieces, white space among them,
        if another package's model made the batch.
    settings: of the encoder, None if another package's model made the batch.
    characters: int64 (rows, 2), of each row in its Doc, without white space at its ends; None if nobody noted them.
    is_stretch: bool (rows,), whether a row stands for windows that overlap; None if none does.
    """

    spans: numpy.ndarray
    row_of: numpy.ndarray
    window_weights: numpy.ndarray
    has_text: numpy.ndarray
    n_cut: numpy.ndarray
    settings: SentenceTransformersConfig | None
    characters: numpy.ndarray | None = None
    is_stretch: numpy.ndarray | None = None

    @property
    def foreign(self) -> bool:
        """Whether the windows of a Doc overlap, so that they are not the rows of a sentence encoder."""
        return self.is_stretch is not None and bool(self.is_stretch.any())

    @classmethod
    def none(cls) -> "SpanBatch":
        """Those of a Doc without text."""
        zeros = numpy.zeros(0, dtype="int64")
        nowhere = zeros.reshape(0, 2)
        return cls(nowhere, zeros, zeros, zeros.astype(bool), zeros, None, nowhere)

    def part(self, rows: slice, windows: slice) -> "SpanBatch":
        """Those of one Doc."""
        return SpanBatch(
            self.spans[rows],
            self.row_of[windows] - rows.start,
            self.window_weights[windows],
            self.has_text[rows],
            self.n_cut[rows],
            self.settings,
            None if self.characters is None else self.characters[rows],
            None if self.is_stretch is None else self.is_stretch[rows],
        )


@dataclass
class TokenAlignment:
    """Which of N wordpieces other Spans and Tokens of their Docs are made of.

    of_text: bool (N,), all but special tokens, and those of a prompt, of the windows in whose context they are read.
    characters: int32 (N, 2), of each in its Doc.
    windows: bool (windows,), those windows; see outermost.
    """

    of_text: numpy.ndarray
    characters: numpy.ndarray
    windows: numpy.ndarray

    @classmethod
    def of_rows(
        cls,
        rows: SpanBatch,
        borders: list[int],
        lengths: numpy.ndarray,
        of_text: numpy.ndarray,
        characters: numpy.ndarray,
    ) -> "TokenAlignment":
        """Those of rows of several Docs; borders (list[int]), lengths (int64 (windows,)): see EncodedSpans."""
        if len(rows.spans) == len(borders) - 1 and (numpy.diff(borders) == 1).all():  # as most batches have it
            return cls(of_text, characters, numpy.ones(len(lengths), dtype=bool))
        stretches = [rows.spans[first:last] for first, last in pairwise(borders) if first < last]
        windows = numpy.concatenate([_outermost(spans) for spans in stretches])[rows.row_of]
        return cls(of_text & numpy.repeat(windows, lengths), characters, windows)


@dataclass
class EncodedSpans:
    """The rows of a batch of Docs, and the states that an encoder gives for their windows.

    rows: of all Docs, one after another.
    borders: where the rows of each Doc begin, and where the last end; window_borders: the same of the windows.
    lengths: int64 (windows,), the wordpieces of each window, N in all.
    states: of all windows, each once, in whatever order; none before they are encoded.
    backprop: what takes the gradients of their values to the encoder.
    pieces: what is known of the wordpieces; None if nobody asked.
    n_lead: how many wordpieces at the start of each window are not pooled.
    texts: of each row; None if nobody noted them.
    """

    rows: SpanBatch
    borders: list[int]
    lengths: numpy.ndarray
    states: Iterable[TokenEmbeddings] = ()
    backprop: Backprop = no_gradient
    pieces: TokenAlignment | None = None
    n_lead: int = 0
    texts: list[str] | None = None

    def __post_init__(self) -> None:
        self.window_borders: list[int] = numpy.searchsorted(self.rows.row_of, self.borders).tolist()

    @classmethod
    def none(cls, n_docs: int, backprop: Backprop = no_gradient) -> "EncodedSpans":
        """Those of Docs without text."""
        return cls(SpanBatch.none(), [0] * (n_docs + 1), numpy.zeros(0, dtype="int64"), backprop=backprop)


class SpanEncoder(Protocol):
    """An encoder that reads the rows of Docs."""

    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> AbstractContextManager[EncodedSpans]: ...


def encode_spans(
    tokenizer: BatchTokenizer, spans: list[list[Span]], *, prompt: str, with_pieces: bool, offsets: bool = False
) -> tuple[TokenizedBatch, EncodedSpans]:
    """Return the wordpieces of the rows of a batch of Docs, and the rows, whose states are still to come.

    tokenizer (BatchTokenizer): of the encoder.
    spans (list[list[Span]]): the rows of each Doc, in the order of the text; one at least.
    prompt (str): what is put before each.
    with_pieces (bool): whether to record the characters of the wordpieces in their Docs, as token vectors need them.
    offsets (bool): whether the wordpieces keep their characters in each text.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    texts = [span_text(span) for span in flat]
    wordpieces = tokenizer(texts, offsets=with_pieces or offsets, prompt=prompt)
    rows = _batch_spans(flat, texts, wordpieces, tokenizer.settings)
    borders, n_lead = borders_of(map(len, spans)), wordpieces.n_lead
    batch = EncodedSpans(rows, borders, wordpieces.lengths, n_lead=n_lead, texts=texts)
    if with_pieces:
        of_text, of_pieces = ~wordpieces.special, doc_characters(wordpieces, flat)
        if of_pieces is None:
            docs = [doc_spans[0].doc for doc_spans in spans if doc_spans]
            doc_of = [number for number, doc_spans in enumerate(filter(None, spans)) for _ in doc_spans]
            align = align_wordpieces(tokenizer, wordpieces, flat, doc_of, texts)
            of_pieces = piece_characters(align, docs, len(wordpieces.ids))
            of_text = of_pieces[:, 1] > 0
        batch.pieces = TokenAlignment.of_rows(rows, batch.borders, batch.lengths, of_text, of_pieces)
    return wordpieces, batch


def batch_texts(wordpieces: TokenizedBatch, settings: SentenceTransformersConfig) -> SpanBatch:
    """Return the rows that texts are, without places in a Doc."""
    n_text, text_of = wordpieces.n_text, wordpieces.text_of
    has_text = numpy.bincount(text_of, weights=n_text) > 0
    n_cut = numpy.bincount(text_of, weights=wordpieces.n_cut).astype("int64")
    return SpanBatch(numpy.zeros((len(has_text), 2), dtype="int64"), text_of, n_text, has_text, n_cut, settings)


def _batch_spans(
    spans: list[Span], texts: list[str], wordpieces: TokenizedBatch, settings: SentenceTransformersConfig
) -> SpanBatch:
    """Return the rows that Spans are; texts (list[str]): theirs."""
    rows = batch_texts(wordpieces, settings)
    return replace(rows, spans=_span_places(spans), characters=row_characters(spans, texts))


def borders_of(counts: Iterable[int]) -> list[int]:
    """Where each of several stretches begins, and the last ends."""
    return [0, *accumulate(counts)]


def _outermost(spans: numpy.ndarray) -> numpy.ndarray:
    """Which rows of a Doc lie within no row before them: its own row does not, its sentences behind it do.

    Tokens and Spans are read in the context of these rows alone, so that none counts twice.

    spans (int64 (rows, 2)): start and end token of each, in the order of the text.
    RETURNS (bool (rows,)).
    """
    ends = numpy.maximum.accumulate(spans[:, 1])
    return numpy.append(True, spans[1:, 1] > ends[:-1])


def span_text(span: Span) -> str:
    """Return the text of a span; for a whole Doc with its last space, which no Span has in its text."""
    return span.doc.text if len(span) == len(span.doc) else span.text


def _span_places(spans: list[Span]) -> numpy.ndarray:
    """int64 (n, 2): start and end token of each Span."""
    return numpy.array([(span.start, span.end) for span in spans])


def row_characters(spans: list[Span], texts: list[str]) -> numpy.ndarray:
    """int64 (n, 2): where each Span begins and ends in its Doc, without white space at its ends."""
    return numpy.array([trimmed(text, span.start_char) for span, text in zip(spans, texts, strict=True)])


def doc_characters(wordpieces: TokenizedBatch, spans: list[Span]) -> numpy.ndarray | None:
    """Return the first and last character of each wordpiece in its Doc, int32 (wordpieces, 2).

    Special tokens have none, (0, 0) shifted to the start of their text. None for a slow tokenizer.
    """
    if wordpieces.offsets is None:
        return None
    starts = numpy.array([span.start_char for span in spans])[wordpieces.text_of]
    return (wordpieces.offsets + numpy.repeat(starts, wordpieces.lengths)[:, None]).astype("int32")


FEATURES = [NORM, LEMMA, TAG, POS, MORPH]  # what models embed of a token beside its text


def read_tokens(
    docs: list[Doc], spans: list[list[Span]], *, with_pieces: bool
) -> tuple[list[Span], numpy.ndarray, EncodedSpans]:
    """Return the tokens of a batch of spans, white space left out: a window has the tokens of its span.

    spans (list[list[Span]]): the spans of each Doc, in the order of the text; not all empty.
    with_pieces (bool): whether to record the characters of the tokens.
    RETURNS (list[Span], int64 (N,), EncodedSpans): the spans of all Docs, the index of each of their N tokens among the
        tokens of all Docs, and the batch, still without states.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    starts = borders_of(map(len, docs))
    stretches = [
        (start + span.start, start + span.end)
        for start, doc_spans in zip(starts, spans, strict=False)
        for span in doc_spans
    ]
    places = numpy.concatenate([numpy.arange(start, end) for start, end in stretches])
    tokens = numpy.concatenate([doc.to_array([IDX, LENGTH, IS_SPACE]).astype("int64") for doc in docs])[places]
    kept, row_of = tokens[:, 2] == 0, numpy.repeat(numpy.arange(len(flat)), [len(span) for span in flat])
    lengths = numpy.bincount(row_of[kept], minlength=len(flat))
    rows = SpanBatch(
        _span_places(flat),
        row_of=numpy.arange(len(flat)),
        window_weights=lengths,
        has_text=lengths > 0,
        n_cut=numpy.zeros(len(flat), dtype="int64"),
        settings=None,
        characters=row_characters(flat, [span.text for span in flat]),
    )
    batch = EncodedSpans(rows, borders_of(map(len, spans)), lengths)
    if with_pieces:
        characters = numpy.cumsum(tokens[kept, :2], axis=1).astype("int32")  # (N, 2): from a start and a length
        batch.pieces = TokenAlignment.of_rows(
            rows, batch.borders, lengths, numpy.ones(len(characters), bool), characters
        )
    return flat, places[kept], batch


def row_doc(span: Span) -> Doc:
    """Return the tokens of a span without white space as a Doc of their own, or the Doc itself if it is that."""
    doc, kept = span.doc, [token for token in span if not token.is_space]
    if len(kept) == len(doc) and not kept[-1].whitespace_:
        return doc
    spaces = [bool(token.whitespace_) for token in kept[:-1]]
    alone = Doc(doc.vocab, words=[token.text for token in kept], spaces=[*spaces, False])
    return alone.from_array(FEATURES, cast(Ints2d, doc.to_array(FEATURES)[[token.i for token in kept]]))
