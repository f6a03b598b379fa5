"""Sentence vectors of Docs, Spans and Tokens: everything that `doc.vector` and `doc.similarity` depend on.

A pipe stores a record of vectors in doc.user_data (`make_record`, `store`), and sets hooks (`install_hooks`). The hooks
are plain functions of this module that read the record at each call (`vector`, `has_vector`, `similarity`): a pickled
Doc carries their names alone. Where spaCy drops hooks, `restore` sets them again, and `doc._.sbert_vector` works
without them (`extensions.py`).
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, TypedDict, TypeVar, cast, overload
from weakref import ref

import numpy
from spacy.errors import Warnings as SpacyWarnings
from spacy.language import Language
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats2d, Ints1d, Ragged
from thinc.util import get_array_module, is_cupy_array, to_numpy

from ..errors import Errors, Warnings, warn
from ..models.encoded_docs import EncodedDoc, n_rows_cut
from ..models.pooling import Pooling, stretch_pooling
from ..models.span_batch import borders_of, row_characters
from ..models.spans import trimmed
from ..similarity import cosine, lengths, unit_length

PREFIX = "spacy-sbert:"  # of the keys in doc.user_data and doc.user_hooks
SPACY = "spaCy's own vectors"
Piece = Doc | Span | Token
Dense = Callable[[numpy.ndarray], numpy.ndarray]  # the dense layer of a pipe, for one pooled vector
Encoders = Mapping[str, str]  # from the fingerprint of an encoder, or SPACY, to the name of the pipe that used it
ContextT = TypeVar("ContextT")
_warned: set[object] = set()  # in this process: of lost hooks, and of each pair of encoders


class Record(TypedDict, total=False):
    """What a pipe stores on a Doc: NumPy arrays and scalars, places in characters from its start.

    rows: int32 (rows, 2). vectors: float32 (rows, width). has_text: bool (rows,). text: of the Doc.
    pooling, normalize: how vectors were made; of a meta-embedding combined_by, its pipe, in their place.
    fingerprint: of the encoder; missing if it is not known.
    set_hooks: whether the pipe answers `doc.vector`. truncated: whether a row was cut. dense: True with a dense layer.
    states, characters: float32 (wordpieces, width) without special tokens, and int32 (wordpieces, 2): with token
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


def on_cpu(scores: Sequence[EncodedDoc]) -> Sequence[EncodedDoc]:
    """Return the encoded Docs of a batch with NumPy vectors, copied from a GPU all at once."""
    vectors: list[Any] = [encoded.vectors for encoded in scores]
    if not any(map(is_cupy_array, vectors)):
        return scores
    copied = to_numpy(get_array_module(vectors[0]).concatenate(vectors))
    parts = zip(scores, pairwise(borders_of(map(len, vectors))), strict=True)
    return [replace(encoded, vectors=copied[start:end]) for encoded, (start, end) in parts]


