"""Which rows of a transformer's batch belong to which stretch of a Doc."""

from dataclasses import dataclass

import numpy
from spacy_transformers.data_classes import TransformerData, WordpieceBatch

from ..similarity import as_numpy
from .settings import EncoderSettings


@dataclass
class RowBatch(WordpieceBatch):
    """A WordpieceBatch that knows what its rows are; one row a window, several windows for a Span that was too long.

    spans: int64 (windows, 3), for each window the number of its Span in the batch and the Span's start and end token.
    n_text: int64 (windows,), wordpieces without special tokens.
    n_cut: int64 (windows,), wordpieces of the text that were cut off.
    row_characters: int64 (windows, 2), where each window's Span begins and ends in its Doc, white space left out.
    characters: int32 (windows, wordpieces, 2), those of each wordpiece in its Doc; None for a slow tokenizer.
    settings: of the encoder that made the batch.
    n_lead: how many wordpieces at the start of each window are not pooled.
    """

    spans: numpy.ndarray
    n_text: numpy.ndarray
    n_cut: numpy.ndarray
    row_characters: numpy.ndarray
    characters: numpy.ndarray | None
    settings: EncoderSettings
    n_lead: int = 0

    def __getitem__(self, index: int | slice) -> "RowBatch":
        part = slice(index, index + 1) if isinstance(index, int) else index
        base = super().__getitem__(part)
        ours = {name: getattr(self, name)[part] for name in ("spans", "n_text", "n_cut", "row_characters")}
        characters = None if self.characters is None else self.characters[part]
        return RowBatch(**vars(base), **ours, characters=characters, settings=self.settings, n_lead=self.n_lead)


def outermost(spans: numpy.ndarray) -> numpy.ndarray:
    """Which rows of a Doc lie within no row before them: its own row does not, its sentences behind it do.

    Tokens and Spans are read in the context of these rows alone, so that none counts twice.

    spans (int64 (rows, 2)): start and end token of each, in the order of the text.
    RETURNS (bool (rows,)).
    """
    ends = numpy.maximum.accumulate(spans[:, 1])
    return numpy.append(True, spans[1:, 1] > ends[:-1])


@dataclass
class Rows:
    """The rows of one Doc.

    spans: int64 (rows, 2), start and end token.
    row_of: int64 (windows,), the row to which each window belongs.
    window_weights: int64 (windows,), the wordpieces in each window, without special tokens.
    has_text: bool (rows,), whether there are wordpieces beside the special tokens.
    n_cut: int64 (rows,), wordpieces cut off; tokens at the row's end that have no wordpieces, white space among them,
        if another package's model made the batch.
    settings: of the encoder, None if another package's model made the batch.
    characters: int64 (rows, 2), of each row in its Doc, without white space at its ends; None if nobody noted them.
    foreign: whether windows overlap, so that they are no rows of a sentence encoder.
    """

    spans: numpy.ndarray
    row_of: numpy.ndarray
    window_weights: numpy.ndarray
    has_text: numpy.ndarray
    n_cut: numpy.ndarray
    settings: EncoderSettings | None
    characters: numpy.ndarray | None = None
    foreign: bool = False

    @classmethod
    def none(cls) -> "Rows":
        """Those of a Doc without text."""
        zeros = numpy.zeros(0, dtype="int64")
        return cls(zeros.reshape(0, 2), zeros, zeros, zeros.astype(bool), zeros, None)


def rows_of(data: TransformerData) -> Rows:
    """The rows of a Doc, as its encoder recorded them, or else as the alignment of tokens and wordpieces shows them."""
    if isinstance(data.wordpieces, RowBatch):
        return _recorded_rows(data.wordpieces)
    return _aligned_rows(data)


def _recorded_rows(batch: RowBatch) -> Rows:
    if len(batch.spans) == 1:  # as most Docs have it
        return Rows(
            batch.spans[:, 1:], numpy.zeros(1, "int64"), batch.n_text, batch.n_text > 0, batch.n_cut, batch.settings
        )
    _, first, row_of = numpy.unique(batch.spans[:, 0], return_index=True, return_inverse=True)
    has_text = numpy.bincount(row_of, weights=batch.n_text) > 0
    n_cut = numpy.bincount(row_of, weights=batch.n_cut).astype("int64")
    spans = batch.spans[first, 1:]
    if _overlap(spans):
        return _foreign_rows(batch.spans[:, 2].max(), len(row_of), has_text, n_cut, batch.settings)
    return Rows(spans, row_of, batch.n_text, has_text, n_cut, batch.settings, batch.row_characters[first])


def _overlap(spans: numpy.ndarray) -> bool:
    """Whether rows overlap, sentences behind the row of their Doc left aside."""
    apart = spans[1:] if outermost(spans).sum() == 1 else spans
    return bool((apart[1:, 0] < apart[:-1, 1]).any())


def _foreign_rows(
    end: int, n_windows: int, has_text: numpy.ndarray, n_cut: numpy.ndarray, settings: EncoderSettings | None
) -> Rows:
    """One row for the whole Doc, whose windows overlap."""
    row_of = numpy.zeros(n_windows, dtype="int64")
    any_text, all_cut = numpy.array([has_text.any()]), numpy.array([n_cut.sum()])
    return Rows(numpy.array([[0, end]]), row_of, row_of + 1, any_text, all_cut, settings, foreign=True)


def _aligned_rows(data: TransformerData) -> Rows:
    n_rows, row_width = data.wordpieces.input_ids.shape
    lengths = as_numpy(data.align.lengths)
    n_tokens = len(lengths)
    tokens = numpy.repeat(numpy.arange(n_tokens), lengths)
    rows = as_numpy(data.align.dataXd).reshape(-1) // row_width
    shared = numpy.unique(numpy.stack([tokens, rows]), axis=1)
    row_of = numpy.arange(n_rows)
    has_text = numpy.bincount(rows, minlength=n_rows) > 0
    none_cut = numpy.zeros(n_rows, dtype="int64")
    if len(numpy.unique(shared[0])) < shared.shape[1]:  # a token in two rows
        return _foreign_rows(n_tokens, n_rows, has_text, none_cut, None)
    # Tokens without wordpieces (white space, what was cut) go to the row before them.
    starts = numpy.full(n_rows, n_tokens)
    numpy.minimum.at(starts, rows, tokens)
    starts = numpy.minimum.accumulate(starts[::-1])[::-1].copy()
    starts[0] = 0
    ends = numpy.append(starts[1:], n_tokens)
    last = starts - 1
    numpy.maximum.at(last, rows, tokens)
    return Rows(numpy.stack([starts, ends], axis=1), row_of, row_of + 1, has_text, ends - last - 1, None)
