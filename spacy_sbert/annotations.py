"""From what the encoder returned for a Doc to the record that is kept on it."""

from typing import Any, cast

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc

from .encoder.rows import Rows
from .errors import Warnings
from .layers.encoded import EncodedDoc, WordpieceStates
from .records import trimmed
from .similarity import as_numpy


def make_record(doc: Doc, encoded: EncodedDoc, *, width: int, set_hooks: bool) -> dict[str, Any]:
    """The record of a Doc: NumPy arrays and scalars, places in characters, see records.

    doc (Doc): the Doc that was encoded.
    encoded (EncodedDoc): its rows, on whatever device.
    width (int): of the vectors, also where there are none.
    set_hooks (bool): whether the pipe answers `doc.vector`.
    RETURNS (dict): rows int32 (rows, 2), vectors float32 (rows, width), has_text bool (rows,), width, pooling,
        normalize, set_hooks, truncated; with token vectors also states float32 (wordpieces, width), special tokens
        left out, and characters int32 (wordpieces, 2).
    """
    rows = encoded.rows
    row_places = [trimmed(doc[start:end]) for start, end in rows.spans.tolist()]
    record = {
        "rows": numpy.array(row_places, dtype="int32").reshape(-1, 2),
        "vectors": as_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": width,
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": bool(_was_cut(doc, encoded).any()),
    }
    if encoded.wordpieces is not None:
        characters = _characters(doc, rows, encoded.wordpieces)
        kept = numpy.flatnonzero(characters[:, 1] > characters[:, 0])
        record.update(states=as_numpy(encoded.wordpieces.states)[kept], characters=characters[kept])
    return record


def _characters(doc: Doc, rows: Rows, wordpieces: WordpieceStates) -> numpy.ndarray:
    """int32 (wordpieces, 2): where each begins and ends in the Doc; empty for special tokens."""
    if wordpieces.offsets is not None:
        row_starts = numpy.array([doc[start].idx for start in rows.spans[:, 0].tolist()])
        window_starts = numpy.repeat(row_starts[rows.row_of], wordpieces.lengths)
        return (wordpieces.offsets + window_starts[:, None]).astype("int32")
    align = cast(Any, wordpieces.align)
    token_starts, token_lengths = doc.to_array([IDX, LENGTH]).astype("int32").T
    tokens, pieces = numpy.repeat(numpy.arange(len(align.lengths)), align.lengths), align.dataXd
    characters = numpy.zeros((len(wordpieces.states), 2), dtype="int32")
    characters[pieces[::-1], 0] = token_starts[tokens[::-1]]  # of several tokens the first
    characters[pieces, 1] = (token_starts + token_lengths)[tokens]  # and the last
    return characters


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