def make_record(doc: Doc, encoded: EncodedDoc, *, set_hooks: bool, fingerprint: str = "") -> Record:
    """Return the record of a Doc.

    doc (Doc): the Doc that was encoded. encoded (EncodedDoc): its rows, on whatever device.
    set_hooks (bool): whether the pipe answers `doc.vector`. fingerprint (str): of the encoder; "" if it is not known.
    """
    rows, characters = encoded.rows, encoded.rows.characters
    if characters is None:  # of a model that was called without the pipe
        spans = [doc[slice(*span)] for span in rows.spans]
        characters = row_characters(spans, [span.text for span in spans])
    record: Record = {
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


def store(doc: Doc, name: str, data: Record) -> None:
    """Put a pipe's record on a Doc, last of all, and remove the one of an earlier run.

    The key is that of an extension attribute of a Span: `Doc.from_docs` and `Span.as_doc` then shift it with the text.
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
        if _is_record(key):
            yield PlacedRecord(key[1][len(PREFIX) :], key[2], key[3], data)


def _is_record(key: Any) -> bool:  # noqa: ANN401 (any key that a user put there)
    is_of_span = isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is not None
    return is_of_span and key[1].startswith(PREFIX)


# Look-up


def doc_of(obj: Piece) -> Doc:
    """Return the Doc that a Doc, Span or Token is of. RAISES (TypeError): if it is none of them."""
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, Span | Token):
        raise TypeError(
            f"There is no vector of {repr(obj)[:50]}: expected a Doc, Span or Token that the pipeline has processed."
        )
    return obj.doc


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
    if not find(doc_of(obj)) and not (isinstance(obj, Doc) and _is_detached(obj)):
        return False
    return _look_up(obj)[1]


def vector_norm(obj: Doc | Token) -> float:
    """Return the Euclidean norm of the vector of a Doc or Token."""
    return float(lengths(vector(obj)[None].astype("float64"))[0])


def _is_detached(doc: Doc) -> bool:
    """Return whether a Doc comes from `Span.as_doc`, which hands on hooks and the Span's vector, but no user data."""
    return doc.user_hooks.get("vector") is vector and doc._vector is not None  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)


def _look_up(obj: Piece, name: str | None = None, dense: Dense | None = None) -> tuple[numpy.ndarray, bool]:
    """Return the vector of a Doc, Span or Token, and whether it has text."""
    records = find(doc_of(obj), name)
    if records:
        if isinstance(obj, Doc):
            return doc_vector(obj, records, dense)
        if isinstance(obj, Span):
            return span_vector(obj, records, dense)
        return _stretch_vector(obj, obj.idx, obj.idx + len(obj), records, dense)
    if isinstance(obj, Doc) and name in (None, "sbert") and _is_detached(obj):
        detached = cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)
        return detached, bool(detached.any())
    raise no_vectors(obj, name)


def no_vectors(obj: object, name: str | None = None) -> ValueError:
    """Return the error for an object whose Doc carries no vectors of a pipe."""
    which = "" if name is None else f" of a pipe named '{name}'"
    return ValueError(Errors.NO_VECTORS.format(kind=type(obj).__name__, which=which))


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
    """Return the vector of a Span, and whether it has one: its row, or its wordpieces pooled in context.

    A Span that was a Doc before `Doc.from_docs` has the vector of that Doc.
    """
    if span.start == 0 and span.end == len(span.doc):
        return doc_vector(span.doc, records, dense)
    ends = span.end_char, span.start_char + len(span.text_with_ws)
    for record in records:  # one even in a joined Doc, if the other parts have none
        if record.start == span.start_char and record.end in ends and _place(record, _text_of(span.doc)):
            if len(record.vectors):
                return record.vectors.mean(axis=0), True
            break
    return _stretch_vector(span, *trimmed(span.text, span.start_char), records, dense)


def is_row(span: Span, records: Sequence[PlacedRecord]) -> bool:
    """Return whether a Span was encoded by itself, white space at its ends left aside, or is nothing but white space.

    RAISES (ValueError): if it has no vector.
    """
    start, end = trimmed(span.text, span.start_char)
    return start == end or _record_of(span.doc, records, start, end).row_at(start, end) is not None


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
    rows, has_text = [numpy.zeros((0, 2), dtype="int32")], [numpy.zeros((0,), dtype=bool)]
    for record in _in_order(records, text):
        rows.append(record.rows)
        has_text.append(record.data["has_text"])
    return numpy.concatenate(rows), numpy.concatenate(has_text)


def _record_of(doc: Doc, records: Sequence[PlacedRecord], start: int, end: int) -> PlacedRecord:
    """Return the record that answers for the characters [start, end) of a Doc. RAISES (ValueError): if none does."""
    text = _text_of(doc)
    for record in records:
        place = _place(record, text)
        if place is not None and place[0] <= start and end <= place[1]:
            return record
    raise _joined_doc(text[start:end], records[0].name)


