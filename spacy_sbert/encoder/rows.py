"""The rows of Docs, and the wordpieces and states of each."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Protocol

import numpy
from spacy.tokens import Doc, Span

from ..spans import trimmed
from .align import align_wordpieces, piece_characters
from .settings import FolderSettings
from .states import Backprop, States, no_gradient
from .wordpieces import Wordpieces, WordpieceTokenizer


@dataclass
class Rows:
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
    settings: FolderSettings | None
    characters: numpy.ndarray | None = None
    is_stretch: numpy.ndarray | None = None

    @property
    def foreign(self) -> bool:
        """Whether the windows of a Doc overlap, so that they are not the rows of a sentence encoder."""
        return self.is_stretch is not None and bool(self.is_stretch.any())

    @classmethod
    def none(cls) -> "Rows":
        """Those of a Doc without text."""
        zeros = numpy.zeros(0, dtype="int64")
        nowhere = zeros.reshape(0, 2)
        return cls(nowhere, zeros, zeros, zeros.astype(bool), zeros, None, nowhere)

    def part(self, rows: slice, windows: slice) -> "Rows":
        """Those of one Doc."""
        return Rows(
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
class Pieces:
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
        cls, rows: Rows, borders: list[int], lengths: numpy.ndarray, of_text: numpy.ndarray, characters: numpy.ndarray
    ) -> "Pieces":
        """Those of rows of several Docs; borders (list[int]), lengths (int64 (windows,)): see RowStates."""
        if len(rows.spans) == len(borders) - 1 and (numpy.diff(borders) == 1).all():  # as most batches have it
            return cls(of_text, characters, numpy.ones(len(lengths), dtype=bool))
        stretches = [rows.spans[first:last] for first, last in pairwise(borders) if first < last]
        windows = numpy.concatenate([outermost(spans) for spans in stretches])[rows.row_of]
        return cls(of_text & numpy.repeat(windows, lengths), characters, windows)


@dataclass
class RowStates:
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

    rows: Rows
    borders: list[int]
    lengths: numpy.ndarray
    states: Iterable[States] = ()
    backprop: Backprop = no_gradient
    pieces: Pieces | None = None
    n_lead: int = 0
    texts: list[str] | None = None

    def __post_init__(self) -> None:
        self.window_borders: list[int] = numpy.searchsorted(self.rows.row_of, self.borders).tolist()

    @classmethod
    def none(cls, n_docs: int, backprop: Backprop = no_gradient) -> "RowStates":
        """Those of Docs without text."""
        return cls(Rows.none(), [0] * (n_docs + 1), numpy.zeros(0, dtype="int64"), backprop=backprop)


class RowReader(Protocol):
    """An encoder that reads the rows of Docs."""

    def read(
        self, docs: list[Doc], *, prompt: str | None, with_pieces: bool, is_train: bool
    ) -> AbstractContextManager[RowStates]: ...


def read_spans(
    tokenizer: WordpieceTokenizer, spans: list[list[Span]], *, prompt: str, with_pieces: bool
) -> tuple[Wordpieces, RowStates]:
    """The wordpieces of the rows of a batch of Docs, and the rows, whose states are still to come.

    tokenizer (WordpieceTokenizer): of the encoder.
    spans (list[list[Span]]): the rows of each Doc, in the order of the text; one at least.
    prompt (str): what is put before each.
    with_pieces (bool): whether to say where the wordpieces stand.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    texts = [row_text(span) for span in flat]
    wordpieces = tokenizer(texts, offsets=with_pieces, prompt=prompt)
    rows = rows_of_spans(flat, texts, wordpieces, tokenizer.settings)
    borders, n_lead = borders_of(map(len, spans)), wordpieces.n_lead
    batch = RowStates(rows, borders, wordpieces.lengths, n_lead=n_lead, texts=texts)
    if with_pieces:
        of_text, of_pieces = ~wordpieces.special, doc_characters(wordpieces, flat)
        if of_pieces is None:
            docs = [doc_spans[0].doc for doc_spans in spans if doc_spans]
            doc_of = [number for number, doc_spans in enumerate(filter(None, spans)) for _ in doc_spans]
            align = align_wordpieces(tokenizer, wordpieces, flat, doc_of, texts)
            of_pieces = piece_characters(align, docs, len(wordpieces.ids))
            of_text = of_pieces[:, 1] > 0
        batch.pieces = Pieces.of_rows(rows, batch.borders, batch.lengths, of_text, of_pieces)
    return wordpieces, batch


def rows_of_texts(wordpieces: Wordpieces, settings: FolderSettings) -> Rows:
    """The rows that texts are, without places in a Doc."""
    n_text, text_of = wordpieces.n_text, wordpieces.text_of
    has_text = numpy.bincount(text_of, weights=n_text) > 0
    n_cut = numpy.bincount(text_of, weights=wordpieces.n_cut).astype("int64")
    return Rows(numpy.zeros((len(has_text), 2), dtype="int64"), text_of, n_text, has_text, n_cut, settings)


def rows_of_spans(spans: list[Span], texts: list[str], wordpieces: Wordpieces, settings: FolderSettings) -> Rows:
    """The rows that Spans are; texts (list[str]): theirs."""
    rows = rows_of_texts(wordpieces, settings)
    return replace(rows, spans=span_places(spans), characters=row_characters(spans, texts))


def borders_of(counts: Iterable[int]) -> list[int]:
    """Where each of several stretches begins, and the last ends."""
    return [0, *accumulate(counts)]


def outermost(spans: numpy.ndarray) -> numpy.ndarray:
    """Which rows of a Doc lie within no row before them: its own row does not, its sentences behind it do.

    Tokens and Spans are read in the context of these rows alone, so that none counts twice.

    spans (int64 (rows, 2)): start and end token of each, in the order of the text.
    RETURNS (bool (rows,)).
    """
    ends = numpy.maximum.accumulate(spans[:, 1])
    return numpy.append(True, spans[1:, 1] > ends[:-1])


def row_text(span: Span) -> str:
    """What is tokenised of a row: that of a whole Doc as it was given, whose last space no Span has in its text."""
    return span.doc.text if len(span) == len(span.doc) else span.text


def span_places(spans: list[Span]) -> numpy.ndarray:
    """int64 (n, 2): start and end token of each Span."""
    return numpy.array([(span.start, span.end) for span in spans])


def row_characters(spans: list[Span], texts: list[str]) -> numpy.ndarray:
    """int64 (n, 2): where each Span begins and ends in its Doc, without white space at its ends."""
    return numpy.array([trimmed(text, span.start_char) for span, text in zip(spans, texts, strict=True)])


def doc_characters(wordpieces: Wordpieces, spans: list[Span]) -> numpy.ndarray | None:
    """int32 (wordpieces, 2): where each begins and ends in its Doc, nowhere for special tokens; None for a slow
    tokenizer."""
    if wordpieces.offsets is None:
        return None
    starts = numpy.array([span.start_char for span in spans])[wordpieces.text_of]
    return (wordpieces.offsets + numpy.repeat(starts, wordpieces.lengths)[:, None]).astype("int32")
