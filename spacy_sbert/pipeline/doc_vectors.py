"""Sentence vectors of Docs, Spans and Tokens.

Everything that `doc.vector` and `doc.similarity` depend on.

A pipe stores a record of vectors in doc.user_data (`store`, see records.py), and sets hooks
(`install_hooks`). The hooks are plain functions of this module that read the record at each call
(`vector`, `has_vector`, `similarity`): a pickled Doc carries their names alone. Where spaCy drops
hooks, a warning tells it (`lost_hooks.py`), `restore.py` sets them again, and `doc._.sbert_vector`
works without them (`extensions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast
from weakref import ref

import numpy
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats2d, Ints1d, Ragged
from thinc.util import to_numpy

from ..arrays import numpy_defaults
from ..errors import Warnings, warn
from ..models.poolings import Pooling, pooling_of_text
from ..models.spans import trimmed
from ..similarity import check_widths, cosine, lengths, unit_length
from .extensions import DocSpanOrToken
from .lost_hooks import Start, warn_of_lost_hooks
from .records import PREFIX, Encoders, PlacedRecord, Record, Records, find, names

# As the encoder of vectors without a record
_SPACY = {"": "spaCy's own vectors"}
# The dense layer of a pipe, for one pooled vector
_Dense = Callable[[numpy.ndarray], numpy.ndarray]
# In this process: of each pair of encoders
_warned: set[object] = set()


def store(doc: Doc, name: str, data: Record, pipe: object) -> None:
    """Put a pipe's record on a Doc, last of all, and remove the one of an earlier run.

    Hooks are set if the record says so. Its key is that of an extension attribute of a Span:
    `Doc.from_docs` and `Span.as_doc` then shift it with the text.
    """
    user_data = cast(dict[Any, Any], doc.user_data)
    for record in find(doc, name):
        del user_data["._.", PREFIX + name, record.start, record.end]
    if "text" not in data:
        data["text"] = doc.text
    start = Start(0) if data["set_hooks"] else 0
    user_data["._.", PREFIX + name, start, len(data["text"])] = data
    if data["set_hooks"]:
        install_hooks(doc)
        set_pipe(doc, name, pipe)


# Look-up


def doc_of(obj: DocSpanOrToken) -> Doc:
    """Return the Doc that a Doc, Span or Token is of.

    RAISES (TypeError): if it is none of them.
    """
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, Span | Token):
        raise TypeError(
            f"There is no vector of {repr(obj)[:50]}: expected a Doc, Span or Token that the "
            "pipeline has processed."
        )
    return obj.doc


def vector(
    obj: DocSpanOrToken,
    name: str | None = None,
    dense: _Dense | None = None,
    *,
    context: bool = False,
) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token.

    A Doc's is its pooled row, or the mean of its rows; a Span's its row if it is one, otherwise, as
    a Token's, the same pooling over its wordpieces in context.

    name (str): the pipe whose vector is wanted; by default that of the pipe that answers
        `doc.vector`.
    dense (Callable): the dense layer of the pipe, if it has one: Spans and Tokens that are not rows
        need it.
    context (bool): whether a Span is pooled in context also if it is a row (late chunking).
    RETURNS (float32 (width,)): zeros where there is no text.
    RAISES (ValueError): if the Doc carries no stored vectors, or none for this Span; with context,
        if no row has the Span and more of its Doc, or its end was cut.
    SOURCE: Günther et al. 2024 (Late Chunking), section 3.
    """
    records = find(doc_of(obj), name)
    if records:
        return _vector(obj, records, dense, context=context)
    if isinstance(obj, Doc) and name in (None, "sbert") and _is_detached(obj):
        return cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]  # noqa: SLF001 (what Span.as_doc sets)
    raise no_vectors(obj, name)


def _vector(
    obj: DocSpanOrToken, records: Records, dense: _Dense | None = None, *, context: bool = False
) -> numpy.ndarray:
    """Return the vector of a Doc, Span or Token from one or more records of its Doc."""
    if _is_whole(obj):
        return _doc_vector(doc_of(obj), records, dense)
    if isinstance(obj, Span):
        record = _record_of_part(obj, records)
        if record is not None and len(record.vectors):
            return _mean(record.vectors)
    return _span_vector(obj, records, dense, context=context)


