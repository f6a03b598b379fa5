"""The records that pipes store in `doc.user_data`, and which answers for which text.

A Doc that was joined by `Doc.from_docs` has several records of a pipe: each answers for its own
text, if that is there as a whole. A Doc that `Span.as_doc` has cut out of a longer one answers as
the Span that it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Required, TypedDict, cast
from unicodedata import category
from weakref import ref

import numpy
from spacy.tokens import Doc
from thinc.util import get_array_module, is_cupy_array, to_numpy

from ..models.encoded_docs import EncodedDoc, n_rows_cut
from ..models.ragged import borders_of
from ..models.span_batch import row_characters
from ..models.spans import trimmed
from .lost_hooks import Start

# Of the keys in doc.user_data and doc.user_hooks
PREFIX = "spacy-sbert:"
# From the fingerprint of an encoder to its name and that of its pipe, for messages
Encoders = Mapping[str, str]


class Record(TypedDict, total=False):
    """What a pipe stores on a Doc: NumPy arrays and scalars; characters count from the Doc's start.

    rows: int32 (rows, 2), the characters of each row.
    vectors: float32 (rows, width).
    has_text: bool (rows,), whether a row has wordpieces beside special tokens.
    text: of the Doc. It is added when the record is stored, if it is not known before.
    pooling, normalize: how vectors were made.
    combined_by: the pipe of a meta-embedding, in place of pooling and normalize.
    fingerprint, encoder: of the encoder, and its name; missing if not known.
    dense: True with a dense layer.
    set_hooks: whether the pipe answers `doc.vector`.
    truncated: whether a row was cut.
    states: float32 (wordpieces, width), without special tokens; only with token vectors.
    characters: int32 (wordpieces, 2), of each of these; only with token vectors.
    """

    rows: Required[numpy.ndarray]
    vectors: Required[numpy.ndarray]
    has_text: Required[numpy.ndarray]
    width: Required[int]
    set_hooks: Required[bool]
    truncated: Required[bool]
    text: str
    pooling: str
    normalize: bool
    combined_by: str
    fingerprint: str
    encoder: str
    dense: bool
    states: numpy.ndarray
    characters: numpy.ndarray


# Of one Doc, whose Tokens may be looked up one by one
_last_text: tuple[ref[Doc], str] | None = None


def make_records(
    docs: Sequence[Doc],
    scores: Sequence[EncodedDoc],
    *,
    set_hooks: bool,
    fingerprint: str = "",
    encoder: str = "",
) -> Iterator[Record]:
    """Yield the record of each Doc of a batch.

    set_hooks (bool): whether the pipe answers `doc.vector`.
    fingerprint, encoder (str): of the encoder, and its name, "" if they are not known.
    """
    for doc, encoded, vectors in zip(docs, scores, _vectors_on_cpu(scores), strict=True):
        rows = encoded.rows
        record: Record = {
            "rows": _row_characters(doc, encoded),
            "vectors": vectors,
            "has_text": rows.has_text,
            "width": vectors.shape[1],
            "pooling": encoded.pooling,
            "normalize": encoded.normalize,
            "set_hooks": set_hooks,
            "truncated": n_rows_cut(doc, rows) > 0,
        }
        if encoded.text is not None and rows.spans[0].tolist() == [0, len(doc)]:
            # doc.text joins the tokens at each call
            record["text"] = encoded.text
        if fingerprint and len(rows.spans):
            record["fingerprint"] = fingerprint
            if encoder:
                record["encoder"] = encoder
        if encoded.dense:
            record["dense"] = True
        if encoded.wordpieces is not None:
            record["states"] = encoded.wordpieces.states
            record["characters"] = encoded.wordpieces.characters
        yield record


def _row_characters(doc: Doc, encoded: EncodedDoc) -> numpy.ndarray:
    """Return the characters of each row of a Doc, int32 (rows, 2)."""
    characters = encoded.rows.characters
    if characters is None:
        # Of a model that was called without the pipe
        spans = [doc[start:end] for start, end in encoded.rows.spans]
        characters = row_characters(spans, [span.text for span in spans])
    return characters.astype("int32")


def _vectors_on_cpu(scores: Sequence[EncodedDoc]) -> list[numpy.ndarray]:
    """Return the vectors of each Doc of a batch as NumPy arrays, copied from a GPU all at once."""
    vectors: list[Any] = [encoded.vectors for encoded in scores]
    if not any(map(is_cupy_array, vectors)):
        return [to_numpy(array) for array in vectors]
    copied = to_numpy(get_array_module(vectors[0]).concatenate(vectors))
    return [copied[start:end] for start, end in pairwise(borders_of(map(len, vectors)))]


@dataclass
class PlacedRecord:
    """A record of the pipe `name`, and its place in its Doc: characters [start, end)."""

    name: str
    start: int
    end: int
    data: Record

    @property
    def label(self) -> str:
        """The name of the encoder and that of its pipe, for messages."""
        pipe = f"pipe '{self.name}'"
        if "encoder" not in self.data:
            return pipe
        return f"'{self.data['encoder']}' of the {pipe}"

    @property
    def rows(self) -> numpy.ndarray:
        """int32 (rows, 2): the characters of each row in the Doc."""
        return self.data["rows"] + self.start

    @property
    def vectors(self) -> numpy.ndarray:
        """float32 (n, width): the rows whose mean is the vector of the whole text.

        One at most where the first row is the whole text, and the others are its sentences.
        """
        rows = self.data["rows"]
        vectors = self.data["vectors"]
        has_text = self.data["has_text"]
        if len(rows) > 1 and rows[0, 0] <= rows[:, 0].min() and rows[0, 1] >= rows[:, 1].max():
            return vectors[:1][has_text[:1]]
        return vectors[has_text]

    def row_at(self, start: int, end: int) -> numpy.ndarray | None:
        """Return the vector of the row that is the characters [start, end), if there is one."""
        hits = numpy.flatnonzero((self.rows == (start, end)).all(axis=1))
        if not len(hits):
            return None
        return self.data["vectors"][hits[0]]

    def place_in(self, text: str) -> tuple[int, int] | None:
        """Return the characters of a Doc, of this text, that the record answers for.

        None if its text is not there.

        It is there as a whole, or, in a Doc that `Span.as_doc` has cut out, in as far as the Doc
        consists of it.
        """
        start = max(self.start, 0)
        end = min(self.end, len(text))
        is_whole = (start, end) == (self.start, self.end)
        is_all_of_it = (start, end) == (0, len(text))
        own_text = self.data["text"][start - self.start : end - self.start]
        if (is_whole or is_all_of_it) and own_text == text[start:end]:
            return start, end
        return None

    def covered(self, start: int, end: int) -> numpy.ndarray:
        """Return which wordpieces are in the characters [start, end), bool (wordpieces,).

        One over two tokens counts in both.
        """
        places = self.data["characters"] + self.start
        return (places[:, 0] < end) & (places[:, 1] > start)

    def has_read(self, text: str, start: int) -> bool:
        """Return whether the encoder read all of a text, which begins at the character `start`.

        Its first and its last character have a wordpiece, and between two wordpieces nothing is
        left out that can be read: letters, numbers, punctuation, symbols.
        """
        end = start + len(text)
        if not (self.covered(start, start + 1).any() and self.covered(end - 1, end).any()):
            return False
        places = self.data["characters"][self.covered(start, end)] + (self.start - start)
        places = places[numpy.argsort(places[:, 0])]
        ends = numpy.maximum.accumulate(places[:-1, 1])
        gaps = zip(ends.tolist(), places[1:, 0].tolist(), strict=True)
        left_out = "".join(text[first:last] for first, last in gaps)
        return not any(category(character)[0] in "LNPS" for character in left_out)


class Records(list[PlacedRecord]):
    """The records of one pipe on a Doc.

    Several after `Doc.from_docs`, none on a Doc of another pipeline.
    """

    def __init__(self, doc: Doc, records: Sequence[PlacedRecord]):
        super().__init__(records)
        self._doc = doc

    @property
    def text(self) -> str:
        """The text of the Doc, which never changes."""
        global _last_text
        last = _last_text
        if last is None or last[0]() is not self._doc:
            last = (ref(self._doc), self._doc.text)
            _last_text = last
        return last[1]

    @property
    def encoders(self) -> Encoders:
        """The encoders that made the vectors, those that are known."""
        by_fingerprint = {record.data.get("fingerprint"): record for record in self}
        return {
            fingerprint: record.label
            for fingerprint, record in by_fingerprint.items()
            if fingerprint
        }

    @property
    def _inside(self) -> list[PlacedRecord]:
        """The records of texts that the Doc may have.

        as_doc keeps those of texts that it has cut off, too.
        """
        length = len(self.text)
        inside = [record for record in self if record.end > 0 and record.start < length]
        return inside or list(self)

    def parts(self) -> tuple[Records, bool]:
        """Return the records that the Doc consists of, in order, and whether it was cut out.

        `Span.as_doc` cuts a Doc out of another.

        RAISES (ValueError): if it was joined from others, and a part is not the whole text of a
            record.
        """
        text = self.text
        inside = self._inside
        first = inside[0]
        has_all_its_text = (first.start, first.end) == (0, len(text))
        if len(inside) == 1 and not has_all_its_text and first.place_in(text) == (0, len(text)):
            return Records(self._doc, [first]), True
        ordered = sorted(inside, key=lambda record: (record.start, record.end))
        position = 0
        for record in ordered:
            if text[position : record.start].strip():
                raise _joined_doc(text[position : record.start], record.name)
            if record.place_in(text) != (record.start, record.end) or record.start < position:
                raise _joined_doc(text[position : record.end], record.name)
            position = record.end
        if text[position:].strip():
            raise _joined_doc(text[position:], first.name)
        return Records(self._doc, ordered), False

    def at(self, start: int, end: int) -> PlacedRecord:
        """Return the record that answers for the characters [start, end).

        RAISES (ValueError): if none does.
        """
        with_text = [record for record in self._inside if not record.data["text"].isspace()]
        # If there are several, the Doc was joined
        is_alone = len(with_text) <= 1
        for record in self:
            place = record.place_in(self.text)
            is_right = place is not None and place[0] <= start and end <= place[1]
            if is_right and (is_alone or place == (record.start, record.end)):
                return record
        raise _joined_doc(self.text[start:end], self[0].name)

    def rows(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the characters of each row, int32 (rows, 2), and which have text, bool (rows,)."""
        parts, is_cut = self.parts()
        if is_cut:
            # The row of its text, none if that is white space
            start, end = trimmed(self.text, 0)
            n_rows = int(start < end)
            rows = numpy.array([[start, end]] * n_rows, dtype="int32").reshape(-1, 2)
            return rows, numpy.ones(n_rows, dtype=bool)
        has_text = [record.data["has_text"] for record in parts]
        return numpy.concatenate([record.rows for record in parts]), numpy.concatenate(has_text)


