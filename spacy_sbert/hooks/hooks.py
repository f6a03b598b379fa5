"""The functions that answer `vector`, `has_vector`, `vector_norm` and `similarity` from the vectors stored on a Doc.

They are plain module-level functions that read the stored record at each call: a pickled Doc carries only their names,
and `Span.as_doc`, which hands the same hooks to a new Doc, needs nothing more.
"""

from typing import cast

import numpy
from spacy.errors import Warnings as SpacyWarnings
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..errors.notices import warn
from ..similarity import cosine, lengths
from . import records
from .encoders import SPACY, Encoder, check_one_encoder
from .errors import Errors

Piece = Doc | Span | Token


def install(doc: Doc) -> None:
    """Let a Doc, its Spans and its Tokens answer from the stored vectors.

    A Span hook named vector_norm is left out on purpose: spaCy would return the vector for it.
    """
    doc.user_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)
    doc.user_span_hooks.update(vector=vector, has_vector=has_vector, similarity=similarity)
    doc.user_token_hooks.update(vector=vector, has_vector=has_vector, vector_norm=vector_norm, similarity=similarity)


def vector(obj: Piece, name: str | None = None, dense: records.Dense | None = None) -> numpy.ndarray:
    """The stored vector of a Doc, Span or Token.

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
    """Whether a Doc, Span or Token has any wordpiece to make a vector of; False for empty and white text."""
    if not records.find(doc_of(obj)) and not (isinstance(obj, Doc) and _is_detached(obj)):
        return False
    return _look_up(obj)[1]


def vector_norm(obj: Doc | Token) -> float:
    """Euclidean norm of the vector of a Doc or Token."""
    return float(lengths(vector(obj)[None].astype("float64"))[0])


def similarity(ours: Piece, theirs: object) -> float:
    """Cosine similarity of a Doc, Span or Token to another one, or to a Lexeme.

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
        raise TypeError(Errors.NO_SENTENCE_VECTOR.format(given=type(theirs).__name__))
    doc = doc_of(theirs)
    if not records.names(doc) and not _is_detached(doc):
        raise ValueError(Errors.NO_VECTORS.format(kind=type(theirs).__name__, which=""))
    return _similarity(ours, theirs, name)


def _similarity(ours: Piece, theirs: object, name: str | None) -> float:
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
    found = records.find(doc_of(obj))
    return found[0].data["width"] if found else len(vector(obj))


def _static_similarity(ours: Piece, lexeme: Lexeme) -> float:
    """Return what spaCy does without hooks: the cosine of the mean static vector of the tokens and that of a Lexeme.

    RAISES (ValueError): if the vocab of the tokens has no such vectors.
    """
    vocab, theirs = doc_of(ours).vocab, to_numpy(lexeme.vector)
    if vocab.vectors_length != len(theirs):
        widths = {"ours": _width(ours), "theirs": len(theirs)}
        raise ValueError(Errors.STATIC_WIDTH.format(kind=type(ours).__name__, **widths))
    tokens = [ours] if isinstance(ours, Token) else list(ours)
    vectors = numpy.array([to_numpy(vocab.get_vector(token.orth)) for token in tokens], dtype="float32")
    if not vectors.any() or not theirs.any():
        warn(SpacyWarnings.W008.format(obj=type(ours).__name__))
        return 0.0
    return float(cosine(vectors.mean(axis=0)[None], theirs[None])[0])


def encoders_of(obj: object, name: str | None = None) -> set[Encoder]:
    """Return the encoders that made the vector that vector_of gives: none if they are not known.

    RAISES (ValueError): if a part of a Doc that was joined has no vector.
    """
    if not isinstance(obj, Piece):
        return {Encoder(SPACY)}
    found = records.find(doc_of(obj), name)
    if found:
        return records.encoders_at(obj, found)
    return set() if _is_detached(doc_of(obj)) else {Encoder(SPACY)}


def name_in(other: object, name: str | None, encoders: set[Encoder]) -> str | None:
    """Return the name of the pipe whose vectors of another Doc, Span or Token are to be compared with those of a pipe.

    name (str): of that pipe. encoders (set[Encoder]): its encoder.
    RETURNS (str): this name, or that of a pipe with the same encoder; None for the one that answers `doc.vector`.
    """
    if name is None or not isinstance(other, Piece) or records.find(doc_of(other), name):
        return name
    doc = doc_of(other)
    same = [one for one in records.names(doc) if records.encoders_at(other, records.find(doc, one)) & encoders]
    return same[-1] if same else None if name == "sbert" else name


def vector_of(other: object, name: str | None = None) -> numpy.ndarray:
    """The stored vector of a Doc, Span or Token, or the one that spaCy has for it, or for a Lexeme.

    name (str): the pipe whose stored vector is wanted; by default that of the pipe that answers `doc.vector`.

    RAISES (ValueError): if it has none.
    """
    if isinstance(other, (Doc, Span, Token)):
        doc = doc_of(other)
        if records.find(doc, name) or _is_detached(doc):
            return vector(other, name)
        if not other.has_vector:
            raise ValueError(Errors.NO_VECTORS.format(kind=type(other).__name__, which=""))
        if name is not None and records.names(doc):
            which = f" of a pipe named '{name}'"
            raise ValueError(Errors.NO_VECTORS.format(kind=type(other).__name__, which=which))
    elif not getattr(other, "has_vector", False):
        raise ValueError(Errors.NOT_COMPARABLE.format(given=f"a {type(other).__name__} without a vector"))
    return to_numpy(cast(Lexeme, other).vector)


def doc_of(obj: Piece) -> Doc:
    """The Doc that a Doc, Span or Token is of. RAISES (TypeError): if it is none of them."""
    if isinstance(obj, Doc):
        return obj
    if not isinstance(obj, (Span, Token)):
        raise TypeError(Errors.NOT_A_DOC.format(given=repr(obj)[:50]))
    return obj.doc


def _look_up(obj: Piece, name: str | None = None, dense: records.Dense | None = None) -> tuple[numpy.ndarray, bool]:
    doc = doc_of(obj)
    found = records.find(doc, name)
    if found:
        if isinstance(obj, Doc):
            return records.doc_vector(obj, found, dense)
        if isinstance(obj, Span):
            return records.span_vector(obj, found, dense)
        return records.token_vector(obj, found, dense)
    if isinstance(obj, Doc) and name in (None, "sbert") and _is_detached(obj):
        detached = cast(numpy.ndarray, obj._vector)  # type: ignore[attr-defined]
        return detached, bool(detached.any())
    which = "" if name is None else f" of a pipe named '{name}'"
    raise ValueError(Errors.NO_VECTORS.format(kind=type(obj).__name__, which=which))


def _is_detached(doc: Doc) -> bool:
    """Whether a Doc comes from `Span.as_doc`, which hands on our hooks and sets the Span's vector, but no user data."""
    return doc.user_hooks.get("vector") is vector and doc._vector is not None  # type: ignore[attr-defined]
