"""A batch of spans: their token ids, and their token embeddings after the encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy
from spacy.attrs import IDX, IS_SPACE, LENGTH
from spacy.tokens import Doc, Span
from thinc.backends import get_array_ops

from .alignment import align_wordpieces, piece_characters
from .heads import Array
from .ragged import borders_of, group_of, ragged_arange
from .sbert_config import SentenceTransformersConfig
from .spans import SpansByDoc, trimmed
from .tokenization import BatchTokenizer, TokenizedBatch

# Takes the gradient of the values of each TokenEmbeddings
Backprop = Callable[[list[Array]], Any]


@dataclass
class TokenEmbeddings:
    """The states of some windows, one after another without padding.

    windows: int64 (k,), the numbers of the windows.
    lengths: int64 (k,), the wordpieces of each, special tokens included.
    values: float (sum of lengths, width), NumPy or CuPy, on the encoder's device.
    is_merged: whether each window was merged of windows that overlap, and has no special tokens.
    """

    windows: numpy.ndarray
    lengths: numpy.ndarray
    values: Array
    is_merged: bool = False


def no_gradient(d_values: list[Array]) -> None:
    """Ignore the gradient of states that nothing is learned from."""


@dataclass
class SpanBatch:
    """The spans to encode of one Doc or of several, one after another: the rows.

    spans: int64 (rows, 2), start and end token.
    row_of: int64 (windows,), the row to which each window belongs; ascending.
    window_weights: int64 (windows,), the wordpieces in each window, without special tokens.
    n_cut: int64 (rows,), wordpieces cut off; tokens at the row's end that have no wordpieces, white
        space among them, if another package's model made the batch.
    settings: of the encoder, None if another package's model made the batch.
    characters: int64 (rows, 2), of each row in its Doc, without white space at its ends; None if
        they are not known.
    is_merged: bool (rows,), whether a row was merged of windows that overlap; None if none was.
    """

    spans: numpy.ndarray
    row_of: numpy.ndarray
    window_weights: numpy.ndarray
    n_cut: numpy.ndarray
    settings: SentenceTransformersConfig | None
    characters: numpy.ndarray | None = None
    is_merged: numpy.ndarray | None = None

    @classmethod
    def empty(cls) -> SpanBatch:
        """Return the rows of a Doc without text."""
        zeros = numpy.zeros(0, dtype="int64")
        pairs = zeros.reshape(0, 2)
        return cls(pairs, zeros, zeros, zeros, None, pairs)

    @classmethod
    def of_texts(
        cls, wordpieces: TokenizedBatch, settings: SentenceTransformersConfig
    ) -> SpanBatch:
        """Return texts as rows, without places in a Doc."""
        n_cut = numpy.bincount(wordpieces.text_of, weights=wordpieces.n_cut).astype("int64")
        spans = numpy.zeros((len(n_cut), 2), "int64")
        return cls(spans, wordpieces.text_of, wordpieces.n_text, n_cut, settings)

    @property
    def has_text(self) -> numpy.ndarray:
        """Bool (rows,): whether there are wordpieces beside the special tokens."""
        n_pieces = numpy.bincount(
            self.row_of, weights=self.window_weights, minlength=len(self.spans)
        )
        return n_pieces > 0

    @property
    def has_merged(self) -> bool:
        """True if a row was merged of windows, so that it is none of a sentence encoder."""
        return self.is_merged is not None and bool(self.is_merged.any())

    def part(self, rows: slice, windows: slice) -> SpanBatch:
        """Return some of the rows, with their windows."""
        return SpanBatch(
            spans=self.spans[rows],
            row_of=self.row_of[windows] - rows.start,
            window_weights=self.window_weights[windows],
            n_cut=self.n_cut[rows],
            settings=self.settings,
            characters=_if_known(self.characters, rows),
            is_merged=_if_known(self.is_merged, rows),
        )

    @property
    def overlap(self) -> bool:
        """Whether rows of one Doc share tokens.

        Sentences behind the row of their Doc do not count.
        """
        # As most Docs have it
        if len(self.spans) < 2:
            return False
        apart = self.spans
        first_end = self.spans[0, 1]
        if (self.spans[1:, 1] <= first_end).all():
            apart = self.spans[1:]
        return bool((apart[1:, 0] < apart[:-1, 1]).any())


def _if_known(array: numpy.ndarray | None, rows: slice) -> numpy.ndarray | None:
    return None if array is None else array[rows]


@dataclass
class EncodedSpans:
    """Rows of a batch of Docs, and the states of their windows, N wordpieces in all.

    rows: of all Docs, one after another.
    borders: where the rows of each Doc begin, and where the last end.
    lengths: int64 (windows,), the wordpieces of each window.
    states: of all windows, each once, in any order; none before they are encoded.
    backprop: what takes the gradients of their values to the encoder.
    n_lead: how many wordpieces at the start of each window are not pooled.
    texts: of each row; None if they are not known.
    characters: int32 (N, 2), of each wordpiece in its Doc; None if they are not needed.
    of_text: bool (N,), all wordpieces but special tokens and those of a prompt; None if characters
        are not known.
    kept: bool (N,), which wordpieces other Spans and Tokens of their Docs are made of, see
        keep_pieces.
    """

    rows: SpanBatch
    borders: list[int]
    lengths: numpy.ndarray
    states: Iterable[TokenEmbeddings] = ()
    backprop: Backprop = no_gradient
    n_lead: int = 0
    texts: Sequence[str | None] | None = None
    characters: numpy.ndarray | None = None
    of_text: numpy.ndarray | None = None
    kept: numpy.ndarray | None = None

    @classmethod
    def empty(cls, n_docs: int, backprop: Backprop = no_gradient) -> EncodedSpans:
        """Return the batch of Docs without text."""
        borders = [0] * (n_docs + 1)
        return cls(SpanBatch.empty(), borders, numpy.zeros(0, dtype="int64"), backprop=backprop)

    @cached_property
    def window_borders(self) -> list[int]:
        """Where the windows of each Doc begin, and where the last end."""
        return numpy.searchsorted(self.rows.row_of, self.borders).tolist()

    def list_states(self) -> list[TokenEmbeddings]:
        """Encode what is not encoded yet, and return the states as a list, which is kept."""
        if not isinstance(self.states, list):
            self.states = list(self.states)
        return self.states

    def keep_pieces(self, characters: numpy.ndarray, of_text: numpy.ndarray) -> None:
        """Set the wordpieces that other Spans and Tokens are made of.

        They are those of the outermost rows, none twice.

        characters: int32 (N, 2). of_text: bool (N,), all but special tokens and those of a prompt.
        """
        self.characters = characters
        self.of_text = of_text
        self.kept = of_text
        n_rows = numpy.diff(self.borders)
        # A Doc that is one row keeps all of it
        if (n_rows != 1).any():
            ends = self.rows.spans[:, 1]
            # Docs are laid end to end, so that one pass finds the rows that reach furthest
            ends = ends + group_of(n_rows) * (1 + ends.max(initial=0))
            is_outermost = numpy.append(True, ends[1:] > numpy.maximum.accumulate(ends)[:-1])
            self.kept = of_text & numpy.repeat(is_outermost[self.rows.row_of], self.lengths)


def row_characters(spans: Sequence[Span], texts: Sequence[str]) -> numpy.ndarray:
    """Return the characters of each Span in its Doc, without white space: int64 (n, 2)."""
    return numpy.array(
        [trimmed(text, span.start_char) for span, text in zip(spans, texts, strict=True)]
    )


def encode_spans(
    tokenizer: BatchTokenizer, spans: SpansByDoc, *, prompt: str, with_pieces: bool
) -> tuple[TokenizedBatch, EncodedSpans]:
    """Return the wordpieces of the rows of a batch of Docs, and the rows without states.

    spans (SpansByDoc): the rows of each Doc, in the order of the text; one at least. prompt
        (str): before each.
    with_pieces (bool): whether to record the characters of the wordpieces in their Docs, as token
        vectors need them.
    """
    flat = flat_spans(spans)
    # A row of spacy-transformers has no last space
    if tokenizer.overflow.as_spacy_transformers:
        texts = [span.text for span in flat]
    else:
        texts = [row_text(span) for span in flat]
    wordpieces = tokenizer(texts, offsets=with_pieces, prompt=prompt)
    rows = replace(
        SpanBatch.of_texts(wordpieces, tokenizer.settings),
        spans=_token_bounds(flat),
        characters=row_characters(flat, texts),
    )
    borders = borders_of(map(len, spans))
    batch = EncodedSpans(rows, borders, wordpieces.lengths, n_lead=wordpieces.n_lead, texts=texts)
    if with_pieces:
        batch.keep_pieces(*_pieces_in_docs(tokenizer, wordpieces, spans, texts))
    return wordpieces, batch


def row_text(span: Span) -> str:
    """Return the text of a row: that of a whole Doc has its last space, which no Span has."""
    if len(span) == len(span.doc):
        return span.doc.text
    return span.text


def flat_spans(spans: SpansByDoc) -> list[Span]:
    """Return the Spans of all Docs, one after another."""
    return [span for doc_spans in spans for span in doc_spans]


def _token_bounds(spans: list[Span]) -> numpy.ndarray:
    """Return the start and end token of each Span, int64 (n, 2)."""
    return numpy.array([(span.start, span.end) for span in spans])


def _pieces_in_docs(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, spans: SpansByDoc, texts: list[str]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the characters of wordpieces in their Docs, int32 (N, 2), and which are of text.

    A slow tokenizer knows no characters: those of the tokens that are aligned with a wordpiece
    stand in for them.
    """
    if wordpieces.offsets is not None:
        starts = numpy.array([span.start_char for span in flat_spans(spans)])
        starts = numpy.repeat(starts[wordpieces.text_of], wordpieces.lengths)
        characters = (wordpieces.offsets + starts[:, None]).astype("int32")
        return characters, ~wordpieces.special
    docs = [doc_spans[0].doc for doc_spans in spans if doc_spans]
    align = align_wordpieces(tokenizer, wordpieces, spans, texts)
    characters = piece_characters(align, docs, len(wordpieces.ids))
    return characters, characters[:, 1] > 0


