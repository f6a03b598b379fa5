"""The rows that were longer than the encoder's limit."""

import numpy
from spacy.tokens import Doc

from ..encoder.rows import Rows
from .encoded import EncodedDoc
from .errors import Warnings


class CutCounter:
    """Counts the rows that were longer than the encoder's limit, for one warning for many Docs."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.limit: int | str = "unknown"

    def add(self, doc: Doc, encoded: EncodedDoc) -> None:
        limit = encoded.rows.settings.max_length if encoded.rows.settings else None
        self.add_rows(len(encoded.rows.spans), n_rows_cut(doc, encoded.rows), limit)

    def add_rows(self, n_rows: int, n_cut: int, limit: int | None) -> None:
        self.total += n_rows
        self.count += n_cut
        self.limit = limit or self.limit

    @property
    def message(self) -> str:
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)


def n_rows_cut(doc: Doc, rows: Rows) -> int:
    """How many rows were longer than the limit."""
    if rows.settings is not None:
        return int(numpy.count_nonzero(rows.n_cut))
    tails = [doc[end - n : end] for n, (_, end) in zip(rows.n_cut.tolist(), rows.spans.tolist(), strict=True)]
    return sum(any(not token.is_space for token in tail) for tail in tails)