def _is_whole(obj: DocSpanOrToken) -> bool:
    return isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(obj.doc))


def _record_of_part(span: Span, records: Records) -> PlacedRecord | None:
    """Return the record of a Span that was a Doc before `Doc.from_docs`, None if it was none.

    Other parts of the Doc may have no vectors.
    """
    ends = (span.end_char, span.start_char + len(span.text_with_ws))
    for record in records:
        is_there = record.start == span.start_char and record.end in ends
        if is_there and record.place_in(records.text):
            return record
    return None


def _characters(obj: DocSpanOrToken) -> tuple[int, int]:
    """Return the characters of an object in its Doc, without white space at the ends."""
    start = 0
    if isinstance(obj, Token):
        start = obj.idx
    elif isinstance(obj, Span):
        start = obj.start_char
    return trimmed(obj.text, start)


def has_vector(obj: DocSpanOrToken) -> bool:
    """Return whether a Doc, Span or Token has any wordpiece to make a vector of.

    False for empty and white text.
    """
    records = find(doc_of(obj))
    if not records and not (isinstance(obj, Doc) and _is_detached(obj)):
        return False
    return bool(vector(obj).any()) or _has_wordpieces(obj, records)


def _has_wordpieces(obj: DocSpanOrToken, records: Records) -> bool:
    """Return whether the encoder read a text; its vector may be zero, of words that are unknown."""
    if _is_whole(obj):
        return any(record.data["has_text"].any() for record in records)
    start, end = _characters(obj)
    with_states = [record for record in records if "states" in record.data]
    in_context = [record for record in with_states if record.row_at(start, end) is None]
    return any(record.covered(start, end).any() for record in in_context)


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
        return _span_vector(doc[:], parts, dense)
    with_rows = Records(doc, [record for record in parts if len(record.vectors)])
    if len(with_rows) > 1:
        _check_joined(with_rows)
    rows = [row for record in with_rows for row in record.vectors]
    if not rows:
        return numpy.zeros((max(record.data["width"] for record in records),), dtype="float32")
    if len(rows) > 1:
        return _mean(numpy.stack(rows))
    # What is done to it in place must not change what is stored
    return rows[0].copy()


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
    """Return how vectors were made, for messages."""
    width = f"{data['width']} numbers"
    if "pooling" not in data:
        return f"combined by {data['combined_by']!r}, {width}"
    normalized = "normalized" if data["normalize"] else "not normalized"
    return f"pooling {data['pooling']}, {normalized}, {width}"


def _span_vector(
    obj: DocSpanOrToken, records: Records, dense: _Dense | None, *, context: bool = False
) -> numpy.ndarray:
    """Return the vector of a Span or Token: its row, or its wordpieces pooled in context."""
    zeros = numpy.zeros((records[0].data["width"],), dtype="float32")
    start, end = _characters(obj)
    if start == end:
        return zeros
    record = records.at(start, end)
    row = record.row_at(start, end)
    has_context = context and (start, end) != trimmed(record.data["text"], record.start)
    if row is not None and not has_context:
        return row.copy()
    text = records.text[start:end]
    _check_states(record, text, dense)
    states = record.data["states"][record.covered(start, end)]
    is_cut = record.data["truncated"] and not record.has_read(text, start)
    if context:
        _check_context(record, start, end, is_cut=is_cut)
    elif is_cut:
        _notify(obj.doc, record.name, Warnings.BEHIND_LIMIT)
    elif isinstance(obj, Span) and len(states):
        _notify(obj.doc, record.name, Warnings.POOLED_IN_CONTEXT)
    if not len(states):
        return zeros
    return _pooled(states, record.data, dense)


def wordpiece_vectors(obj: DocSpanOrToken, name: str | None = None) -> numpy.ndarray:
    """Return the vectors of the wordpieces of a Doc, Span or Token, as the encoder read them there.

    They are its last layer, before pooling and dense layers, without special tokens.

    name (str): see vector.
    RETURNS (float32 (wordpieces, width)). RAISES (ValueError): if the Doc carries no stored
        vectors, or none of wordpieces.
    """
    records = find(doc_of(obj), name)
    if not records:
        raise no_vectors(obj, name)
    start, end = _characters(obj)
    if start == end:
        return numpy.zeros((0, records[0].data["width"]), dtype="float32")
    record = records.at(start, end)
    if "states" not in record.data:
        raise ValueError(
            f"The pipe '{record.name}' keeps no vectors of wordpieces. Set token_vectors = true in "
            "the config of an 'sbert' pipe."
        )
    return record.data["states"][record.covered(start, end)]


