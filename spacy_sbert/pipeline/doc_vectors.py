"""Doc.vector, Span.vector: the stored record, its look-up, and the pipe that made it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, TypeVar, cast
from weakref import ref

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats2d, Ints1d, Ragged

from ..errors import Errors, Warnings, warn
from ..models.pooling import Pooling, stretch_pooling
from ..models.spans import trimmed
from ..similarity import lengths, unit_length

SPACY = "spaCy's own vectors"
_warned: set[frozenset[str]] = set()  # pairs of encoders, in this process


class Encoder(str):
    """The fingerprint of an encoder, or SPACY; name (str): of the pipe that used it."""

    name = ""

    @classmethod
    def of(cls, record: Any) -> "Encoder":
        """Return the encoder of a PlacedRecord."""
        found = cls(record.data.get("fingerprint", ""))
        found.name = record.name
        return found

    def __repr__(self) -> str:
        return f"'{self.name}' {self}" if self.name else str(self)


def encoders_of(records: Iterable[Any]) -> set[Encoder]:
    """Return the encoders that made the vectors of records, those that are known."""
    return {Encoder.of(record) for record in records if record.data.get("fingerprint")}


def check_one_encoder(*sides: Iterable[Encoder]) -> None:
    """Warn, once for each pair, if vectors that are compared or averaged are of several encoders."""
    found = sorted(set().union(*sides))
    for theirs in found[1:]:
        pair = frozenset((found[0], theirs))
        if pair not in _warned:
            _warned.add(pair)
            warn(Warnings.OTHER_ENCODER.format(ours=repr(found[0]), theirs=repr(theirs)))


PipeT = TypeVar("PipeT")


@dataclass
class InPipeline:
    """The pipeline that a pipe is in; a copy is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()


def find_in(nlp: Language, kind: type[PipeT], factory: str, name: str | None = None) -> PipeT:
    """The pipe of a class in a pipeline: the one of this name, or the last.

    kind (type): the class. factory (str): what makes such pipes, for the message.
    RAISES (ValueError): if there is none.
    """
    pipes = {given: pipe for given, pipe in nlp.pipeline if isinstance(pipe, kind)}
    found = pipes.get(name) if name is not None else next(reversed(pipes.values()), None)
    if found is None:
        disabled = [given for given, pipe in nlp.components if isinstance(pipe, kind) and given in nlp.disabled]
        if name in disabled or (name is None and disabled):
            raise ValueError(
                f"The '{factory}' pipe '{name or disabled[-1]}' of the pipeline is disabled: enable it with "
                f'nlp.enable_pipe("{name or disabled[-1]}").'
            )
        expected = ", ".join(pipes) or "none"
        if name in nlp.component_names:
            given = type(nlp.get_pipe(name)).__name__
            raise ValueError(
                f"The pipeline has no '{factory}' pipe named '{name}': those it has are {expected}. Its pipe "
                f"'{name}' is a {given}: name one of them, or take that with nlp.get_pipe(\"{name}\")."
            )
        named = "" if name is None else f" named '{name}'"
        remedy = "Name one of them, or add one" if pipes else "Add one"
        raise ValueError(
            f"The pipeline has no '{factory}' pipe{named}: those it has are {expected}. {remedy} with "
            f'nlp.add_pipe("{factory}"), before it is saved.'
        )
    return found


def covering(states: numpy.ndarray, characters: numpy.ndarray, start: int, end: int) -> numpy.ndarray:
    """The states of the wordpieces that cover any of the characters [start, end).

    A wordpiece may reach over tokens ("cannot" is one wordpiece and two tokens): it counts in both, and once in a Span
    of both.

    states (float32 (wordpieces, width)): in context.
    characters (int32 (wordpieces, 2)): where each begins and ends.
    RETURNS (float32 (covering wordpieces, width)).
    """
    return states[(characters[:, 0] < end) & (characters[:, 1] > start)]


