"""Sentence vectors of Docs, Spans and Tokens.

Everything that `doc.vector` and `doc.similarity` depend on.

A pipe stores a record of vectors in doc.user_data (`store`, see records.py), and sets hooks
(`_install_hooks`). The hooks are plain functions of this module that read the record at each call
(`vector`, `has_vector`, `similarity`): a pickled Doc carries their names alone. Where spaCy drops
hooks, a warning tells it (`lost_hooks.py`), `restore` sets them again, and `doc._.sbert_vector`
works without them (`_common.py`).
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar, cast, overload
from weakref import ref

import numpy
from spacy.language import Language
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from ..arrays import numpy_defaults
from ..errors import Errors, Warnings, warn
from ..models.poolings import Pooling, pooling_of_text
from ..models.spans import trimmed
from ..similarity import cosine, lengths, unit_length
from .lost_hooks import Start, next_to_restore, warn_of_lost_hooks
from .records import PREFIX, Encoders, PlacedRecord, Record, Records, find, names, notice_joining

# As the encoder of vectors without a record
_SPACY = {"": "spaCy's own vectors"}
Piece = Doc | Span | Token
# The dense layer of a pipe, for one pooled vector
_Dense = Callable[[numpy.ndarray], numpy.ndarray]
ItemT = TypeVar("ItemT")
# In this process: of each pair of encoders
_warned: set[object] = set()


def store(doc: Doc, name: str, data: Record, pipe: object) -> None:
    """Put a pipe's record on a Doc, last of all, and remove the one of an earlier run.

    Set its hooks if it says so.

    The key is that of an extension attribute of a Span: `Doc.from_docs` and `Span.as_doc` then
    shift it with the text.
    """
    user_data = cast(dict[Any, Any], doc.user_data)
    for record in find(doc, name):
        del user_data["._.", PREFIX + name, record.start, record.end]
    if "text" not in data:
        data["text"] = doc.text
    start = Start(0) if data["set_hooks"] else 0
    user_data["._.", PREFIX + name, start, len(data["text"])] = data
    if data["set_hooks"]:
        _install_hooks(doc, name, pipe)


# Look-up


def doc_of(obj: Piece) -> Doc:
    """Return the Doc that a Doc, Span or Token is of. RAISES (TypeError): if it is none of them."""
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, Span | Token):
        raise TypeError(
            f"There is no vector of {repr(obj)[:50]}: expected a Doc, Span or Token that the "
            "pipeline has processed."
        )
    return obj.doc


def vector(obj: Piece, name: str | None = None, dense: _Dense | None = None) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token.

    A Doc's is its pooled row, or the mean of its rows; a Span's its row if it is one, otherwise, as
    a Token's, the same pooling over its wordpieces in context.

    name (str): the pipe whose vector is wanted; by default that of the pipe that answers
        `doc.vector`.
    dense (Callable): the dense layer of the pipe, if it has one: Spans and Tokens that are not rows
        need it.
    RETURNS (float32 (width,)): zeros where there is no text.
    RAISES (ValueError): if the Doc carries no stored vectors, or none for this Span.
    """
    records = find(doc_of(obj), name)
    if records:
        return _vector(obj, records, dense)
    if isinstance(obj, Doc) and name in (None, "sbert") and _is_detached(obj):
        return cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)
    raise no_vectors(obj, name)


def _vector(obj: Piece, records: Records, dense: _Dense | None = None) -> numpy.ndarray:
    """Return the vector of a Doc, Span or Token from one or more records of its Doc."""
    if _is_whole(obj):
        return _doc_vector(doc_of(obj), records, dense)
    if isinstance(obj, Span):
        ends = obj.end_char, obj.start_char + len(obj.text_with_ws)
        # A Span that was a Doc before Doc.from_docs, also if other parts have no vector
        for record in records:
            if (
                record.start == obj.start_char
                and record.end in ends
                and record.place_in(records.text)
            ):
                if len(record.vectors):
                    return _mean(record.vectors)
                break
    return _stretch_vector(obj, records, dense)


