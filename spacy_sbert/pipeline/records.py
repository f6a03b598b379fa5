"""The vectors that pipes store on Docs, as records in `doc.user_data`, and which record answers for which text.

A Doc that was joined by `Doc.from_docs` has several records of a pipe: each answers for its own text, if that is there
as a whole. A Doc that `Span.as_doc` has cut out of a longer one answers as the Span that it was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast
from weakref import ref

import numpy
from spacy.tokens import Doc
from thinc.util import get_array_module, is_cupy_array, to_numpy

from ..models.encoded_docs import EncodedDoc, n_rows_cut
from ..models.span_batch import borders_of, row_characters

PREFIX = "spacy-sbert:"  # of the keys in doc.user_data and doc.user_hooks
Encoders = Mapping[str, str]  # from the fingerprint of an encoder to the name of the pipe that used it
# What a pipe stores on a Doc: NumPy arrays and scalars, places in characters from its start.
#   rows: int32 (rows, 2). vectors: float32 (rows, width). has_text: bool (rows,). width. text: of the Doc.
#   pooling, normalize: how vectors were made; of a meta-embedding combined_by, its pipe, in their place.
#   fingerprint: of the encoder; missing if it is not known. dense: True with a dense layer.
#   set_hooks: whether the pipe answers `doc.vector`. truncated: whether a row was cut.
#   states, characters: float32 (wordpieces, width) without special tokens, int32 (wordpieces, 2): with token vectors.
Record = dict[str, Any]


def on_cpu(scores: Sequence[EncodedDoc]) -> Sequence[EncodedDoc]:
    """Return the encoded Docs of a batch with NumPy vectors, copied from a GPU all at once."""
    vectors: list[Any] = [encoded.vectors for encoded in scores]
    if not any(map(is_cupy_array, vectors)):
        return scores
    copied = to_numpy(get_array_module(vectors[0]).concatenate(vectors))
    parts = zip(scores, pairwise(borders_of(map(len, vectors))), strict=True)
    return [replace(encoded, vectors=copied[start:end]) for encoded, (start, end) in parts]


def make_record(doc: Doc, encoded: EncodedDoc, *, set_hooks: bool, fingerprint: str = "") -> Record:
    """Return the record of a Doc; fingerprint (str): of the encoder, "" if it is not known."""
    rows, characters = encoded.rows, encoded.rows.characters
    if characters is None:  # of a model that was called without the pipe
        spans = [doc[slice(*span)] for span in rows.spans]
        characters = row_characters(spans, [span.text for span in spans])
    record = {
        "rows": characters.astype("int32"),
        "vectors": to_numpy(encoded.vectors),
        "has_text": rows.has_text,
        "width": encoded.vectors.shape[1],
        "pooling": encoded.pooling,
        "normalize": encoded.normalize,
        "set_hooks": set_hooks,
        "truncated": n_rows_cut(doc, rows) > 0,
    }
    if encoded.text is not None and rows.spans[0].tolist() == [0, len(doc)]:
        record["text"] = encoded.text  # doc.text joins the tokens at each call
    if fingerprint and len(rows.spans):
        record["fingerprint"] = fingerprint
    if encoded.dense:
        record["dense"] = True
    if encoded.wordpieces is not None:
        record["states"], record["characters"] = encoded.wordpieces.states, encoded.wordpieces.characters
    return record


@dataclass
class PlacedRecord:
    """A record of the pipe `name`, and its place in its Doc: characters [start, end)."""

    name: str
    start: int
    end: int
    data: Record

    @property
    def rows(self) -> numpy.ndarray:
        """int32 (rows, 2): the characters of each row in the Doc."""
        return self.data["rows"] + self.start

    @property
    def vectors(self) -> numpy.ndarray:
        """float32 (n, width): the rows whose mean is the vector of the whole text.

        One at most where the first row is the whole text, and the others are its sentences.
        """
        rows, vectors, has_text = self.data["rows"], self.data["vectors"], self.data["has_text"]
        if len(rows) > 1 and rows[0, 0] <= rows[:, 0].min() and rows[0, 1] >= rows[:, 1].max():
            return vectors[:1][has_text[:1]]
        return vectors[has_text]

    def row_at(self, start: int, end: int) -> numpy.ndarray | None:
        """Return the vector of the row that covers exactly the characters [start, end), if there is one."""
        hits = numpy.flatnonzero((self.rows == (start, end)).all(axis=1))
        return self.data["vectors"][hits[0]] if len(hits) else None

    def place_in(self, text: str) -> tuple[int, int] | None:
        """Return the characters of a Doc, of this text, that the record answers for; None if its text is not there.

        It is there as a whole, or, in a Doc that `Span.as_doc` has cut out, in as far as the Doc consists of it.
        """
        place = start, end = max(self.start, 0), min(self.end, len(text))
        if place not in ((self.start, self.end), (0, len(text))):
            return None
        return place if self.data["text"][start - self.start : end - self.start] == text[start:end] else None


def find(doc: Doc, name: str | None = None) -> list[PlacedRecord]:
    """Return the records of one pipe on a Doc: several after `Doc.from_docs`, none on a Doc of another pipeline.

    name: the pipe; None for the one that answers `doc.vector`: the last with set_hooks = true, or else the last.
    """
    records = list(all_records(doc))
    if name is None and records:
        name = next((r.name for r in reversed(records) if r.data["set_hooks"]), records[-1].name)
    return [record for record in records if record.name == name]


def names(doc: Doc) -> list[str]:
    """Return the names of the pipes that left a record on a Doc, in the order they ran."""
    return list(dict.fromkeys(record.name for record in all_records(doc)))


def all_records(doc: Doc) -> Iterator[PlacedRecord]:
    """Yield the records of a Doc, of all pipes."""
    for key, data in cast(dict[Any, Any], doc.user_data).items():
        is_of_span = isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is not None
        if is_of_span and key[1].startswith(PREFIX):
            yield PlacedRecord(key[1][len(PREFIX) :], key[2], key[3], data)


def encoders_of(records: Iterable[PlacedRecord]) -> Encoders:
    """Return the encoders that made the vectors of records, those that are known."""
    return {record.data["fingerprint"]: record.name for record in records if record.data.get("fingerprint")}


def parts_of(records: Sequence[PlacedRecord], text: str) -> tuple[list[PlacedRecord], bool]:
    """Return the records that a Doc consists of, in order, and whether `Span.as_doc` has cut it out of a longer one.

    RAISES (ValueError): if it was joined from others, and a part is not the whole text of a record.
    """
    # as_doc keeps the records of texts that it has cut off
    inside = [record for record in records if record.end > 0 and record.start < len(text)] or list(records)
    first = inside[0]
    if len(inside) == 1 and first.place_in(text) == (0, len(text)) != (first.start, first.end):
        return [first], True
    ordered, position = sorted(inside, key=lambda record: (record.start, record.end)), 0
    for record in ordered:
        if text[position : record.start].strip():
            raise _joined_doc(text[position : record.start], record.name)
        if record.place_in(text) != (record.start, record.end) or record.start < position:
            raise _joined_doc(text[position : record.end], record.name)
        position = record.end
    if text[position:].strip():
        raise _joined_doc(text[position:], first.name)
    return ordered, False


def record_of(doc: Doc, records: Sequence[PlacedRecord], start: int, end: int) -> PlacedRecord:
    """Return the record that answers for the characters [start, end) of a Doc. RAISES (ValueError): if none does."""
    text = text_of(doc)
    for record in records:
        place = record.place_in(text)
        if place is not None and place[0] <= start and end <= place[1]:
            return record
    raise _joined_doc(text[start:end], records[0].name)


def _joined_doc(text: str, name: str) -> ValueError:
    return ValueError(
        f"This Doc was joined from others, and '{text.strip()[:50]}' in it is not a whole text that the pipe '{name}' "
        "encoded. Call nlp on its text: nlp(doc.text)."
    )


_last_text: tuple[ref[Doc], str] | None = None  # of one Doc, whose Tokens may be looked up one by one


def text_of(doc: Doc) -> str:
    """Return the text of a Doc, which never changes."""
    global _last_text
    last = _last_text
    if last is None or last[0]() is not doc:
        last = _last_text = ref(doc), doc.text
    return last[1]