def _place(record: PlacedRecord, text: str) -> tuple[int, int] | None:
    """Return the characters of a Doc, of this text, that a record answers for; None if its text is not there.

    It is there as a whole, or, in a Doc that `Span.as_doc` has cut out, in as far as the Doc consists of it.
    """
    start, end = max(record.start, 0), min(record.end, len(text))
    is_whole = (start, end) == (record.start, record.end)
    if not is_whole and (start, end) != (0, len(text)):
        return None
    recorded = record.data["text"][start - record.start : end - record.start]
    return (start, end) if recorded == text[start:end] else None


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
    ordered = sorted(records, key=lambda record: (record.start, record.end))
    position = 0
    for record in ordered:
        if text[position : record.start].strip():
            raise _joined_doc(text[position : record.start], record.name)
        if _place(record, text) != (record.start, record.end) or record.start < position:
            raise _joined_doc(text[position : record.end], record.name)
        position = record.end
    if text[position:].strip():
        raise _joined_doc(text[position:], records[0].name)
    return ordered


def _joined_doc(text: str, name: str) -> ValueError:
    return ValueError(
        f"This Doc was joined from others, and '{text.strip()[:50]}' in it is not a whole text that the pipe '{name}' "
        "encoded. Call nlp on its text: nlp(doc.text)."
    )


_last_text: tuple[ref[Doc], str] | None = None  # of one Doc, whose Tokens may be looked up one by one


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


# Spans and Tokens in context


def _stretch_vector(
    piece: Span | Token, start: int, end: int, records: Sequence[PlacedRecord], dense: Dense | None
) -> tuple[numpy.ndarray, bool]:
    """Return the vector of the characters [start, end) of a Doc, without white space at the ends."""
    zeros = numpy.zeros((records[0].data["width"],), dtype="float32")
    text = _text_of(piece.doc)[start:end]
    if not text.strip():
        return zeros, False
    record = _record_of(piece.doc, records, start, end)
    data, row = record.data, record.row_at(start, end)
    if row is not None:
        return row, bool(row.any())
    _check_states(record, text, dense)
    # A wordpiece may reach over tokens ("cannot" is one, and two tokens): it counts in both.
    covers = (data["characters"][:, 0] < end - record.start) & (data["characters"][:, 1] > start - record.start)
    states = data["states"][covers]
    if data["truncated"] and _is_behind_limit(record, end, text):
        _notify(piece.doc, record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(piece, Span) and len(states):
        _notify(piece.doc, record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(states):
        return zeros, False
    stretch = Ragged(
        cast(Floats2d, numpy.ascontiguousarray(states)), cast(Ints1d, numpy.array([len(states)], dtype="int32"))
    )
    pooled = cast(numpy.ndarray, _pooling_on_cpu(data["pooling"]).predict(stretch))[0]
    if dense is not None:
        pooled = dense(pooled)
    if data["normalize"]:
        pooled = unit_length(pooled[None])[0]
    return pooled[: data["width"]], True


def _check_states(record: PlacedRecord, text: str, dense: Dense | None) -> None:
    """Refuse a stretch of text that is not a row, where its wordpieces are not known."""
    if "combined_by" in record.data:
        pipe = record.data["combined_by"]
        raise ValueError(
            f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), and the "
            f"meta-embedding '{pipe}' stores vectors of rows alone. Ask the pipe: nlp.get_pipe('{pipe}').vector(span)."
        )
    if "states" not in record.data:
        raise ValueError(
            f"'{text[:50]}' is not a row of the encoder (a whole Doc, or a sentence where unit has \"sent\"), "
            "and its Doc was processed with token_vectors = false, so its vector is not known. Set "
            "token_vectors = true in the config of the 'sbert' pipe to have vectors for any Span and Token."
        )
    if record.data.get("dense") and dense is None:
        raise ValueError(
            f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), and its "
            f"vector needs the dense layer of the pipe '{record.name}'. Ask the pipe: "
            f"nlp.get_pipe('{record.name}').vector(span)."
        )


