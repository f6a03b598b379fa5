"""Encoded spans of a Doc, settings of a call, and the warning about truncated texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..errors import Warnings
from .span_batch import SpanBatch

# float32 (texts, width), and how many texts were cut
Encoded = tuple[numpy.ndarray, int]
# Takes how many more texts are done, such as the update of a bar
ProgressCallback = Callable[[int], object]


@dataclass
class WordpieceStates:
    """States of a Doc's wordpieces, for Tokens, and Spans that are no rows.

    Special tokens are left out.
    """

    # float32 (wordpieces, width), in memory of their own
    states: numpy.ndarray
    # int32 (wordpieces, 2), of each in the Doc
    characters: numpy.ndarray


@dataclass
class EncodedDoc:
    """The rows of one Doc and their vectors."""

    # In the order of the text
    rows: SpanBatch
    # float32 (rows, width) on the model's device; zero for a row without wordpieces
    vectors: Floats2d
    pooling: str
    # Whether the vectors have unit length
    normalize: bool
    # For other Spans and for Tokens; None in training and with token_vectors = false
    wordpieces: WordpieceStates | None
    # Whether a dense layer made the vectors of pooled ones
    dense: bool = False
    # The text of the first row; None if it is not known
    text: str | None = None


@dataclass(frozen=True)
class EncodeSettings:
    """Settings of one call of `encode`, `predict` or the pipe; None for those of the config."""

    # Put before each text, "" for nothing
    prompt: str | None = None
    # How many dimensions of the vectors are kept
    truncate_dim: int | None = None
    # Whether to return what other Spans and Tokens need to have vectors
    token_vectors: bool = True


DEFAULT_SETTINGS = EncodeSettings()


class TruncationCounter:
    """Counts the rows that were longer than the encoder's limit, for one warning for many Docs."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        # None if it is not known
        self.limit: int | None = None

    def add(self, doc: Doc, encoded: EncodedDoc) -> None:
        """Count the rows of a Doc."""
        rows = encoded.rows
        limit = None
        if rows.settings is not None:
            limit = rows.settings.max_length
        self.add_rows(len(rows.spans), n_rows_cut(doc, rows), limit)

    def add_rows(self, n_rows: int, n_cut: int, limit: int | None) -> None:
        """Count rows, and how many of them were cut."""
        self.total += n_rows
        self.count += n_cut
        self.limit = limit or self.limit

    @property
    def message(self) -> str:
        limit = ""
        if self.limit is not None:
            limit = f" of {self.limit} wordpieces"
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=limit)


def n_rows_cut(doc: Doc, rows: SpanBatch) -> int:
    """Return how many rows were longer than the limit."""
    if rows.settings is not None:
        return int(numpy.count_nonzero(rows.n_cut))
    count = 0
    for n_tokens, end in zip(rows.n_cut.tolist(), rows.spans[:, 1].tolist(), strict=True):
        if any(not token.is_space for token in doc[end - n_tokens : end]):
            count += 1
    return count