def _is_whole(obj: Piece) -> bool:
    return isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(obj.doc))


def _characters(obj: Piece) -> tuple[int, int]:
    """Return the place of a piece in its Doc, in characters, without white space at the ends."""
    return trimmed(
        obj.text,
        obj.idx if isinstance(obj, Token) else obj.start_char if isinstance(obj, Span) else 0,
    )


def has_vector(obj: Piece) -> bool:
    """Return whether a Doc, Span or Token has any wordpiece to make a vector of.

    False for empty and white text.
    """
    records = find(doc_of(obj))
    if not records and not (isinstance(obj, Doc) and _is_detached(obj)):
        return False
    if vector(obj).any():
        return True
    # zeros, of words that are unknown
    if _is_whole(obj):
        return any(record.data["has_text"].any() for record in records)
    start, end = _characters(obj)
    in_context = [
        record
        for record in records
        if "states" in record.data and record.row_at(start, end) is None
    ]
    return any(_covered(record, start, end).any() for record in in_context)


def _covered(record: PlacedRecord, start: int, end: int) -> numpy.ndarray:
    """Return the wordpieces in the characters [start, end), bool (wordpieces,).

    One over two tokens counts in both.
    """
    places = record.data["characters"] + record.start
    return (places[:, 0] < end) & (places[:, 1] > start)


def _was_read(record: PlacedRecord, text: str, start: int, end: int) -> bool:
    """Return whether the encoder read all of a text, which is the characters [start, end).

    Its first and its last have a wordpiece, and between two wordpieces nothing is left out that can
    be read: letters, numbers, punctuation, symbols.
    """
    if not (_covered(record, start, start + 1).any() and _covered(record, end - 1, end).any()):
        return False
    places = record.data["characters"][_covered(record, start, end)] + (record.start - start)
    places = places[numpy.argsort(places[:, 0])]
    ends = numpy.maximum.accumulate(places[:-1, 1])
    gaps = zip(ends.tolist(), places[1:, 0].tolist(), strict=True)
    left_out = "".join(text[first:last] for first, last in gaps)
    return not any(unicodedata.category(character)[0] in "LNPS" for character in left_out)


def _vector_norm(obj: Doc | Token) -> float:
    return float(lengths(vector(obj)[None].astype("float64"))[0])


def _is_detached(doc: Doc) -> bool:
    """Return whether a Doc comes from `Span.as_doc`.

    That hands on hooks and the Span's vector, but no user data.
    """
    return doc.user_hooks.get("vector") is vector and doc._vector is not None  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)


def no_vectors(obj: object, name: str | None = None) -> ValueError:
    """Return the error for an object whose Doc carries no vectors of a pipe."""
    which = "" if name is None else f" of a pipe named '{name}'"
    return ValueError(
        f"This {type(obj).__name__} carries no sentence vectors{which}: its Doc was not processed "
        "by an 'sbert' pipe, or its user data did not travel with it. Process the text with the "
        "pipeline (nlp or nlp.pipe), or transport the Doc with its user data "
        "(DocBin(store_user_data=True), Span.as_doc(copy_user_data=True))."
    )


def _doc_vector(doc: Doc, records: Records, dense: _Dense | None) -> numpy.ndarray:
    """Return the vector of a Doc: its row, or the mean of its rows; zeros without text."""
    parts, is_cut = records.parts()
    if is_cut:
        # As the Span that it was
        return _stretch_vector(doc[:], parts, dense)
    with_rows = Records(doc, [record for record in parts if len(record.vectors)])
    if len(with_rows) > 1:
        _check_joined(with_rows)
    rows = [row for record in with_rows for row in record.vectors]
    if not rows:
        return numpy.zeros((max(record.data["width"] for record in records),), dtype="float32")
    # A copy: what is done to it in place must not change what is stored.
    return rows[0].copy() if len(rows) == 1 else _mean(numpy.stack(rows))


