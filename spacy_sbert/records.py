"""What an `sbert` pipe stores on a Doc, and how the vector of a Doc, Span or Token is found in it.

A record lives in `doc.user_data` under the key ("._.", "spacy-sbert:" + name of the pipe, 0, length of the text): the
form of a Span extension, which spaCy carries along and shifts in `Doc.from_docs` and `Span.as_doc`. Everything inside
counts characters from the record's start, so that a record stays true wherever its key is shifted to. Its values are
NumPy arrays and plain scalars, which msgpack and pickle know.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy
from spacy.tokens import Doc, Span, Token

from .errors import Errors
from .span_pooling import covering, finished, stretch_vector

PREFIX = "spacy-sbert:"
Dense = Callable[[numpy.ndarray], numpy.ndarray]  # what a dense layer makes of a pooled vector


@dataclass
class PlacedRecord:
    """One stored record and where it stands in its Doc: characters [start, end)."""

    name: str
    start: int
    end: int
    data: dict[str, Any]

    @property
    def rows(self) -> numpy.ndarray:
        """int32 (rows, 2): the characters of each row in the Doc."""
        return self.data["rows"] + self.start

    @property
    def vectors(self) -> numpy.ndarray:
        """float32 (n, width): what the vector of its whole stretch is the mean of; no more than one where a row is
        that stretch, and others are its sentences."""
        rows, vectors, has_text = (self.data[key] for key in ("rows", "vectors", "has_text"))
        if len(rows) > 1 and rows[0, 0] <= rows[:, 0].min() and rows[0, 1] >= rows[:, 1].max():
            return vectors[:1][has_text[:1]]
        return vectors[has_text]

    def row_at(self, start: int, end: int) -> numpy.ndarray | None:
        """The vector of the row that covers exactly the characters [start, end), if there is one."""
        hits = numpy.flatnonzero((self.rows == (start, end)).all(axis=1))
        return self.data["vectors"][hits[0]] if len(hits) else None


def store(doc: Doc, name: str, data: dict[str, Any]) -> None:
    """Put a pipe's record on a Doc; the latest record stands last, also when a pipe runs a second time."""
    user_data = cast(dict[Any, Any], doc.user_data)
    for key in [key for key in user_data if _is_record(key, name)]:
        del user_data[key]
    user_data[("._.", PREFIX + name, 0, _length(doc))] = data


def find(doc: Doc, name: str | None = None) -> list[PlacedRecord]:
    """The records of one pipe on a Doc, several after `Doc.from_docs`, none on a Doc of another pipeline.

    name: the pipe; None for the one that answers `doc.vector`: the last with set_hooks = true, or else the last.
    """
    records = list(_iterate(doc))
    if name is None and records:
        name = next((r.name for r in reversed(records) if r.data["set_hooks"]), records[-1].name)
    return [record for record in records if record.name == name]


def names(doc: Doc) -> list[str]:
    """The names of the pipes that left a record on a Doc, in the order they ran."""
    return list(dict.fromkeys(record.name for record in _iterate(doc)))


def doc_vector(doc: Doc, records: list[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Vector of a whole Doc, and whether it has one: its row, or the mean of its rows, or zeros where there is no
    text."""
    length = _length(doc)
    if len(records) == 1 and len(records[0].data["vectors"]) == 1 and (records[0].start, records[0].end) == (0, length):
        return records[0].data["vectors"][0], bool(records[0].data["has_text"][0])  # as most Docs have it
    if any(record.start < 0 or record.end > length for record in records):
        return _stretch_vector(*trimmed(doc.text, 0), records, doc.text, dense)  # a part of a longer Doc: Span.as_doc
    width = max(record.data["width"] for record in records)
    vectors = [record.vectors for record in records]
    if any(len(rows) and rows.shape[1] != width for rows in vectors):
        widths = sorted({record.data["width"] for record in records})
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=widths[0], theirs=widths[-1]))
    count = sum(len(rows) for rows in vectors)
    if count == 0:
        return numpy.zeros((width,), dtype="float32"), False
    if count == 1:
        return next(rows[0] for rows in vectors if len(rows)), True
    return numpy.concatenate([rows for rows in vectors if len(rows)]).mean(axis=0), True


def span_vector(span: Span, records: list[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Vector of a Span, and whether it has one: its row, or its wordpieces pooled in context."""
    if span.start == 0 and span.end == len(span.doc):
        return doc_vector(span.doc, records, dense)
    return _stretch_vector(*trimmed(span.text, span.start_char), records, span.text, dense)


def is_row(span: Span, records: list[PlacedRecord]) -> bool:
    """Whether a Span was encoded by itself, white space at its ends left aside, or is nothing but white space."""
    start, end = trimmed(span.text, span.start_char)
    return start == end or any(record.row_at(start, end) is not None for record in records)


def trimmed(text: str, start: int) -> tuple[int, int]:
    """The characters of a Span without white space at its ends: a row is the same row with or without it.

    text (str): of the Span. start (int): its first character.
    """
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))


def token_vector(token: Token, records: list[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Vector of a Token, and whether it has one: its wordpieces pooled in context."""
    return _stretch_vector(token.idx, token.idx + len(token), records, token.text, dense)


def _length(doc: Doc) -> int:
    """len(doc.text), without making the text."""
    return doc[-1].idx + len(doc[-1].text_with_ws) if len(doc) else 0


def _iterate(doc: Doc) -> Iterator[PlacedRecord]:
    for key, data in cast(dict[Any, Any], doc.user_data).items():
        if _is_record(key):
            yield PlacedRecord(key[1][len(PREFIX) :], key[2], key[3], data)


def _is_record(key: Any, name: str | None = None) -> bool:
    if not (isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is not None):
        return False
    return key[1].startswith(PREFIX) if name is None else key[1] == PREFIX + name


def _stretch_vector(
    start: int, end: int, records: list[PlacedRecord], text: str, dense: Dense | None
) -> tuple[numpy.ndarray, bool]:
    if start == end:
        return numpy.zeros((records[0].data["width"],), dtype="float32"), False
    records = [record for record in records if record.start < end and record.end > start] or records[:1]
    for record in records:
        row = record.row_at(start, end)
        if row is not None:
            return row, bool(row.any())
    states = []
    for record in records:
        if "combined_by" in record.data:
            raise ValueError(Errors.META_SPAN.format(text=text[:50], name=record.data["combined_by"]))
        if "states" not in record.data:
            raise ValueError(Errors.NO_TOKEN_VECTORS.format(text=text[:50]))
        if record.data.get("dense") and dense is None:
            raise ValueError(Errors.DENSE_SPAN.format(text=text[:50], name=record.name))
        data, at = record.data, record.start
        states.append(covering(data["states"], data["characters"], start - at, end - at))
    found, first = numpy.concatenate(states), records[0].data
    if not len(found):
        return numpy.zeros((first["width"],), dtype="float32"), False
    vector = stretch_vector(found, first["pooling"])
    vector = vector if dense is None else dense(vector)
    return finished(vector, first["width"], first["normalize"]), True