@cache
def _pooling_on_cpu(name: str) -> Pooling:
    layer = stretch_pooling(name)
    layer.to_cpu()  # the vectors on a Doc are there
    return layer


def _is_behind_limit(record: PlacedRecord, end: int, text: str) -> bool:
    """Return whether no wordpiece covers the last character of a text that ends at `end`."""
    places, last = record.data["characters"] + record.start, end - 1 - (len(text) - len(text.rstrip()))
    return not ((places[:, 0] <= last) & (last < places[:, 1])).any()


# Hooks


class _PipeRef:
    """A weak reference to the pipe that set the hooks of a Doc, one of the hooks itself; a pickled one is empty.

    pipe (object): an `sbert` or `sbert_meta` pipe.
    """

    def __init__(self, pipe: object = None):
        self._ref = None if pipe is None else ref(pipe)

    def __call__(self) -> Any:  # noqa: ANN401 (a component of any class)
        """Return the pipe; None if it is gone, or the Doc was pickled."""
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return _PipeRef, ()


def install_hooks(doc: Doc, name: str = "", pipe: object = None) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    There is no Span hook named vector_norm: spaCy would return the vector for it.

    name (str), pipe (object): the `sbert` or `sbert_meta` pipe that answers, which encodes queries that are str; None
        if it is not known.
    """
    doc.user_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    doc.user_span_hooks.update(vector=vector, has_vector=has_vector, similarity=similarity)
    doc.user_token_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    if pipe is not None:
        doc.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))


def pipe_of(doc: Doc, name: str) -> Any:  # noqa: ANN401 (a component of any class)
    """Return the pipe of this name that set the hooks of a Doc; None if it is gone."""
    hook = doc.user_hooks.get(PREFIX + name)
    return hook() if isinstance(hook, _PipeRef) else None


def _notify(doc: Doc, name: str, message: str) -> None:
    """Warn once for each pipe; of vectors whose pipe is gone, as often as the filters of warnings say."""
    pipe = pipe_of(doc, name)
    if pipe is None:
        warn(message.format(name=name))
    else:
        pipe.notify(message.format(name=name))


@overload
def restore(doc: Doc, nlp: Language | None = None) -> Doc: ...
@overload
def restore(doc: Collection[Doc], nlp: Language | None = None) -> list[Doc]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[Doc], nlp: Language | None = None) -> Iterator[Doc]: ...
@overload
def restore(doc: Iterable[tuple[Doc, ContextT]], nlp: Language | None = None) -> Iterator[tuple[Doc, ContextT]]: ...
def restore(doc: Any, nlp: Language | None = None) -> Any:
    """Set the hooks of Docs again that spaCy has dropped, so that `vector`, `has_vector` and `similarity` answer.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): Docs that carry stored vectors. One Doc, and a collection such as a
        list, are restored at once; a stream such as `nlp.pipe(texts, n_process=2)` while it is read. In place of a Doc
        there may be a Doc and its context, as in `nlp.pipe(..., as_tuples=True)`.
    nlp (Language): the pipeline that made the vectors, which then encodes queries that are str.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream that is never read warns
        when it is deleted.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.
    """
    if isinstance(doc, Doc):
        return _restored(doc, nlp)
    if isinstance(doc, Span) or not isinstance(doc, Iterable):
        raise _not_docs(doc)
    if not isinstance(doc, Collection):
        return _RestoredStream(iter(doc), nlp)
    return [_restored(item, nlp) for item in doc]


class _RestoredStream(Iterator[Any]):
    """Docs of a stream, each restored when it is read."""

    def __init__(self, docs: Iterator[Any], nlp: Language | None):
        self._docs, self._nlp = docs, nlp
        self._is_read = False

    def __next__(self) -> Any:  # noqa: ANN401 (a Doc, or a Doc and its context)
        self._is_read = True
        return _restored(next(self._docs), self._nlp)

    def __del__(self) -> None:
        if not self._is_read:
            warnings.warn(Warnings.RESTORE_UNUSED, stacklevel=2)  # the statement whose result was dropped


def _restored(item: Any, nlp: Language | None) -> Any:  # noqa: ANN401 (a Doc, or a Doc and its context)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Doc):
        return _restored(item[0], nlp), item[1]
    if not isinstance(item, Doc):
        raise _not_docs(item)
    if not find(item):
        raise no_vectors(item)
    install_hooks(item)
    for name, pipe in [] if nlp is None else nlp.components:
        if name in names(item):
            item.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))
    return item


def _not_docs(value: object) -> TypeError:
    return TypeError(
        f"Cannot restore {repr(value)[:50]}: expected a Doc, a list of Docs, or a stream of them such as "
        "nlp.pipe(texts, n_process=2) or doc_bin.get_docs(nlp.vocab). With as_tuples=True each Doc has its context."
    )


def warn_of_lost_hooks(doc: Doc) -> None:
    """Warn, once in a process, of a Doc that carries vectors for `doc.vector`, but whose hooks spaCy has dropped."""
    is_lost = "vector" not in doc.user_hooks and any(record.data["set_hooks"] for record in find(doc))
    if is_lost and Warnings.ARRIVED not in _warned:
        _warned.add(Warnings.ARRIVED)
        warn(Warnings.ARRIVED)


# Similarity


def similarity(first: Piece, second: object) -> float:
    """Return the cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0.0 where either has no text.

    A Lexeme has a static vector: one of another width is compared with the static vector of the other side, as spaCy
    does without hooks. Vectors of two encoders are compared with a warning.

    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    if isinstance(second, Lexeme) and second.has_vector and len(second.vector) != _width(first):
        return _static_similarity(first, second)
    return _similarity(first, second, None)