def stretch_vector(states: numpy.ndarray, pooling: str) -> numpy.ndarray:
    """The pooled wordpieces of a stretch that is not a row, on the CPU; see stretch_pooling.

    states (float32 (wordpieces, width)): of the stretch, not none, in the order of the text.
    pooling (str): see make_pooling.
    RETURNS (float32 array of shape (width of the pooling,)).
    """
    lengths = numpy.array([len(states)], dtype="int32")
    row = Ragged(cast(Floats2d, numpy.ascontiguousarray(states)), cast(Ints1d, lengths))
    return cast(numpy.ndarray, _pooling_of_stretches(pooling).predict(row))[0]


def finished(vector: numpy.ndarray, width: int, normalize: bool) -> numpy.ndarray:
    """A pooled vector as the rows are: scaled to unit length, and truncated.

    width (int): to which it is truncated. normalize (bool): whether to scale it.
    """
    return (unit_length(vector[None])[0] if normalize else vector)[:width]


@cache
def _pooling_of_stretches(name: str) -> Pooling:
    layer = stretch_pooling(name)
    layer.to_cpu()  # where the vectors on a Doc lie
    return layer


PREFIX = "spacy-sbert:"
Piece = Doc | Span | Token
Dense = Callable[[numpy.ndarray], numpy.ndarray]  # the dense layer of a pipe, for one pooled vector


class Record(TypedDict, total=False):
    """What a pipe stores on a Doc: NumPy arrays and scalars, places in characters from its start.

    rows: int32 (rows, 2). vectors: float32 (rows, width). has_text: bool (rows,). text: what it was made of.
    pooling, normalize: how vectors were made; of a meta-embedding combined_by, its pipe, in their place.
    fingerprint: of the encoder; not there if it is not known.
    set_hooks: whether the pipe answers `doc.vector`. truncated: whether a row was cut. dense: True with a dense layer.
    states: float32 (wordpieces, width), special tokens left out, and characters, int32 (wordpieces, 2): with token
        vectors.
    """

    rows: numpy.ndarray
    vectors: numpy.ndarray
    has_text: numpy.ndarray
    width: int
    text: str
    set_hooks: bool
    truncated: bool
    pooling: str
    normalize: bool
    combined_by: str
    fingerprint: str
    dense: bool
    states: numpy.ndarray
    characters: numpy.ndarray


@dataclass
class PlacedRecord:
    """One stored record of the pipe `name`, and its place in its Doc: characters [start, end)."""

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
        """float32 (n, width): what the vector of its whole text is the mean of; one at most where the first row is
        the whole text, and the others are its sentences."""
        rows, vectors, has_text = self.data["rows"], self.data["vectors"], self.data["has_text"]
        if len(rows) > 1 and rows[0, 0] <= rows[:, 0].min() and rows[0, 1] >= rows[:, 1].max():
            return vectors[:1][has_text[:1]]
        return vectors[has_text]

    def row_at(self, start: int, end: int) -> numpy.ndarray | None:
        """Return the vector of the row that covers exactly the characters [start, end), if there is one."""
        hits = numpy.flatnonzero((self.rows == (start, end)).all(axis=1))
        return self.data["vectors"][hits[0]] if len(hits) else None


# Records on a Doc


def store(doc: Doc, name: str, data: Record) -> None:
    """Put a pipe's record on a Doc; the latest record stands last, also when a pipe runs a second time.

    data (Record): whose text is that of the Doc, or not there yet.
    """
    user_data = cast(dict[Any, Any], doc.user_data)
    for key in [key for key in user_data if _is_record(key) and key[1] == PREFIX + name]:
        del user_data[key]
    if "text" not in data:
        data["text"] = doc.text
    user_data["._.", PREFIX + name, 0, len(data["text"])] = data


def find(doc: Doc, name: str | None = None) -> list[PlacedRecord]:
    """Return the records of one pipe on a Doc: several after `Doc.from_docs`, none on a Doc of another pipeline.

    name: the pipe; None for the one that answers `doc.vector`: the last with set_hooks = true, or else the last.
    """
    records = list(_all_records(doc))
    if name is None and records:
        name = next((r.name for r in reversed(records) if r.data["set_hooks"]), records[-1].name)
    return [record for record in records if record.name == name]


def names(doc: Doc) -> list[str]:
    """Return the names of the pipes that left a record on a Doc, in the order they ran."""
    return list(dict.fromkeys(record.name for record in _all_records(doc)))


