"""Hooks on a Doc: what `vector` and `similarity` of it, its Spans and its Tokens answer with, set and restored.

Hooks are plain functions of this package that read the stored record at each call: a pickled Doc carries only their
names, and `Span.as_doc`, which hands the same hooks to a new Doc, needs nothing more.
"""

import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar, cast, overload

import numpy
from spacy.errors import Warnings as SpacyWarnings
from spacy.language import Language
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..errors import Errors, Warnings, warn
from ..models.spans import trimmed
from ..similarity import cosine
from . import doc_vectors
from .doc_vectors import (
    PREFIX,
    SPACY,
    Encoder,
    Piece,
    PipeRef,
    check_one_encoder,
    doc_of,
    has_vector,
    is_detached,
    vector,
    vector_norm,
)
from .doc_vectors import encoders_of as encoders_of_records

ContextT = TypeVar("ContextT")
_said: set[str] = set()  # in this process


def install(doc: Doc, pipe: Any = None) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    A Span hook named vector_norm is left out on purpose: spaCy would return the vector for it.

    pipe (object): the `sbert` or `sbert_meta` pipe that answers, which encodes queries that are str; None if unknown.
    """
    doc.user_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    doc.user_span_hooks.update(vector=vector, has_vector=has_vector, similarity=similarity)
    doc.user_token_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    if pipe is not None:
        doc.user_hooks[PREFIX + pipe.name] = cast(Any, PipeRef(pipe))


@overload
def restore(doc: Doc, nlp: Language | None = None) -> Doc: ...
@overload
def restore(doc: Collection[Doc], nlp: Language | None = None) -> list[Doc]: ...  # type: ignore[overload-overlap]  # a list is no stream
@overload
def restore(doc: Iterable[Doc], nlp: Language | None = None) -> Iterator[Doc]: ...
@overload
def restore(doc: Iterable[tuple[Doc, ContextT]], nlp: Language | None = None) -> Iterator[tuple[Doc, ContextT]]: ...
def restore(doc: Any, nlp: Language | None = None) -> Any:
    """Bring `vector`, `has_vector` and `similarity` back to Docs whose hooks spaCy dropped on the way.

    Needed after `Doc.to_bytes`, `DocBin`, `nlp.pipe(n_process=2)` and `Doc.from_docs`; does no harm elsewhere.

    doc (Doc, Collection[Doc] or Iterable[Doc]): Docs that carry stored vectors. One, and those of a collection, such
        as a list, are restored at once; those of a stream, such as `nlp.pipe(texts, n_process=2)`, which may have no
        end, as they are taken from the result. In place of a Doc there may be a Doc and its context, as
        `nlp.pipe(..., as_tuples=True)` has them.
    nlp (Language): the pipeline that made the vectors, which then encodes queries that are str.
    RETURNS (Doc, list[Doc] or Iterator[Doc]): the same Docs, with their contexts. A stream of which no Doc was
        ever taken warns when it goes: nothing was restored.
    RAISES (ValueError): if a Doc carries no stored vectors. (TypeError): if something is not a Doc.
    """
    if isinstance(doc, Doc):
        return _restored(doc, nlp)
    if isinstance(doc, Span) or not isinstance(doc, Iterable):
        raise TypeError(Errors.RESTORE_NOT_DOCS.format(given=repr(doc)[:50]))
    if not isinstance(doc, Collection):
        return _Stream(iter(doc), nlp)
    return [_restored(one, nlp) for one in doc]


class _Stream(Iterator[Any]):
    """Docs of a stream, each restored when it is taken."""

    def __init__(self, docs: Iterator[Any], nlp: Language | None):
        self._docs, self._nlp = docs, nlp
        self._is_used = False

    def __next__(self) -> Any:
        self._is_used = True
        return _restored(next(self._docs), self._nlp)

    def __del__(self) -> None:
        if not self._is_used:
            warnings.warn(Warnings.RESTORE_UNUSED, stacklevel=2)  # the statement whose result was dropped


def _restored(doc: Any, nlp: Language | None) -> Any:
    if isinstance(doc, tuple) and len(doc) == 2 and isinstance(doc[0], Doc):
        return _restored(doc[0], nlp), doc[1]
    if not isinstance(doc, Doc):
        raise TypeError(Errors.RESTORE_NOT_DOCS.format(given=repr(doc)[:50]))
    if not doc_vectors.find(doc):
        raise ValueError(Errors.NO_VECTORS.format(kind="Doc", which=""))
    install(doc)
    for name, pipe in [] if nlp is None else nlp.components:
        if name in doc_vectors.names(doc):
            doc.user_hooks[PREFIX + name] = cast(Any, PipeRef(pipe))
    return doc


def warn_of_lost_hooks(doc: Doc) -> None:
    """Warn, once in a process, of a Doc that carries vectors for `doc.vector`, and has lost its hooks on the way."""
    is_lost = "vector" not in doc.user_hooks and any(one.data["set_hooks"] for one in doc_vectors.find(doc))
    if is_lost and Warnings.ARRIVED not in _said:
        _said.add(Warnings.ARRIVED)
        warn(Warnings.ARRIVED)


# Similarity


def similarity(ours: Piece, theirs: object) -> float:
    """Return the cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0.0 where either has no text.

    A Lexeme has a static vector: one of another width is compared with the static vector of the other side, as spaCy
    does without hooks. Vectors of two encoders are compared with a warning.

    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    if isinstance(theirs, Lexeme) and theirs.has_vector and len(theirs.vector) != _width(ours):
        return _static_similarity(ours, theirs)
    return _similarity(ours, theirs, None)