def sentence_similarity(first: Piece, second: Piece, name: str | None = None) -> float:
    """Return the cosine similarity of the sentence vectors of two Docs, Spans or Tokens, whatever answers `similarity`.

    name (str): the pipe whose vectors are compared; by default the one that answers `doc.vector`.
    RAISES (TypeError): if the other side is something else. (ValueError): if either side has no sentence vector, or the
        two have unequal width.
    """
    if not isinstance(second, Piece):
        raise TypeError(
            f"A {type(second).__name__} has no sentence vector: expected a Doc, Span or Token that an 'sbert' "
            "pipe has processed, such as nlp(text)."
        )
    doc = doc_of(second)
    if not names(doc) and not _is_detached(doc):
        raise no_vectors(second)
    return _similarity(first, second, name)


def _similarity(first: Piece, second: object, name: str | None) -> float:
    for obj in (first, second):
        if isinstance(obj, Piece):
            warn_of_lost_hooks(doc_of(obj))
    u = vector(first, name)
    encoders = encoders_of_vector(first, name)
    name = comparable_name(second, name, encoders)
    v = vector_of(second, name)
    if not u.any() or not v.any():
        return 0.0
    if u.shape != v.shape:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[0], theirs=v.shape[0]))
    check_one_encoder(encoders, encoders_of_vector(second, name))
    return float(numpy.clip(float(cosine(u[None], v[None])[0]), -1.0, 1.0))  # rounding may go beyond


def _width(obj: Piece) -> int:
    records = find(doc_of(obj))
    return records[0].data["width"] if records else len(vector(obj))


