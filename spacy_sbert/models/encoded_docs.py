"""Encoded spans of a Doc, options of encoding, and the warning about truncated texts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..errors import Warnings
from .span_batch import SpanBatch

Encoded = tuple[numpy.ndarray, int]  # float32 (texts, width), and how many texts were cut
ProgressCallback = Callable[[int], object]  # is told how many more texts are done, such as the update of a bar


@dataclass
class WordpieceStates:
    """The states of a Doc's wordpieces, without special tokens: for Tokens, and Spans that are no rows.

    states: float32 (wordpieces, width), in memory of their own. characters: int32 (wordpieces, 2), of each in the Doc.
    """

    states: numpy.ndarray
    characters: numpy.ndarray


@dataclass
class EncodedDoc:
    """The rows of one Doc and their vectors.

    rows: where they stand, in the order of the text.
    vectors: float32 (rows, width) on the model's device; zero for a row without wordpieces.
    pooling: see make_pooling.
    normalize: whether the vectors have unit length.
    wordpieces: for the vectors of other Spans and of Tokens; None in training and with token_vectors = false.
    dense: whether a dense layer made the vectors of pooled ones.
    text: of the first row; None if nobody noted it.
    """

    rows: SpanBatch
    vectors: Floats2d
    pooling: str
    normalize: bool
    wordpieces: WordpieceStates | None
    dense: bool = False
    text: str | None = None

    def __repr__(self) -> str:
        rows, width = self.vectors.shape
        return f"EncodedDoc({rows} vectors of {width} numbers, {self.pooling} pooling)"

    @classmethod
    def without_rows(cls, vectors: Floats2d, pooling: str) -> "EncodedDoc":
        """Return what a Doc without text gets; vectors (float (0, width)): of the width that others have."""
        return cls(SpanBatch.none(), vectors, pooling, False, None)


@dataclass(frozen=True)
class EncodeSettings:
    """Settings of one call of `encode`, `predict` or the pipe, in place of those of the config.

    prompt: what is put before each text, "" for nothing; None for the config's.
    truncate_dim: how many dimensions of the vectors are kept; None for the config's.
    token_vectors: whether to return what other Spans and Tokens need to have vectors.
    """

    prompt: str | None = None
    truncate_dim: int | None = None
    token_vectors: bool = True


DEFAULT_SETTINGS = EncodeSettings()


class TruncationCounter:
    """Counts the rows that were longer than the encoder's limit, for one warning for many Docs."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.limit: int | str = "unknown"

    def add(self, doc: Doc, encoded: EncodedDoc) -> None:
        """Count the rows of a Doc."""
        limit = encoded.rows.settings.max_length if encoded.rows.settings else None
        self.add_rows(len(encoded.rows.spans), n_rows_cut(doc, encoded.rows), limit)

    def add_rows(self, n_rows: int, n_cut: int, limit: int | None) -> None:
        """Count rows, and how many of them were cut."""
        self.total += n_rows
        self.count += n_cut
        self.limit = limit or self.limit

    @property
    def message(self) -> str:
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)


def n_rows_cut(doc: Doc, rows: SpanBatch) -> int:
    """Return how many rows were longer than the limit."""
    if rows.settings is not None:
        return int(numpy.count_nonzero(rows.n_cut))
    tails = [doc[end - n : end] for n, (_, end) in zip(rows.n_cut.tolist(), rows.spans.tolist(), strict=True)]
    return sum(any(not token.is_space for token in tail) for tail in tails)