@numpy_defaults
def _pooled(states: numpy.ndarray, data: Record, dense: _Dense | None) -> numpy.ndarray:
    """Return the vector of wordpieces, float32 (wordpieces, width), as a record's pipe does."""
    n_wordpieces = numpy.array([len(states)], dtype="int32")
    ragged = Ragged(cast(Floats2d, numpy.ascontiguousarray(states)), cast(Ints1d, n_wordpieces))
    pooled = cast(numpy.ndarray, _pooling_on_cpu(data["pooling"]).predict(ragged))[0]
    if dense is not None:
        pooled = dense(pooled)
    if data["normalize"]:
        pooled = unit_length(pooled[None])[0]
    return pooled[: data["width"]]


def _check_states(record: PlacedRecord, text: str, dense: _Dense | None) -> None:
    """Refuse a text that is not a row if its wordpieces are not known."""
    span = (
        f"The span '{text[:50]}' is not a row (a whole Doc, a sentence, or a member of a pair), "
        "and its vector "
    )
    data = record.data
    pipe = data.get("combined_by", record.name)
    if "combined_by" in data or (data.get("dense") and dense is None):
        raise ValueError(
            f"{span}is computed by the pipe. Ask it: nlp.get_pipe('{pipe}').vector(span)."
        )
    if "states" not in data:
        raise ValueError(
            f"{span}is not kept. Set token_vectors = true in the config of the pipe '{pipe}'."
        )