def doc_of(obj: Piece) -> Doc:
    """Return the Doc that a Doc, Span or Token is of. RAISES (TypeError): if it is none of them."""
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, (Span, Token)):
        raise TypeError(
            f"There is no vector of {repr(obj)[:50]}: expected a Doc, Span or Token that the pipeline has processed."
        )
    return obj.doc


def _all_records(doc: Doc) -> Iterator[PlacedRecord]:
    for key, data in cast(dict[Any, Any], doc.user_data).items():
        if _is_record(key):
            yield PlacedRecord(key[1][len(PREFIX) :], key[2], key[3], data)


def _is_record(key: Any) -> bool:
    is_of_span = isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is not None
    return is_of_span and key[1].startswith(PREFIX)


# Hooks


def vector(obj: Piece, name: str | None = None, dense: Dense | None = None) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token.

    A Doc's is its pooled row, or the mean of its rows; a Span's its row if it is one, otherwise, as a Token's, the
    same pooling over its wordpieces in context.

    obj (Doc, Span or Token): what to look up.
    name (str): the pipe whose vector is wanted; by default that of the pipe that answers `doc.vector`.
    dense (Callable): the dense layer of the pipe, if it has one: Spans and Tokens that are not rows need it.
    RETURNS (float32 array of shape (width,)): the vector; zeros where there is no text.
    RAISES (ValueError): if the Doc carries no stored vectors, or none for this Span.
    """
    return _look_up(obj, name, dense)[0]


def has_vector(obj: Piece) -> bool:
    """Return whether a Doc, Span or Token has any wordpiece to make a vector of; False for empty and white text."""
    if not find(doc_of(obj)) and not (isinstance(obj, Doc) and is_detached(obj)):
        return False
    return _look_up(obj)[1]


def vector_norm(obj: Doc | Token) -> float:
    """Return the Euclidean norm of the vector of a Doc or Token."""
    return float(lengths(vector(obj)[None].astype("float64"))[0])


def is_detached(doc: Doc) -> bool:
    """Return whether a Doc comes from `Span.as_doc`, which hands on hooks and the Span's vector, but no user data."""
    return doc.user_hooks.get("vector") is vector and doc._vector is not None  # type: ignore[attr-defined]


def _look_up(obj: Piece, name: str | None = None, dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    doc = doc_of(obj)
    found = find(doc, name)
    if found:
        if isinstance(obj, Doc):
            return doc_vector(obj, found, dense)
        if isinstance(obj, Span):
            return span_vector(obj, found, dense)
        return _stretch_vector(obj, obj.idx, obj.idx + len(obj), found, dense)
    if isinstance(obj, Doc) and name in (None, "sbert") and is_detached(obj):
        detached = cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]
        return detached, bool(detached.any())
    which = "" if name is None else f" of a pipe named '{name}'"
    raise ValueError(Errors.NO_VECTORS.format(kind=type(obj).__name__, which=which))


# From records to vectors


