"""Extension attributes: `sbert_vector`, `sbert_similarity`, `sbert_most_similar` and `sbert_truncated`."""

from collections.abc import Callable, Iterable
from functools import partial

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from .doc_vectors import Piece, doc_of, find, names, vector
from .hooks import sentence_similarity
from .most_similar import Query, SimilarSpan, most_similar


def install(pipe: str = "sbert") -> None:
    """Register `doc._.sbert_vector` and its like, which read stored vectors where hooks did not travel.

    Those of the pipe of this name, under its name; those of "sbert" answer for the pipe that answers `doc.vector` where
    no pipe is called "sbert".
    """
    _set((Doc, Span, Token), f"{pipe}_vector", getter=partial(_vector, pipe))
    _set((Doc, Span, Token), f"{pipe}_similarity", method=partial(_similarity, pipe))
    _set((Doc, Span), f"{pipe}_most_similar", method=partial(_most_similar, pipe))
    _set((Doc,), "sbert_truncated", getter=is_truncated)


def _set(kinds: Iterable[type[Piece]], name: str, **how: Callable) -> None:
    for kind in kinds:
        if not kind.has_extension(name):
            kind.set_extension(name, **how)  # type: ignore[arg-type]


def is_truncated(doc: Doc) -> bool:
    """Whether any row of a Doc was longer than the encoder's limit and was cut."""
    return any(record.data["truncated"] for name in names(doc) for record in find(doc, name))


def _vector(pipe: str, obj: Piece) -> object:
    return vector(obj, _answering(pipe, doc_of(obj)))


def _similarity(pipe: str, obj: Piece, other: Piece) -> float:
    return sentence_similarity(obj, other, _answering(pipe, doc_of(obj)))


def _most_similar(
    pipe: str,
    text: Doc | Span,
    query: Query,
    k: int = 3,
    *,
    prompt_name: str | None = None,
    nlp: Language | None = None,
) -> list[SimilarSpan]:
    return most_similar(text, query, k, prompt_name=prompt_name, name=_answering(pipe, doc_of(text)), nlp=nlp)


def _answering(pipe: str, doc: Doc) -> str | None:
    return None if pipe == "sbert" and "sbert" not in names(doc) else pipe