def sentence_similarity(ours: Piece, theirs: Piece, name: str | None = None) -> float:
    """Return the cosine similarity of the sentence vectors of two Docs, Spans or Tokens, whatever answers `similarity`.

    name (str): the pipe whose vectors are compared; by default the one that answers `doc.vector`.
    RAISES (TypeError): if the other side is something else. (ValueError): if either side has no sentence vector, or the
        two have unequal width.
    """
    if not isinstance(theirs, Piece):
        raise TypeError(
            f"A {type(theirs).__name__} has no sentence vector: expected a Doc, Span or Token that an 'sbert' "
            "pipe has processed, such as nlp(text)."
        )
    doc = doc_of(theirs)
    if not doc_vectors.names(doc) and not is_detached(doc):
        raise ValueError(Errors.NO_VECTORS.format(kind=type(theirs).__name__, which=""))
    return _similarity(ours, theirs, name)


def _similarity(ours: Piece, theirs: object, name: str | None) -> float:
    for obj in (ours, theirs):
        if isinstance(obj, Piece):
            warn_of_lost_hooks(doc_of(obj))
    u = vector(ours, name)
    encoders = encoders_of(ours, name)
    name = name_in(theirs, name, encoders)
    v = vector_of(theirs, name)
    if not u.any() or not v.any():
        return 0.0
    if u.shape != v.shape:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[0], theirs=v.shape[0]))
    check_one_encoder(encoders, encoders_of(theirs, name))
    return float(numpy.clip(float(cosine(u[None], v[None])[0]), -1.0, 1.0))  # rounding may go beyond


def _width(obj: Piece) -> int:
    found = doc_vectors.find(doc_of(obj))
    return found[0].data["width"] if found else len(vector(obj))


def _static_similarity(ours: Piece, lexeme: Lexeme) -> float:
    """Return what spaCy does without hooks: the cosine of the mean static vector of the tokens and that of a Lexeme.

    RAISES (ValueError): if the vocab of the tokens has no such vectors.
    """
    vocab, theirs = doc_of(ours).vocab, to_numpy(lexeme.vector)
    if vocab.vectors_length != len(theirs):
        widths = {"ours": _width(ours), "theirs": len(theirs)}
        raise ValueError(
            (
                "Cannot compare a {kind} of {ours} numbers with a Lexeme's static vector of {theirs}: the vocab of "
                "the {kind} has no such vectors. With set_hooks = false in the config of the 'sbert' pipe, spaCy "
                "compares static vectors, and doc._.sbert_similarity sentence vectors."
            ).format(kind=type(ours).__name__, **widths)
        )
    tokens = [ours] if isinstance(ours, Token) else list(ours)
    vectors = numpy.array([to_numpy(vocab.get_vector(token.orth)) for token in tokens], dtype="float32")
    if not vectors.any() or not theirs.any():
        warn(SpacyWarnings.W008.format(obj=type(ours).__name__))
        return 0.0
    return float(cosine(vectors.mean(axis=0)[None], theirs[None])[0])


def encoders_of(obj: object, name: str | None = None) -> set[Encoder]:
    """Return the encoders that made the vector that vector_of gives: none if they are not known.

    RAISES (ValueError): if a Span or Token of a Doc that was joined has no vector.
    """
    if not isinstance(obj, Piece):
        return {Encoder(SPACY)}
    found = doc_vectors.find(doc_of(obj), name)
    if found:
        return _encoders_at(obj, found)
    return set() if is_detached(doc_of(obj)) else {Encoder(SPACY)}


def name_in(other: object, name: str | None, encoders: set[Encoder]) -> str | None:
    """Return the name of the pipe whose vectors of another Doc, Span or Token are to be compared with those of a pipe.

    name (str): of that pipe. encoders (set[Encoder]): its encoder.
    RETURNS (str): this name, or that of a pipe with the same encoder; None for the one that answers `doc.vector`.
    """
    if name is None or not isinstance(other, Piece) or doc_vectors.find(doc_of(other), name):
        return name
    doc = doc_of(other)
    same = [one for one in doc_vectors.names(doc) if _encoders_at(other, doc_vectors.find(doc, one)) & encoders]
    return same[-1] if same else None if name == "sbert" else name


def vector_of(other: object, name: str | None = None) -> numpy.ndarray:
    """Return the stored vector of a Doc, Span or Token, or the one that spaCy has for it, or for a Lexeme.

    name (str): the pipe whose stored vector is wanted; by default that of the pipe that answers `doc.vector`.

    RAISES (ValueError): if it has none.
    """
    if isinstance(other, (Doc, Span, Token)):
        doc = doc_of(other)
        if doc_vectors.find(doc, name) or is_detached(doc):
            return vector(other, name)
        if not other.has_vector:
            raise ValueError(Errors.NO_VECTORS.format(kind=type(other).__name__, which=""))
        if name is not None and doc_vectors.names(doc):
            which = f" of a pipe named '{name}'"
            raise ValueError(Errors.NO_VECTORS.format(kind=type(other).__name__, which=which))
    elif not getattr(other, "has_vector", False):
        raise ValueError(
            f"Cannot compare with {f'a {type(other).__name__} without a vector'}: expected a Doc, Span, Token "
            "or Lexeme that has a vector. Process the other text with the same pipeline."
        )
    return to_numpy(cast(Lexeme, other).vector)


def _encoders_at(obj: Piece, records: list[doc_vectors.PlacedRecord]) -> set[Encoder]:
    if isinstance(obj, Doc) or (isinstance(obj, Span) and len(obj) == len(obj.doc)):
        return encoders_of_records(records)
    text, first = (obj.text, obj.idx) if isinstance(obj, Token) else (obj.text, obj.start_char)
    start, end = trimmed(text, first)
    return encoders_of_records([doc_vectors.record_of(obj.doc, records, start, end)] if start < end else [])
