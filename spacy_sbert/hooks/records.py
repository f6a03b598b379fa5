"""What an `sbert` pipe stores on a Doc, and how the vector of a Doc, Span or Token is found in it.

A record lives in `doc.user_data` under the key ("._.", "spacy-sbert:" + name of the pipe, 0, length of the text): the
form of a Span extension, which spaCy carries along and shifts in `Doc.from_docs` and `Span.as_doc`. Everything inside
counts characters from the record's start, so that a record stays true wherever its key is shifted to; of a Doc that was
cut or joined, parts tells what a record still answers for. Its values are NumPy arrays and plain scalars, which msgpack
and pickle know.
"""

from collections.abc import Callable, Iterator
from typing import cast

import numpy
from spacy.tokens import Doc, Span, Token

from ..errors.notices import warn
from ..spans import trimmed
from .arrivals import Place
from .encoders import Encoder, check_one_encoder, encoders_of
from .errors import Errors, Warnings
from .parts import Part, parts_of
from .pipes import find_pipe
from .placed import PlacedRecord, Record
from .span_pooling import covering, finished, stretch_vector

PREFIX = "spacy-sbert:"
Key = tuple[str, str, int, int]
UserData = dict[Key, Record]  # as far as it is ours
Dense = Callable[[numpy.ndarray], numpy.ndarray]  # what a dense layer makes of a pooled vector


def store(doc: Doc, name: str, data: Record) -> None:
    """Put a pipe's record on a Doc; the latest record stands last, also when a pipe runs a second time.

    data (Record): whose text is that of the Doc, or not there yet.
    """
    user_data = cast(UserData, doc.user_data)
    for key in [key for key in user_data if _is_record(key, name)]:
        del user_data[key]
    if "text" not in data:
        data["text"] = doc.text
    user_data[_key(name, 0, len(data["text"]), data)] = data


def welcome(doc: Doc) -> None:
    """Let the records of a Doc that came from elsewhere notice again when `Doc.from_docs` moves them."""
    user_data = cast(UserData, doc.user_data)
    for key in [key for key in user_data if _is_record(key)]:
        _, name, start, end = key
        data = user_data.pop(key)
        user_data[_key(name[len(PREFIX) :], start, end, data)] = data


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
    """Vector of a whole Doc, and whether it has one: its row, or the mean of its rows, or zeros where there is no text.

    Of a joined Doc the mean of the rows that stand in it; what is left of a row that was cut counts as one.
    RAISES (ValueError): if a part has no vector, or the parts are of unequal kind.
    """
    found = parts_of(doc, records)
    if found.is_one and len(records[0].data["vectors"]) == 1:
        return records[0].data["vectors"][0], bool(records[0].data["has_text"][0])  # as most Docs have it
    parts = found.over(0, len(found.text))
    if len(parts) == 1 and not parts[0].whole:  # as the Span that it was
        return _stretch_vector(doc[:], parts[0].start, parts[0].end, records, dense)
    vectors = [_part_vectors(doc, part, found.text, dense) for part in parts]
    _check_one_kind([part.record for part, rows in zip(parts, vectors, strict=True) if len(rows)])
    count = sum(len(rows) for rows in vectors)
    if count == 0:
        return numpy.zeros((max(record.data["width"] for record in records),), dtype="float32"), False
    if count == 1:
        return next(rows[0] for rows in vectors if len(rows)), True
    return numpy.concatenate([rows for rows in vectors if len(rows)]).mean(axis=0), True