def _check_joined(records: Records) -> None:
    """Refuse vectors of several kinds on a Doc that was joined, and warn of several encoders."""
    kinds = sorted({_kind(record.data) for record in records})
    if len(kinds) > 1:
        raise ValueError(
            f"This Doc was joined from others whose vectors are of several kinds ({kinds[0]}; "
            f"{kinds[-1]}), which have no mean. Process all of them with the same pipeline."
        )
    check_one_encoder(records.encoders)


@numpy_defaults
def _mean(rows: numpy.ndarray) -> numpy.ndarray:
    return rows.mean(axis=0)


def _kind(data: Record) -> str:
    how = (
        f"pooling {data['pooling']}, {'' if data['normalize'] else 'not '}normalized"
        if "pooling" in data
        else ""
    )
    return f"{how or 'combined by ' + repr(data['combined_by'])}, {data['width']} numbers"


def _stretch_vector(piece: Piece, records: Records, dense: _Dense | None) -> numpy.ndarray:
    """Return the vector of a part of a Doc: its row, or its wordpieces pooled in context."""
    zeros = numpy.zeros((records[0].data["width"],), dtype="float32")
    start, end = _characters(piece)
    if start == end:
        return zeros
    record = records.at(start, end)
    data, row = record.data, record.row_at(start, end)
    if row is not None:
        return row.copy()
    _check_states(record, records.text[start:end], dense)
    states = data["states"][_covered(record, start, end)]
    if data["truncated"] and not _was_read(record, records.text[start:end], start, end):
        _notify(piece.doc, record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(piece, Span) and len(states):
        _notify(piece.doc, record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(states):
        return zeros
    return _pooled(states, data, dense)


@numpy_defaults
def _pooled(states: numpy.ndarray, data: Record, dense: _Dense | None) -> numpy.ndarray:
    """Return the vector of wordpieces, float32 (wordpieces, width), as a record's pipe does."""
    stretch = Ragged(
        cast(Floats2d, numpy.ascontiguousarray(states)),
        cast(Ints1d, numpy.array([len(states)], dtype="int32")),
    )
    pooled = cast(numpy.ndarray, _pooling_on_cpu(data["pooling"]).predict(stretch))[0]
    if dense is not None:
        pooled = dense(pooled)
    if data["normalize"]:
        pooled = unit_length(pooled[None])[0]
    return pooled[: data["width"]]


def _check_states(record: PlacedRecord, text: str, dense: _Dense | None) -> None:
    """Refuse a stretch of text that is not a row, where its wordpieces are not known."""
    span = (
        f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), "
        "and its vector "
    )
    data, pipe = record.data, record.data.get("combined_by", record.name)
    if "combined_by" in data or (data.get("dense") and dense is None):
        raise ValueError(
            f"{span}is computed by the pipe. Ask it: nlp.get_pipe('{pipe}').vector(span)."
        )
    if "states" not in data:
        raise ValueError(
            f"{span}is not kept. Set token_vectors = true in the config of the pipe '{pipe}'."
        )


@cache
def _pooling_on_cpu(name: str) -> Pooling:
    layer = pooling_of_text(name)
    # The vectors on a Doc are there
    layer.to_cpu()
    return layer


# Hooks


class _PipeRef:
    """A weak reference to the pipe that set the hooks of a Doc, one of the hooks itself.

    A pickled one is empty.
    """

    def __init__(self, pipe: object = None):
        self._ref = None if pipe is None else ref(pipe)

    def __call__(self) -> Any:
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return _PipeRef, ()


def _install_hooks(doc: Doc, name: str = "", pipe: object = None) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    The pipe, if it is known, encodes queries.

    There is no Span hook named vector_norm: spaCy would return the vector for it.
    """
    for kind, hooks in _hooks().items():
        getattr(doc, kind).update(hooks)
    if pipe is not None:
        doc.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))


@cache
def _hooks() -> dict[str, dict[str, Any]]:
    """Return the hooks of a Doc, by the attributes of Doc that hold them."""
    of_spans = {"vector": vector, "has_vector": has_vector, "similarity": similarity}
    of_tokens = {**of_spans, "vector_norm": _vector_norm}
    return {"user_hooks": of_tokens, "user_span_hooks": of_spans, "user_token_hooks": of_tokens}


def pipe_of(doc: Doc, name: str) -> Any:
    """Return the pipe of this name that set the hooks of a Doc; None if it is gone."""
    hook = doc.user_hooks.get(PREFIX + name)
    return hook() if isinstance(hook, _PipeRef) else None


def _notify(doc: Doc, name: str, message: str) -> None:
    """Warn once for each pipe.

    Of vectors whose pipe is gone, as often as the filters of warnings say.
    """
    pipe = pipe_of(doc, name)
    notify = warn if pipe is None else pipe.notify
    notify(message.format(name=name))


@overload
def restore(doc: Doc, nlp: Language | None = None) -> Doc: ...  # type: ignore[overload-overlap]  # a Doc is no stream
@overload
def restore(doc: Collection[ItemT], nlp: Language | None = None) -> list[ItemT]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[ItemT], nlp: Language | None = None) -> Iterator[ItemT]: ...
def restore(doc: Any, nlp: Language | None = None) -> Any:
    """Set the hooks of Docs again that spaCy has dropped.

    Then `vector`, `has_vector` and `similarity` answer.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm
    elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): one Doc, and a collection such as a list, are
        restored at once; a stream such as `nlp.pipe(texts, n_process=2)` while it is read. In place
        of a Doc there may be a Doc and its context, as in `nlp.pipe(..., as_tuples=True)`.
    nlp (Language): the pipeline that made the vectors, which then encodes queries that are str.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream that is
        never read warns when it is deleted.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.
    """
    if isinstance(doc, Doc | Span) or not isinstance(doc, Iterable):
        return _restored(doc, nlp)
    if not isinstance(doc, Collection):
        return _RestoredStream(iter(doc), nlp)
    return [_restored(item, nlp) for item in doc]


class _RestoredStream(Iterator[Any]):
    """Docs of a stream, each restored when it is read."""

    def __init__(self, docs: Iterator[Any], nlp: Language | None):
        self._docs, self._nlp = docs, nlp
        self._is_read = False

    def __next__(self) -> Any:
        self._is_read = True
        return _restored(next_to_restore(self._docs), self._nlp)

    def __del__(self) -> None:
        if not self._is_read:
            # The statement whose result was dropped
            warn(Warnings.RESTORE_UNUSED)


def _restored(item: Any, nlp: Language | None) -> Any:
    doc = item[0] if isinstance(item, tuple) and len(item) == 2 else item
    if not isinstance(doc, Doc):
        raise TypeError(
            f"Cannot restore {repr(item)[:50]}: expected a Doc, a list of Docs, or a stream of "
            "them such as nlp.pipe(texts, n_process=2) or doc_bin.get_docs(nlp.vocab). With "
            "as_tuples=True each Doc has its context."
        )
    stored = names(doc)
    if not stored:
        raise no_vectors(doc)
    _install_hooks(doc)
    notice_joining(doc)
    for name, pipe in [] if nlp is None else nlp.components:
        if name in stored:
            doc.user_hooks[PREFIX + name] = cast(Any, _PipeRef(pipe))
    return item


def check_hooks(doc: Doc) -> None:
    """Warn, once in a process, if a Doc carries vectors for `doc.vector`, but no hook of ours."""
    are_ours = all(getattr(doc, kind).items() >= hooks.items() for kind, hooks in _hooks().items())
    if not are_ours and any(record.data["set_hooks"] for record in find(doc)):
        warn_of_lost_hooks()


# Similarity


def similarity(first: Piece, second: object, name: str | None = None) -> float:
    """Return the cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0.0 where either has no text.

    Vectors of two encoders, and a Lexeme's static vector, are compared with a warning.

    name (str): the pipe whose vectors are compared; by default that of the pipe that answers
        `doc.vector`.
    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    for obj in (first, second):
        if isinstance(obj, Piece):
            check_hooks(doc_of(obj))
    u, encoders = _vector_and_encoders(first, name, find(doc_of(first), name))
    v, others = comparable_vector(second, name, encoders)
    if not u.any() or not v.any():
        return 0.0
    if u.shape != v.shape:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[0], theirs=v.shape[0]))
    check_one_encoder(encoders, others)
    # Rounding may go beyond
    return min(max(float(cosine(u[None], v[None])[0]), -1.0), 1.0)


