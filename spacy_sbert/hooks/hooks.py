"""The functions that answer `vector`, `has_vector`, `vector_norm` and `similarity` from the vectors stored on a Doc.

They are plain module-level functions that read the stored record at each call: a pickled Doc carries only their names,
and `Span.as_doc`, which hands the same hooks to a new Doc, needs nothing more.
"""

from typing import cast

import numpy
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..similarity import cosine, lengths
from . import records
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

    RETURNS (float): the similarity, from -1 to 1.
    RAISES (ValueError): if either side has no vectors, or the two have unequal width.
    """
    u, v = vector(ours), vector_of(theirs)
    if not u.any() or not v.any():
        return 0.0
    if u.shape != v.shape:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[0], theirs=v.shape[0]))
    return float(numpy.clip(float(cosine(u[None], v[None])[0]), -1.0, 1.0))  # rounding may go beyond


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