def span_vector(span: Span, records: list[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Vector of a Span, and whether it has one: its row, or its wordpieces pooled in context; that of a Doc for a Span
    that was one before `Doc.from_docs`."""
    if span.start == 0 and span.end == len(span.doc):
        return doc_vector(span.doc, records, dense)
    found = parts_of(span.doc, records)
    record = None if found.is_one else found.whole_at(span.start_char, (span.text, span.text_with_ws))
    if record is not None and len(record.vectors):
        return record.vectors.mean(axis=0), True
    return _stretch_vector(span, *trimmed(span.text, span.start_char), records, dense)


def is_row(span: Span, records: list[PlacedRecord]) -> bool:
    """Whether a Span was encoded by itself, white space at its ends left aside, or is nothing but white space.

    RAISES (ValueError): if a part of it has no vector.
    """
    start, end = trimmed(span.text, span.start_char)
    return start == end or _row(parts_of(span.doc, records).over(start, end), start, end) is not None


def token_vector(token: Token, records: list[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Vector of a Token, and whether it has one: its wordpieces pooled in context."""
    return _stretch_vector(token, token.idx, token.idx + len(token), records, dense)


def encoders_at(obj: Doc | Span | Token, records: list[PlacedRecord]) -> set[Encoder]:
    """Return the encoders that made the vectors of a Doc, Span or Token: more than one only if it is joined of several.

    RAISES (ValueError): if a part of it has no vector.
    """
    doc = obj if isinstance(obj, Doc) else obj.doc
    found = parts_of(doc, records)
    if isinstance(obj, Token):
        return encoders_of(part.record for part in found.over(obj.idx, obj.idx + len(obj)))
    start, end = (0, len(found.text)) if isinstance(obj, Doc) else (obj.start_char, obj.end_char)
    return encoders_of(part.record for part in found.over(start, end))


def rows_of(doc: Doc, records: list[PlacedRecord]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The rows that stand in a Doc, in the order of its text, and which of them have text.

    RETURNS (int32 (rows, 2), bool (rows,)): the characters of each; what is left of a row that was cut is one, too.
    RAISES (ValueError): if a part of the Doc has no vector.
    """
    places, has_text = [numpy.zeros((0, 2), dtype="int32")], [numpy.zeros((0,), dtype=bool)]
    found = parts_of(doc, records)
    for part in found.over(0, len(found.text)):
        rows = slice(None) if part.whole else _standing(part, found.text)
        known = part.whole or len(part.record.rows[rows]) > 0  # an empty Doc, whole, has none
        places.append(part.record.rows[rows] if known else numpy.array([[part.start, part.end]], dtype="int32"))
        has_text.append(part.record.data["has_text"][rows] if known else numpy.ones((1,), dtype=bool))
    return numpy.concatenate(places), numpy.concatenate(has_text)


def _iterate(doc: Doc) -> Iterator[PlacedRecord]:
    for key, data in cast(UserData, doc.user_data).items():
        if _is_record(key):
            yield PlacedRecord(key[1][len(PREFIX) :], key[2], key[3], data)


def _key(name: str, start: int, end: int, data: Record) -> Key:
    return "._.", PREFIX + name, Place(start) if data["set_hooks"] else start, end


def _is_record(key: Key, name: str | None = None) -> bool:
    if not (isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is not None):
        return False
    return key[1].startswith(PREFIX) if name is None else key[1] == PREFIX + name


def _stretch_vector(
    piece: Span | Token, start: int, end: int, records: list[PlacedRecord], dense: Dense | None
) -> tuple[numpy.ndarray, bool]:
    if start == end:
        return numpy.zeros((records[0].data["width"],), dtype="float32"), False
    found = parts_of(piece.doc, records)
    parts = found.over(start, end)
    if not parts:  # white space
        return numpy.zeros((records[0].data["width"],), dtype="float32"), False
    row = _row(parts, start, end)
    if row is not None:
        return row, bool(row.any())
    found.check_in_context(parts)
    _check_one_kind([part.record for part in parts])
    return _pooled(piece, parts, found.text, start, end, dense)


def _row(parts: list[Part], start: int, end: int) -> numpy.ndarray | None:
    """The vector of the row that characters [start, end) are, if they are one."""
    return parts[0].record.row_at(start, end) if len(parts) == 1 else None


def _part_vectors(doc: Doc, part: Part, text: str, dense: Dense | None) -> numpy.ndarray:
    """float32 (rows, width): the rows of a part that have text."""
    if part.whole:
        return part.record.vectors
    data, rows = part.record.data, _standing(part, text)
    if len(rows):
        return data["vectors"][rows][data["has_text"][rows]]
    vector, has_text = _pooled(doc[:], [part], text, part.start, part.end, dense)
    return vector[None] if has_text else data["vectors"][:0]


def _standing(part: Part, text: str) -> numpy.ndarray:
    """int64 (rows,): the rows that a part consists of; none if it has some other beginning or end."""
    places = part.record.rows
    exact = numpy.flatnonzero((places == (part.start, part.end)).all(axis=1))
    if len(exact):
        return exact[:1]
    rows = numpy.flatnonzero((places[:, 0] >= part.start) & (places[:, 1] <= part.end))
    borders = [part.start, *places[rows].reshape(-1).tolist(), part.end]
    is_filled = not any(text[end:start].strip() for end, start in zip(borders[::2], borders[1::2], strict=True))
    return rows if is_filled else rows[:0]


def _check_one_kind(records: list[PlacedRecord]) -> None:
    """Check records that are averaged, and warn if they are of two encoders.

    RAISES (ValueError): if they are not of one width and pooling.
    """
    widths = sorted({record.data["width"] for record in records})
    if len(widths) > 1:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=widths[0], theirs=widths[-1]))
    kinds = sorted({_kind(record.data) for record in records})
    if len(kinds) > 1:
        raise ValueError(Errors.UNEQUAL_KINDS.format(ours=kinds[0], theirs=kinds[-1]))
    check_one_encoder(encoders_of(records))


def _kind(data: Record) -> str:
    if "combined_by" in data:
        return f"combined by '{data['combined_by']}'"
    return f"pooling {data['pooling']}, {'' if data['normalize'] else 'not '}normalized"


def _pooled(
    piece: Span | Token, parts: list[Part], text: str, start: int, end: int, dense: Dense | None
) -> tuple[numpy.ndarray, bool]:
    """The wordpieces of characters [start, end) of a Doc's text in context, pooled as the rows are."""
    text, states = text[start:end], []
    for part in parts:
        data, at = part.record.data, part.record.start
        if "combined_by" in data:
            raise ValueError(Errors.META_SPAN.format(text=text[:50], name=data["combined_by"]))
        if "states" not in data:
            raise ValueError(Errors.NO_TOKEN_VECTORS.format(text=text[:50]))
        if data.get("dense") and dense is None:
            raise ValueError(Errors.DENSE_SPAN.format(text=text[:50], name=part.record.name))
        first, last = max(start, part.start) - at, min(end, part.end) - at
        states.append(covering(data["states"], data["characters"], first, last))
    found, data = numpy.concatenate(states), parts[0].record.data
    if parts[-1].record.data["truncated"] and _is_behind_limit(parts[-1].record, end, text):
        _notify(piece.doc, parts[-1].record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(piece, Span) and len(found):
        _notify(piece.doc, parts[0].record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(found):
        return numpy.zeros((data["width"],), dtype="float32"), False
    vector = stretch_vector(found, data["pooling"])
    vector = vector if dense is None else dense(vector)
    return finished(vector, data["width"], data["normalize"]), True


def _is_behind_limit(record: PlacedRecord, end: int, text: str) -> bool:
    """Whether no wordpiece is left of the last character of a text that ends at a character."""
    places, last = record.data["characters"] + record.start, end - 1 - (len(text) - len(text.rstrip()))
    return bool(text.strip()) and not ((places[:, 0] <= last) & (last < places[:, 1])).any()


def _notify(doc: Doc, name: str, message: str) -> None:
    """Warn once for each living pipe; of vectors whose pipe is gone, as often as the filters of warnings say."""
    pipe = find_pipe(doc.vocab, name)
    if pipe is None:
        warn(message.format(name=name))
    else:
        pipe.notify(message.format(name=name))