def sentence_similarity(first: Piece, second: Piece, name: str | None = None) -> float:
    """Return the similarity of sentence vectors, as doc._.sbert_similarity.

    RAISES (TypeError): if there is none.
    """
    if not isinstance(second, Piece):
        raise TypeError(
            f"A {type(second).__name__} has no sentence vector: expected a Doc, Span or Token that "
            "an 'sbert' pipe has processed, such as nlp(text)."
        )
    doc = doc_of(second)
    if not names(doc) and not _is_detached(doc):
        raise no_vectors(second)
    return similarity(first, second, name)


# Which encoder made a vector


def encoders_of_vector(obj: Piece, name: str | None = None) -> Encoders:
    """Return the encoders of the vector of a Doc, Span or Token, none if they are not known."""
    return _encoders(obj, find(doc_of(obj), name))


def _encoders(obj: Piece, records: Records) -> Encoders:
    if not records:
        return {} if _is_detached(doc_of(obj)) else _SPACY
    if _is_whole(obj):
        return records.encoders
    start, end = _characters(obj)
    return Records(obj.doc, [records.at(start, end)] if start < end else []).encoders


def comparable_vector(
    obj: object, name: str | None = None, encoders: Encoders | None = None
) -> tuple[numpy.ndarray, Encoders]:
    """Return the vector to compare with vectors of a pipe, and its encoders.

    It is that of a Doc, Span, Token or Lexeme.

    It is that of the pipe `name`, or of one with one of these encoders, or spaCy's own. RAISES
    (ValueError): if none.
    """
    if isinstance(obj, Piece):
        doc = doc_of(obj)
        records = find(doc, name)
        if name is not None and encoders is not None and not records:
            same = [
                other
                for other in names(doc)
                if encoders_of_vector(obj, other).keys() & encoders.keys()
            ]
            name = same[-1] if same else None if name == "sbert" else name
            records = find(doc, name)
        if records or _is_detached(doc):
            return _vector_and_encoders(obj, name, records)
        if not obj.has_vector or (name is not None and names(doc)):
            raise no_vectors(obj, name)
    elif not getattr(obj, "has_vector", False):
        raise ValueError(
            f"Cannot compare with a {type(obj).__name__} without a vector: expected a Doc, Span, "
            "Token or Lexeme that has a vector. Process the other text with the same pipeline."
        )
    return to_numpy(cast(Lexeme, obj).vector), _SPACY


def _vector_and_encoders(
    obj: Piece, name: str | None, records: Records
) -> tuple[numpy.ndarray, Encoders]:
    """Return what `vector` and `encoders_of_vector` return, of the records of one pipe."""
    found = _vector(obj, records) if records else vector(obj, name)
    return found, _encoders(obj, records)


def check_one_encoder(*sides: Encoders) -> None:
    """Warn, once for each pair, if vectors that are compared are of several encoders."""
    labels = {fingerprint: label for side in sides for fingerprint, label in side.items()}
    first, *others = sorted(labels) or [""]
    for other in others:
        pair = frozenset((first, other))
        if pair not in _warned:
            _warned.add(pair)
            ours, theirs = labels[first], labels[other]
            # Trained since, or with another pooling
            if ours == theirs:
                ours, theirs = f"{ours}, {first}", f"{theirs}, {other}"
            warn(Warnings.OTHER_ENCODER.format(ours=ours, theirs=theirs))