def _check_context(record: PlacedRecord, start: int, end: int, *, is_cut: bool) -> None:
    """Refuse a vector in context of characters that were not read in it, or not to their end."""
    starts, ends = record.rows.T
    has_more = (starts <= start) & (ends >= end) & (ends - starts > end - start)
    if is_cut or not has_more.any():
        raise ValueError(
            f"The characters {start} to {end} of a Doc were not read in its context. Set unit = "
            f'"doc" or "doc+chunk" in [components.{record.name}.model.get_spans], and overflow = '
            '"windows" if the Doc is longer than the encoder\'s limit.'
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

    _ref: ref | None = None

    def __init__(self, pipe: object = None):
        if pipe is not None:
            self._ref = ref(pipe)

    def __call__(self) -> Any:
        return None if self._ref is None else self._ref()

    def __reduce__(self) -> tuple[type, tuple]:
        return _PipeRef, ()


def install_hooks(doc: Doc) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    There is no Span hook named vector_norm: spaCy would return the vector for it.
    """
    for kind, hooks in _hooks().items():
        getattr(doc, kind).update(hooks)


def set_pipe(doc: Doc, name: str, pipe: object) -> None:
    """Note the pipe of this name on a Doc, so that it encodes queries; see pipe_of."""
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


def check_hooks(doc: Doc) -> None:
    """Warn, once in a process, if a Doc carries vectors for `doc.vector`, but no hook of ours."""
    are_ours = all(getattr(doc, kind).items() >= hooks.items() for kind, hooks in _hooks().items())
    if not are_ours and any(record.data["set_hooks"] for record in find(doc)):
        warn_of_lost_hooks()


# Similarity


def similarity(first: DocSpanOrToken, second: object, name: str | None = None) -> float:
    """Return the cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0.0 where either has no text.

    Vectors of two encoders, and a Lexeme's static vector, are compared with a warning.

    name (str): the pipe whose vectors are compared; by default that of the pipe that answers
        `doc.vector`.
    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    for obj in (first, second):
        if isinstance(obj, DocSpanOrToken):
            check_hooks(doc_of(obj))
    u, encoders = _vector_and_encoders(first, name, find(doc_of(first), name))
    v, others = comparable_vector(second, name, encoders)
    if not u.any() or not v.any():
        return 0.0
    check_widths(len(u), len(v))
    check_one_encoder(encoders, others)
    # Rounding may go beyond
    return min(max(float(cosine(u[None], v[None])[0]), -1.0), 1.0)


def sentence_similarity(
    first: DocSpanOrToken, second: DocSpanOrToken, name: str | None = None
) -> float:
    """Return the similarity of sentence vectors, as doc._.sbert_similarity.

    RAISES (TypeError): if there is none.
    """
    if not isinstance(second, DocSpanOrToken):
        raise TypeError(
            f"A {type(second).__name__} has no sentence vector: expected a Doc, Span or Token that "
            "an 'sbert' pipe has processed, such as nlp(text)."
        )
    doc = doc_of(second)
    if not names(doc) and not _is_detached(doc):
        raise no_vectors(second)
    return similarity(first, second, name)


# Which encoder made a vector


def encoders_of_vector(obj: DocSpanOrToken, name: str | None = None) -> Encoders:
    """Return the encoders of the vector of a Doc, Span or Token, none if they are not known."""
    return _encoders(obj, find(doc_of(obj), name))


def _encoders(obj: DocSpanOrToken, records: Records) -> Encoders:
    if not records:
        return {} if _is_detached(doc_of(obj)) else _SPACY
    if _is_whole(obj):
        return records.encoders
    start, end = _characters(obj)
    if start == end:
        return {}
    return Records(obj.doc, [records.at(start, end)]).encoders


def comparable_vector(
    obj: object, name: str | None = None, encoders: Encoders | None = None
) -> tuple[numpy.ndarray, Encoders]:
    """Return the vector of an object to compare with vectors of a pipe, and its encoders.

    It is that of the pipe `name`, or of one with one of these encoders, or spaCy's own.

    obj (Doc, Span, Token or Lexeme): what is compared.
    name (str): the pipe; None for the one that answers `doc.vector`.
    encoders (dict): of the pipe's vectors; None if only `name` counts.
    RAISES (ValueError): if there is no such vector.
    """
    if not isinstance(obj, DocSpanOrToken):
        if not getattr(obj, "has_vector", False):
            raise ValueError(
                f"Cannot compare with a {type(obj).__name__} without a vector: expected a Doc, "
                "Span, Token or Lexeme that has a vector. Process the other text with the same "
                "pipeline."
            )
        return to_numpy(cast(Lexeme, obj).vector), _SPACY
    doc = doc_of(obj)
    records = find(doc, name)
    if name is not None and encoders is not None and not records:
        name = _pipe_of_encoders(obj, name, encoders)
        records = find(doc, name)
    if records or _is_detached(doc):
        return _vector_and_encoders(obj, name, records)
    if not obj.has_vector or (name is not None and names(doc)):
        raise no_vectors(obj, name)
    return to_numpy(obj.vector), _SPACY


def _pipe_of_encoders(obj: DocSpanOrToken, name: str, encoders: Encoders) -> str | None:
    """Return the last pipe whose vector of an object is by one of these encoders.

    Without one, the pipe `name`; in place of "sbert", None for whichever answers `doc.vector`.
    """
    for other in reversed(names(doc_of(obj))):
        if encoders_of_vector(obj, other).keys() & encoders.keys():
            return other
    return None if name == "sbert" else name


def _vector_and_encoders(
    obj: DocSpanOrToken, name: str | None, records: Records
) -> tuple[numpy.ndarray, Encoders]:
    """Return what `vector` and `encoders_of_vector` return, of the records of one pipe."""
    if records:
        return _vector(obj, records), _encoders(obj, records)
    return vector(obj, name), _encoders(obj, records)


def check_one_encoder(*sides: Encoders) -> None:
    """Warn, once for each pair, if vectors that are compared are of several encoders."""
    labels: dict[str, str] = {}
    for side in sides:
        labels |= side
    fingerprints = sorted(labels)
    for other in fingerprints[1:]:
        first = fingerprints[0]
        pair = frozenset((first, other))
        if pair in _warned:
            continue
        _warned.add(pair)
        ours = labels[first]
        theirs = labels[other]
        # Trained since, or with another pooling
        if ours == theirs:
            ours = f"{ours}, {first}"
            theirs = f"{theirs}, {other}"
        warn(Warnings.OTHER_ENCODER.format(ours=ours, theirs=theirs))