def find(doc: Doc, name: str | None = None) -> Records:
    """Return the records of a pipe on a Doc.

    name (str): by default the pipe that answers `doc.vector`: the last with set_hooks, or the last.
    """
    records = list(_all_records(doc))
    if name is None and records:
        answering = [record for record in records if record.data["set_hooks"]] or records
        name = answering[-1].name
    return Records(doc, [record for record in records if record.name == name])


def names(doc: Doc) -> list[str]:
    """Return the names of the pipes that left a record on a Doc, in the order they ran."""
    return list(dict.fromkeys(record.name for record in _all_records(doc)))


def notice_joining(doc: Doc) -> None:
    """Let a Doc that has hooks warn when `Doc.from_docs` drops them, see Start."""
    user_data = cast(dict[Any, Any], doc.user_data)
    keys = [key for key in user_data if _is_of_record(key)]
    if all(isinstance(start, Start) for _, _, start, _ in keys):
        return
    # All of them, so that they stay in their order
    for key in keys:
        extension, name, start, end = key
        user_data[extension, name, Start(start), end] = user_data.pop(key)


def _all_records(doc: Doc) -> Iterator[PlacedRecord]:
    for key, data in cast(dict[Any, Any], doc.user_data).items():
        if _is_of_record(key):
            yield PlacedRecord(key[1][len(PREFIX) :], int(key[2]), key[3], data)


def _is_of_record(key: Any) -> bool:
    """Return whether a key of doc.user_data is that of a Span's extension, and of a record."""
    is_of_extension = isinstance(key, tuple) and len(key) == 4 and key[0] == "._."
    return is_of_extension and key[2] is not None and key[1].startswith(PREFIX)


def _joined_doc(text: str, name: str) -> ValueError:
    return ValueError(
        f"This Doc was joined from others, and '{text.strip()[:50]}' in it is not a whole text "
        f"that the pipe '{name}' encoded, or its user data is of another text. Call nlp on its "
        "text: nlp(doc.text)."
    )
