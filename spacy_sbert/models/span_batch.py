"""A batch of spans: their token ids, and their token embeddings after the encoder."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias, cast

import numpy
from spacy.attrs import IDX, IS_SPACE, LENGTH
from spacy.tokens import Doc, Span
from spacy_alignments.tokenizations import get_alignments
from thinc.backends import get_array_ops
from thinc.types import Ragged

from .engine.packing import ragged_arange
from .sbert_config import SentenceTransformersConfig
from .spans import trimmed
from .tokenization import BatchTokenizer, TokenizedBatch

# Of NumPy or CuPy
Array: TypeAlias = Any
# Takes the gradient of the values of each TokenEmbeddings
Backprop = Callable[[list[Array]], Any]


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
    """Ignore the gradient of states that nothing is learned from."""


@dataclass
class SpanBatch:
    """The rows of one Doc, or of several, one after another.

    spans: int64 (rows, 2), start and end token.
    row_of: int64 (windows,), the row to which each window belongs; ascending.
    window_weights: int64 (windows,), the wordpieces in each window, without special tokens.
    n_cut: int64 (rows,), wordpieces cut off; tokens at the row's end that have no wordpieces, white
        space among them, if another package's model made the batch.
    settings: of the encoder, None if another package's model made the batch.
    characters: int64 (rows, 2), of each row in its Doc, without white space at its ends; None if
        they are not known.
    is_stretch: bool (rows,), whether a row stands for windows that overlap; None if none does.
    """

    spans: numpy.ndarray
    row_of: numpy.ndarray
    window_weights: numpy.ndarray
    n_cut: numpy.ndarray
    settings: SentenceTransformersConfig | None
    characters: numpy.ndarray | None = None
    is_stretch: numpy.ndarray | None = None

    @classmethod
    def empty(cls) -> "SpanBatch":
        """Return the rows of a Doc without text."""
        zeros = numpy.zeros(0, dtype="int64")
        return cls(zeros.reshape(0, 2), zeros, zeros, zeros, None, zeros.reshape(0, 2))

    @classmethod
    def of_texts(
        cls, wordpieces: TokenizedBatch, settings: SentenceTransformersConfig
    ) -> "SpanBatch":
        """Return texts as rows, without places in a Doc."""
        n_cut = numpy.bincount(wordpieces.text_of, weights=wordpieces.n_cut).astype("int64")
        return cls(
            numpy.zeros((len(n_cut), 2), "int64"),
            wordpieces.text_of,
            wordpieces.n_text,
            n_cut,
            settings,
        )

    @property
    def has_text(self) -> numpy.ndarray:
        """Bool (rows,): whether there are wordpieces beside the special tokens."""
        return (
            numpy.bincount(self.row_of, weights=self.window_weights, minlength=len(self.spans)) > 0
        )

    @property
    def foreign(self) -> bool:
        """True if windows of a Doc overlap, so that they are not the rows of a sentence encoder."""
        return self.is_stretch is not None and bool(self.is_stretch.any())

    def part(self, rows: slice, windows: slice) -> "SpanBatch":
        """Return some of the rows, with their windows."""
        return SpanBatch(
            self.spans[rows],
            self.row_of[windows] - rows.start,
            self.window_weights[windows],
            self.n_cut[rows],
            self.settings,
            None if self.characters is None else self.characters[rows],
            None if self.is_stretch is None else self.is_stretch[rows],
        )

    @classmethod
    def join(cls, docs: "Sequence[SpanBatch]") -> "SpanBatch":
        """Return the rows of several Docs, one at least, as one batch."""
        firsts = borders_of(len(own.spans) for own in docs)[:-1]
        characters = [own.characters for own in docs if own.characters is not None]
        return cls(
            numpy.concatenate([own.spans for own in docs]),
            numpy.concatenate(
                [own.row_of + first for own, first in zip(docs, firsts, strict=True)]
            ),
            numpy.concatenate([own.window_weights for own in docs]),
            numpy.concatenate([own.n_cut for own in docs]),
            docs[0].settings,
            numpy.concatenate(characters) if len(characters) == len(docs) else None,
            numpy.concatenate([numpy.full(len(own.spans), own.foreign) for own in docs]),
        )

    @property
    def overlap(self) -> bool:
        """Whether rows of one Doc share tokens.

        Sentences behind the row of their Doc do not count.
        """
        # As most Docs have it
        if len(self.spans) < 2:
            return False
        apart = self.spans[1:] if (self.spans[1:, 1] <= self.spans[0, 1]).all() else self.spans
        return bool((apart[1:, 0] < apart[:-1, 1]).any())


@dataclass
class EncodedSpans:
    """Rows of a batch of Docs, and the states of their windows, N wordpieces in all.

    rows: of all Docs, one after another.
    borders: where the rows of each Doc begin, and where the last end; window_borders: the same of
        the windows.
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
    texts: list[str] | None = None
    characters: numpy.ndarray | None = None
    of_text: numpy.ndarray | None = None
    kept: numpy.ndarray | None = None

    def __post_init__(self) -> None:
        self.window_borders: list[int] = numpy.searchsorted(self.rows.row_of, self.borders).tolist()

    @classmethod
    def empty(cls, n_docs: int, backprop: Backprop = no_gradient) -> "EncodedSpans":
        """Return the batch of Docs without text."""
        return cls(
            SpanBatch.empty(), [0] * (n_docs + 1), numpy.zeros(0, dtype="int64"), backprop=backprop
        )

    def keep_pieces(self, characters: numpy.ndarray, of_text: numpy.ndarray) -> None:
        """Set the wordpieces that other Spans and Tokens are made of.

        They are those of the outermost rows, none twice.

        characters: int32 (N, 2). of_text: bool (N,), all but special tokens and those of a prompt.
        """
        self.characters = characters
        self.of_text = self.kept = of_text
        n_docs = len(self.borders) - 1
        # Else each Doc is a row
        if len(self.rows.spans) != n_docs or (numpy.diff(self.borders) != 1).any():
            doc_of = numpy.repeat(numpy.arange(n_docs), numpy.diff(self.borders))
            # Docs end to end
            ends = self.rows.spans[:, 1] + doc_of * (1 + self.rows.spans[:, 1].max(initial=0))
            is_outermost = numpy.append(True, ends[1:] > numpy.maximum.accumulate(ends)[:-1])
            self.kept = of_text & numpy.repeat(is_outermost[self.rows.row_of], self.lengths)


