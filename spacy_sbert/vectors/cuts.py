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
        self.add_rows(len(encoded.rows.spans), int(was_cut(doc, encoded.rows).sum()), limit)

    def add_rows(self, n_rows: int, n_cut: int, limit: int | None) -> None:
        self.total += n_rows
        self.count += n_cut
        self.limit = limit or self.limit

    @property
    def message(self) -> str:
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)


def was_cut(doc: Doc, rows: Rows) -> numpy.ndarray:
    """bool (rows,): whether a row was longer than the limit."""
    if rows.settings is not None:
        return rows.n_cut > 0
    tails = [doc[end - n : end] for n, (_, end) in zip(rows.n_cut.tolist(), rows.spans.tolist(), strict=True)]
    return numpy.array([any(not token.is_space for token in tail) for tail in tails], dtype=bool)