def read_tokens(
    docs: list[Doc], spans: SpansByDoc, counts: numpy.ndarray, *, with_pieces: bool
) -> tuple[list[Span], numpy.ndarray, EncodedSpans]:
    """Return the rows of Docs in units that were made of their tokens, white space left out.

    See encode_spans.

    counts (int64 (tokens,)): how many units each token of all Docs has.
    RETURNS (list[Span], int64 (N,), EncodedSpans): the rows of all Docs, the index of each of their
        N units among the units of all Docs, and the batch, still without states: a window a row.
    """
    flat = flat_spans(spans)
    n_rows = len(flat)
    bounds = _token_bounds(flat)
    sizes = bounds[:, 1] - bounds[:, 0]
    # The tokens of each row, numbered through all Docs
    first_of_doc = borders_of(map(len, docs))[:-1]
    first_of_row = numpy.repeat(first_of_doc, [len(doc_spans) for doc_spans in spans])
    tokens = ragged_arange(bounds[:, 0] + first_of_row, sizes)
    row_of = group_of(sizes)
    attributes = numpy.concatenate(
        [doc.to_array([IDX, LENGTH, IS_SPACE]).astype("int64") for doc in docs]
    )[tokens]
    is_kept = attributes[:, 2] == 0
    tokens = tokens[is_kept]
    n_units = counts[tokens]
    lengths = numpy.bincount(row_of[is_kept], weights=n_units, minlength=n_rows).astype("int64")
    rows = SpanBatch(
        bounds,
        row_of=numpy.arange(n_rows),
        window_weights=lengths,
        n_cut=numpy.zeros(n_rows, "int64"),
        settings=None,
        characters=row_characters(flat, [span.text for span in flat]),
    )
    batch = EncodedSpans(rows, borders_of(map(len, spans)), lengths)
    if with_pieces:
        # From a start and a length to a start and an end
        characters = numpy.cumsum(attributes[is_kept, :2], axis=1).astype("int32")
        characters = numpy.repeat(characters, n_units, axis=0)
        batch.keep_pieces(characters, numpy.ones(len(characters), dtype=bool))
    first_units = numpy.cumsum(counts) - counts
    return flat, ragged_arange(first_units[tokens], n_units), batch


def in_places(values: Array, places: numpy.ndarray) -> tuple[Array, Callable[[Array], Array]]:
    """Return rows of an array, float (n, width), and their backprop.

    Gradients of the same row add up.
    """
    ops = get_array_ops(values)
    index = ops.xp.asarray(places)

    def backprop(d_rows: Array) -> Array:
        d_values = values * 0
        ops.scatter_add(d_values, index, d_rows)
        return d_values

    return values[index], backprop
