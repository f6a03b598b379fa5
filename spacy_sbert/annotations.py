"""From what the encoder returned for a Doc to the record that is kept on it."""

from typing import Any

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc

from .errors import Warnings
from .layers.encoded import EncodedDoc
from .records import trimmed
from .similarity import as_numpy


def make_record(doc: Doc, encoded: EncodedDoc, *, width: int, set_hooks: bool) -> dict[str, Any]:
    """The record of a Doc: NumPy arrays and scalars, places in characters, see records.

    doc (Doc): the Doc that was encoded.
    encoded (EncodedDoc): its rows, on whatever device.
    width (int): of the vectors, also where there are none.
    set_hooks (bool): whether the pipe answers `doc.vector`.
    RETURNS (dict): rows int32 (rows, 2), vectors float32 (rows, width), has_text bool (rows,), width, pooling,
        normalize, set_hooks, truncated; with token vectors also token_starts and token_ends int32 (tokens,), and
        tokens, the fields of TokenStates.
    """
    rows = encoded.rows
    positions = doc.to_array([IDX, LENGTH]).astype("int32")  # (tokens, 2)
    starts, ends = positions[:, 0].copy(), positions.sum(axis=1, dtype="int32")
    record = {
        "rows": numpy.array([trimmed(doc[start:end]) for start, end in rows.spans.tolist()], dtype="int32").reshape(
            -1, 2
        ),
        "vectors": as_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": width,
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": bool(_was_cut(doc, encoded).any()),
    }
    if encoded.tokens is not None:
        n_tokens = len(encoded.tokens.counts)
        record.update(token_starts=starts[:n_tokens], token_ends=ends[:n_tokens], tokens=vars(encoded.tokens))
    return record


class CutCounter:
    """Counts the rows that were longer than the encoder's limit, for one warning for many Docs."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.limit: int | str = "unknown"

    def add(self, doc: Doc, encoded: EncodedDoc) -> None:
        self.total += len(encoded.rows.spans)
        self.count += int(_was_cut(doc, encoded).sum())
        if encoded.rows.settings and encoded.rows.settings.max_length:
            self.limit = encoded.rows.settings.max_length

    @property
    def message(self) -> str:
        return Warnings.TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)


def _was_cut(doc: Doc, encoded: EncodedDoc) -> numpy.ndarray:
    """bool (rows,): whether a row was longer than the limit."""
    rows = encoded.rows
    if rows.settings is not None:
        return rows.n_cut > 0
    tails = [doc[end - n : end] for n, (_, end) in zip(rows.n_cut.tolist(), rows.spans.tolist(), strict=True)]
    return numpy.array([any(not token.is_space for token in tail) for tail in tails], dtype=bool)