def _static_similarity(obj: Piece, lexeme: Lexeme) -> float:
    """Return what spaCy does without hooks: the cosine of the mean static vector of the tokens and that of a Lexeme.

    RAISES (ValueError): if the vocab of the tokens has no such vectors.
    """
    vocab, lexeme_vector, kind = doc_of(obj).vocab, to_numpy(lexeme.vector), type(obj).__name__
    if vocab.vectors_length != len(lexeme_vector):
        raise ValueError(
            f"Cannot compare a {kind} of {_width(obj)} numbers with a Lexeme's static vector of {len(lexeme_vector)}: "
            f"the vocab of the {kind} has no such vectors. With set_hooks = false in the config of the 'sbert' pipe, "
            "spaCy compares static vectors, and doc._.sbert_similarity sentence vectors."
        )
    tokens = [obj] if isinstance(obj, Token) else list(obj)
    vectors = numpy.array([to_numpy(vocab.get_vector(token.orth)) for token in tokens], dtype="float32")
    if not vectors.any() or not lexeme_vector.any():
        warn(SpacyWarnings.W008.format(obj=kind))
        return 0.0
    return float(cosine(vectors.mean(axis=0)[None], lexeme_vector[None])[0])


def vector_of(obj: object, name: str | None = None) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token, or the one that spaCy has for it, or for a Lexeme.

    name (str): the pipe whose stored vector is wanted; by default that of the pipe that answers `doc.vector`.
    RAISES (ValueError): if it has none.
    """
    if isinstance(obj, Piece):
        doc = doc_of(obj)
        if find(doc, name) or _is_detached(doc):
            return vector(obj, name)
        if not obj.has_vector:
            raise no_vectors(obj)
        if name is not None and names(doc):
            raise no_vectors(obj, name)
    elif not getattr(obj, "has_vector", False):
        raise ValueError(
            f"Cannot compare with a {type(obj).__name__} without a vector: expected a Doc, Span, Token or Lexeme that "
            "has a vector. Process the other text with the same pipeline."
        )
    return to_numpy(cast(Lexeme, obj).vector)


# Which encoder made a vector


def encoders_of(records: Iterable[PlacedRecord]) -> Encoders:
    """Return the encoders that made the vectors of records, those that are known."""
    return {record.data["fingerprint"]: record.name for record in records if record.data.get("fingerprint")}


def encoders_of_vector(obj: object, name: str | None = None) -> Encoders:
    """Return the encoders that made the vector that vector_of gives: none if they are not known.

    RAISES (ValueError): if a Span or Token of a Doc that was joined has no vector.
    """
    if not isinstance(obj, Piece):
        return {SPACY: ""}
    records = find(doc_of(obj), name)
    if records:
        return _encoders_at(obj, records)
    return {} if _is_detached(doc_of(obj)) else {SPACY: ""}


def _encoders_at(obj: Piece, records: list[PlacedRecord]) -> Encoders:
    if isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(obj.doc)):
        return encoders_of(records)
    start, end = trimmed(obj.text, obj.idx if isinstance(obj, Token) else obj.start_char)
    return encoders_of([_record_of(obj.doc, records, start, end)] if start < end else [])


def comparable_name(obj: object, name: str | None, encoders: Encoders) -> str | None:
    """Return the pipe whose vector of a Doc, Span or Token can be compared with vectors of the pipe `name`.

    encoders (dict): of those vectors.
    RETURNS (str): this name, or that of a pipe with the same encoder; None for the one that answers `doc.vector`.
    """
    if name is None or not isinstance(obj, Piece) or find(doc_of(obj), name):
        return name
    doc = doc_of(obj)
    same = [other for other in names(doc) if _encoders_at(obj, find(doc, other)).keys() & encoders.keys()]
    if same:
        return same[-1]
    return None if name == "sbert" else name


def check_one_encoder(*sides: Encoders) -> None:
    """Warn, once for each pair, if vectors that are compared or averaged are of several encoders."""
    pipes = {fingerprint: name for side in sides for fingerprint, name in side.items()}
    fingerprints = sorted(pipes)
    labels = {key: f"'{name}' {key}" if name else key for key, name in pipes.items()}
    for other in fingerprints[1:]:
        pair = frozenset((fingerprints[0], other))
        if pair not in _warned:
            _warned.add(pair)
            warn(Warnings.OTHER_ENCODER.format(ours=labels[fingerprints[0]], theirs=labels[other]))


# Extension attributes