def borders_of(counts: Iterable[int]) -> list[int]:
    """Return where each of several stretches begins, and the last ends."""
    return [0, *accumulate(counts)]


def row_characters(spans: list[Span], texts: list[str]) -> numpy.ndarray:
    """Return the characters of each Span in its Doc, without white space: int64 (n, 2)."""
    return numpy.array(
        [trimmed(text, span.start_char) for span, text in zip(spans, texts, strict=True)]
    )


def encode_spans(
    tokenizer: BatchTokenizer, spans: list[list[Span]], *, prompt: str, with_pieces: bool
) -> tuple[TokenizedBatch, EncodedSpans]:
    """Return the wordpieces of the rows of a batch of Docs, and the rows without states.

    spans (list[list[Span]]): the rows of each Doc, in the order of the text; one at least. prompt
        (str): before each.
    with_pieces (bool): whether to record the characters of the wordpieces in their Docs, as token
        vectors need them.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    # The text of a whole Doc has its last space, which no Span has, nor a row of
    # spacy-transformers.
    with_space = not tokenizer.overflow.as_spacy_transformers
    texts = [
        span.doc.text if with_space and len(span) == len(span.doc) else span.text for span in flat
    ]
    wordpieces = tokenizer(texts, offsets=with_pieces, prompt=prompt)
    tokens, characters = (
        numpy.array([(span.start, span.end) for span in flat]),
        row_characters(flat, texts),
    )
    rows = replace(
        SpanBatch.of_texts(wordpieces, tokenizer.settings), spans=tokens, characters=characters
    )
    borders = borders_of(map(len, spans))
    batch = EncodedSpans(rows, borders, wordpieces.lengths, n_lead=wordpieces.n_lead, texts=texts)
    if with_pieces and wordpieces.offsets is not None:
        starts = numpy.array([span.start_char for span in flat])[wordpieces.text_of]
        of_pieces = (wordpieces.offsets + numpy.repeat(starts, wordpieces.lengths)[:, None]).astype(
            "int32"
        )
        batch.keep_pieces(of_pieces, ~wordpieces.special)
    elif with_pieces:
        docs = [doc_spans[0].doc for doc_spans in spans if doc_spans]
        of_pieces = piece_characters(
            align_wordpieces(tokenizer, wordpieces, spans, texts), docs, len(wordpieces.ids)
        )
        batch.keep_pieces(of_pieces, of_pieces[:, 1] > 0)
    return wordpieces, batch


def read_tokens(
    docs: list[Doc], spans: list[list[Span]], counts: numpy.ndarray, *, with_pieces: bool
) -> tuple[list[Span], numpy.ndarray, EncodedSpans]:
    """Return the rows of Docs in units that were made of their tokens, white space left out.

    See encode_spans.

    counts (int64 (tokens,)): how many units each token of all Docs has.
    RETURNS (list[Span], int64 (N,), EncodedSpans): the rows of all Docs, the index of each of their
        N units among the units of all Docs, and the batch, still without states: a window a row.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    starts = [
        start
        for start, doc_spans in zip(borders_of(map(len, docs)), spans, strict=False)
        for _ in doc_spans
    ]
    tokens = numpy.array([(span.start, span.end) for span in flat])
    sizes = tokens[:, 1] - tokens[:, 0]
    places = ragged_arange(tokens[:, 0] + starts, sizes)
    of_tokens = numpy.concatenate(
        [doc.to_array([IDX, LENGTH, IS_SPACE]).astype("int64") for doc in docs]
    )[places]
    is_kept = of_tokens[:, 2] == 0
    places, row_of = places[is_kept], numpy.repeat(numpy.arange(len(flat)), sizes)[is_kept]
    of_rows = counts[places]
    lengths = numpy.bincount(row_of, weights=of_rows, minlength=len(flat)).astype("int64")
    nothing_cut, characters = (
        numpy.zeros(len(flat), "int64"),
        row_characters(flat, [span.text for span in flat]),
    )
    rows = SpanBatch(tokens, numpy.arange(len(flat)), lengths, nothing_cut, None, characters)
    batch = EncodedSpans(rows, borders_of(map(len, spans)), lengths)
    if with_pieces:
        # From a start and a length
        of_units = numpy.cumsum(of_tokens[is_kept, :2], axis=1).astype("int32")
        of_units = numpy.repeat(of_units, of_rows, axis=0)
        batch.keep_pieces(of_units, numpy.ones(len(of_units), dtype=bool))
    return flat, ragged_arange((numpy.cumsum(counts) - counts)[places], of_rows), batch


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