def doc_vector(doc: Doc, records: Sequence[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Return the vector of a Doc, and whether it has one: its row, or the mean of its rows; zeros without text.

    RAISES (ValueError): if it was joined from others, and a part has no vector, or they are of unequal kind.
    """
    text = _text_of(doc)
    records = _inside(records, text)
    if _is_cut(records, text):
        return _stretch_vector(doc[:], *trimmed(text, 0), records, dense)  # as the Span that it was
    parts = [record for record in _in_order(records, text) if len(record.vectors)]
    if len({(record.data["width"], _kind(record.data)) for record in parts}) > 1:
        kinds = sorted(f"{_kind(record.data)}, {record.data['width']} numbers" for record in parts)
        raise ValueError(
            f"This Doc was joined from others whose vectors are of several kinds ({kinds[0]}; {kinds[-1]}), "
            "which have no mean. Process all of them with the same pipeline."
        )
    check_one_encoder(encoders_of(parts))
    rows = [row for record in parts for row in record.vectors]
    if not rows:
        return numpy.zeros((max(record.data["width"] for record in records),), dtype="float32"), False
    return (rows[0] if len(rows) == 1 else numpy.stack(rows).mean(axis=0)), True


def span_vector(span: Span, records: Sequence[PlacedRecord], dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Return the vector of a Span, and whether it has one: its row, or its wordpieces pooled in context; that of a Doc
    for a Span that was one before `Doc.from_docs`."""
    if span.start == 0 and span.end == len(span.doc):
        return doc_vector(span.doc, records, dense)
    if len(records) > 1:
        text, ends = _text_of(span.doc), (span.end_char, span.start_char + len(span.text_with_ws))
        whole = [one for one in records if one.start == span.start_char and one.end in ends and _place(one, text)]
        if whole and len(whole[0].vectors):
            return whole[0].vectors.mean(axis=0), True
    return _stretch_vector(span, *trimmed(span.text, span.start_char), records, dense)


def is_row(span: Span, records: Sequence[PlacedRecord]) -> bool:
    """Return whether a Span was encoded by itself, white space at its ends left aside, or is nothing but white space.

    RAISES (ValueError): if it has no vector.
    """
    start, end = trimmed(span.text, span.start_char)
    return start == end or record_of(span.doc, records, start, end).row_at(start, end) is not None


def rows_of(doc: Doc, records: Sequence[PlacedRecord]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the rows of a Doc, in the order of its text, and which of them have text.

    RETURNS (int32 (rows, 2), bool (rows,)): the characters of each; a Doc that `Span.as_doc` cut out of a row is one.
    RAISES (ValueError): if a part of the Doc has no vector.
    """
    text = _text_of(doc)
    records = _inside(records, text)
    if _is_cut(records, text):
        (record,), (start, end) = records, trimmed(text, 0)
        kept = (record.rows[:, 0] >= start) & (record.rows[:, 1] <= end)
        ends = [start, *record.rows[kept].reshape(-1).tolist(), end]
        if not any(text[last:first].strip() for last, first in zip(ends[::2], ends[1::2], strict=True)):
            return record.rows[kept], record.data["has_text"][kept]
        return numpy.array([[start, end]], dtype="int32"), numpy.ones((1,), dtype=bool)
    parts = _in_order(records, text)
    rows = [numpy.zeros((0, 2), dtype="int32"), *(record.rows for record in parts)]
    return numpy.concatenate(rows), numpy.concatenate([rows[0].any(axis=1), *(one.data["has_text"] for one in parts)])


def record_of(doc: Doc, records: Sequence[PlacedRecord], start: int, end: int) -> PlacedRecord:
    """Return the record that answers for the characters [start, end) of a Doc. RAISES (ValueError): if none does."""
    text = _text_of(doc)
    for record in records:
        place = _place(record, text)
        if place is not None and place[0] <= start and end <= place[1]:
            return record
    raise ValueError(Errors.JOINED_DOC.format(text=text[start:end].strip()[:50], name=records[0].name))


def _place(record: PlacedRecord, text: str) -> tuple[int, int] | None:
    """Return the characters of a Doc, of this text, that a record answers for; None if its text is not there.

    It is there as a whole, or, in a Doc that `Span.as_doc` has cut out, in as far as the Doc consists of it.
    """
    start, end = max(record.start, 0), min(record.end, len(text))
    is_whole = (start, end) == (record.start, record.end)
    if not is_whole and (start, end) != (0, len(text)):
        return None
    made_of = record.data["text"][start - record.start : end - record.start]
    return (start, end) if made_of == text[start:end] else None


def _inside(records: Sequence[PlacedRecord], text: str) -> Sequence[PlacedRecord]:
    """Return the records that have any text in a Doc: `Span.as_doc` keeps those of parts that it has cut off."""
    return [record for record in records if record.end > 0 and record.start < len(text)] or records


def _is_cut(records: Sequence[PlacedRecord], text: str) -> bool:
    """Return whether `Span.as_doc` has cut a Doc out of the one text that it has a record of."""
    if len(records) != 1 or _place(records[0], text) != (0, len(text)):
        return False
    return (records[0].start, records[0].end) != (0, len(text))


def _in_order(records: Sequence[PlacedRecord], text: str) -> list[PlacedRecord]:
    """Return the records of a Doc, each whole and one after another. RAISES (ValueError): if they are not all of it."""
    found = sorted(records, key=lambda record: (record.start, record.end))
    at = 0
    for record in found:
        if text[at : record.start].strip():
            raise ValueError(Errors.JOINED_DOC.format(text=text[at : record.start].strip()[:50], name=record.name))
        if _place(record, text) != (record.start, record.end) or record.start < at:
            raise ValueError(Errors.JOINED_DOC.format(text=text[at : record.end].strip()[:50], name=record.name))
        at = record.end
    if text[at:].strip():
        raise ValueError(Errors.JOINED_DOC.format(text=text[at:].strip()[:50], name=records[0].name))
    return found


_last_text: tuple[ref[Doc], str] | None = None  # of the Doc that was asked last: all its Tokens may be asked one by one


def _text_of(doc: Doc) -> str:
    """Return the text of a Doc, which never changes."""
    global _last_text
    last = _last_text
    if last is None or last[0]() is not doc:
        last = _last_text = ref(doc), doc.text
    return last[1]


def _kind(data: Record) -> str:
    if "combined_by" in data:
        return f"combined by '{data['combined_by']}'"
    return f"pooling {data['pooling']}, {'' if data['normalize'] else 'not '}normalized"


def _stretch_vector(
    piece: Span | Token, start: int, end: int, records: Sequence[PlacedRecord], dense: Dense | None
) -> tuple[numpy.ndarray, bool]:
    """Return the vector of the characters [start, end) of a Doc, without white space at the ends."""
    zeros = numpy.zeros((records[0].data["width"],), dtype="float32")
    text = _text_of(piece.doc)[start:end]
    if not text.strip():
        return zeros, False
    record = record_of(piece.doc, records, start, end)
    data, row = record.data, record.row_at(start, end)
    if row is not None:
        return row, bool(row.any())
    if "combined_by" in data:
        raise ValueError(
            f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), and the "
            f"meta-embedding '{data['combined_by']}' stores vectors of rows alone. Ask the pipe: "
            f"nlp.get_pipe('{data['combined_by']}').vector(span)."
        )
    if "states" not in data:
        raise ValueError(
            f"'{text[:50]}' is not a row of the encoder (a whole Doc, or a sentence where unit has \"sent\"), "
            "and its Doc was processed with token_vectors = false, so its vector is not known. Set "
            "token_vectors = true in the config of the 'sbert' pipe to have vectors for any Span and Token."
        )
    if data.get("dense") and dense is None:
        raise ValueError(
            f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), and its "
            f"vector needs the dense layer of the pipe '{record.name}'. Ask the pipe: "
            f"nlp.get_pipe('{record.name}').vector(span)."
        )
    states = covering(data["states"], data["characters"], start - record.start, end - record.start)
    if data["truncated"] and _is_behind_limit(record, end, text):
        _notify(piece.doc, record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(piece, Span) and len(states):
        _notify(piece.doc, record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(states):
        return zeros, False
    pooled = stretch_vector(states, data["pooling"])
    pooled = pooled if dense is None else dense(pooled)
    return finished(pooled, data["width"], data["normalize"]), True


def _is_behind_limit(record: PlacedRecord, end: int, text: str) -> bool:
    """Return whether no wordpiece is left of the last character of a text that ends at a character."""
    places, last = record.data["characters"] + record.start, end - 1 - (len(text) - len(text.rstrip()))
    return not ((places[:, 0] <= last) & (last < places[:, 1])).any()


# The pipe that made a record


class PipeRef:
    """A weak reference to the pipe that set the hooks of a Doc, which stands among these; a pickled one is empty.

    pipe (object): an `sbert` or `sbert_meta` pipe.
    """

    def __init__(self, pipe: Any = None):
        self._ref = None if pipe is None else ref(pipe)

    def __call__(self) -> Any:
        """Return the pipe; None if it is gone, or the Doc has travelled without it."""
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return PipeRef, ()


def pipe_of(doc: Doc, name: str) -> Any:
    """Return the pipe of a name that set the hooks of a Doc, if it is still there."""
    found = doc.user_hooks.get(PREFIX + name)
    return found() if isinstance(found, PipeRef) else None


def _notify(doc: Doc, name: str, message: str) -> None:
    """Warn once for each pipe; of vectors whose pipe is gone, as often as the filters of warnings say."""
    pipe = pipe_of(doc, name)
    if pipe is None:
        warn(message.format(name=name))
    else:
        pipe.notify(message.format(name=name))