# Alignment of tokens and wordpieces


def align_wordpieces(
    tokenizer: BatchTokenizer, wordpieces: TokenizedBatch, spans: list[list[Span]], texts: list[str]
) -> Ragged:
    """Return the ascending indices of the wordpieces of each token, as int32.

    The tokens are those of all Docs that have a Span.

    Those of a slow tokenizer, which does not know their characters, are aligned by
    spacy-alignments.
    """
    span_of = numpy.repeat(wordpieces.text_of, wordpieces.lengths)
    if wordpieces.offsets is not None:
        return _align_offsets(spans, wordpieces.offsets, span_of)
    return _align_pieces(tokenizer, wordpieces, span_of, spans, texts)


def _align_pieces(
    tokenizer: BatchTokenizer,
    wordpieces: TokenizedBatch,
    span_of: numpy.ndarray,
    spans: list[list[Span]],
    texts: list[str],
) -> Ragged:
    """Align tokens with the wordpieces of a slow tokenizer by their texts.

    span_of (int64 (wordpieces,)): the Spans.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    # The first token of each Doc, of all tokens
    firsts = borders_of(len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans)
    first_of = [first for first, doc_spans in zip(firsts, spans, strict=False) for _ in doc_spans]
    own = numpy.flatnonzero(~wordpieces.special)
    of_spans = numpy.split(own, numpy.searchsorted(span_of[own], numpy.arange(1, len(flat))))
    numbers = cast(numpy.ndarray, wordpieces.pieces)
    wordpieces_of: list[set[int]] = [set() for _ in range(firsts[-1])]
    for span, first, pieces, indices in zip(
        flat, first_of, tokenizer.pieces_of(texts), of_spans, strict=True
    ):
        of_tokens, _ = get_alignments([token.text for token in span], pieces)
        # Pieces that were cut off have no index
        index_of = dict(zip(numbers[indices].tolist(), indices.tolist(), strict=True))
        for token, aligned in zip(span, of_tokens, strict=True):
            kept = [index_of[piece] for piece in aligned if piece in index_of]
            wordpieces_of[first + token.i].update(kept)
    counts = [len(indices) for indices in wordpieces_of]
    ascending = [index for indices in wordpieces_of for index in sorted(indices)]
    return Ragged(
        cast(Any, numpy.array(ascending, dtype="int32")),
        cast(Any, numpy.array(counts, dtype="int32")),
    )


def _align_offsets(
    spans: list[list[Span]], offsets: numpy.ndarray, span_of: numpy.ndarray
) -> Ragged:
    """Align tokens with wordpieces by the characters that both cover.

    spacy-transformers does the same row by row.

    offsets (int64 (wordpieces, 2)): characters, from the Span's start. span_of (int64
        (wordpieces,)): the Spans.
    """
    token_starts, bounds, shift = [], [], 0
    # Docs are laid end to end on one line of characters
    for doc_spans in filter(None, spans):
        doc = doc_spans[0].doc
        token_starts.append(doc.to_array(IDX).astype("int64") + shift)
        ends = [span[-1].idx + len(span[-1].text_with_ws) for span in doc_spans]
        bounds += [
            (span.start_char + shift, end + shift)
            for span, end in zip(doc_spans, ends, strict=True)
        ]
        shift += doc[-1].idx + len(doc[-1].text_with_ws)
    line, (firsts, lasts) = numpy.concatenate(token_starts), numpy.array(bounds)[span_of].T
    begin, end = offsets[:, 0] + firsts, numpy.minimum(offsets[:, 1] + firsts, lasts)
    # No wordpiece reaches into another Span
    return align_characters(line, begin, end)


def align_characters(line: numpy.ndarray, begin: numpy.ndarray, end: numpy.ndarray) -> Ragged:
    """Return the ascending indices of the wordpieces of each token, as int32.

    They are those that share a character with it.

    line (int64 (tokens,)): where tokens begin, ascending. begin, end (int64 (wordpieces,)): of each
        wordpiece on the same line; one without characters belongs to no token.
    """
    pieces = numpy.flatnonzero(end > begin)
    first = numpy.searchsorted(line, begin[pieces], side="right") - 1
    # Of each wordpiece
    n_tokens = numpy.searchsorted(line, end[pieces] - 1, side="right") - first
    tokens, pieces = ragged_arange(first, n_tokens), numpy.repeat(pieces, n_tokens)
    order = numpy.lexsort((pieces, tokens))
    counts = numpy.bincount(tokens, minlength=len(line)).astype("int32")
    return Ragged(cast(Any, pieces[order].astype("int32")), cast(Any, counts))


def piece_characters(align: Ragged, docs: Sequence[Doc], n_pieces: int) -> numpy.ndarray:
    """Return the characters of wordpieces in their Docs, int32 (n_pieces, 2).

    They are those of the tokens that they belong to.
    """
    of_tokens = numpy.concatenate(
        [numpy.asarray(doc.to_array([IDX, LENGTH])).astype("int32") for doc in docs]
    )
    starts, ends = of_tokens[:, 0], of_tokens[:, 0] + of_tokens[:, 1]
    counts, pieces = numpy.asarray(align.lengths), numpy.asarray(align.dataXd).reshape(-1)
    tokens = numpy.repeat(numpy.arange(len(counts)), counts)
    characters = numpy.zeros((n_pieces, 2), dtype="int32")
    characters[pieces[::-1], 0] = starts[tokens[::-1]]
    characters[pieces, 1] = ends[tokens]
    return characters
