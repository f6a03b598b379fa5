"""Extension attributes of Docs, Spans and Tokens: doc._.sbert_vector, sbert_similarity, sbert_most_similar."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

Piece = Doc | Span | Token


def install_extensions(pipe: str = "sbert") -> None:
    """Register doc._.sbert_vector, sbert_similarity, sbert_most_similar and sbert_truncated, which need no hooks.

    Those of another pipe stand under its name. Those of "sbert" answer for the pipe that answers `doc.vector` where no
    pipe is called "sbert".
    """
    _set_extension((Doc, Span, Token), f"{pipe}_vector", getter=partial(_extension_vector, pipe))
    _set_extension((Doc, Span, Token), f"{pipe}_similarity", method=partial(_extension_similarity, pipe))
    _set_extension((Doc, Span), f"{pipe}_most_similar", method=partial(_extension_most_similar, pipe))
    _set_extension((Doc,), "sbert_truncated", getter=_is_truncated)


def _set_extension(kinds: Iterable[type[Piece]], name: str, **how: Callable) -> None:
    for kind in kinds:
        if not kind.has_extension(name):
            kind.set_extension(name, **how)  # type: ignore[arg-type]


def _is_truncated(doc: Doc) -> bool:
    """Return whether any row of a Doc was longer than the encoder's limit and was cut."""
    from . import doc_vectors  # noqa: PLC0415 (`import spacy_sbert` is light)

    return any(record.data["truncated"] for record in doc_vectors.all_records(doc))


def _extension_vector(pipe: str, obj: Piece) -> numpy.ndarray:
    from . import doc_vectors  # noqa: PLC0415 (`import spacy_sbert` is light)

    return doc_vectors.vector(obj, _answering(pipe, doc_vectors.doc_of(obj)))


def _extension_similarity(pipe: str, obj: Piece, other: Piece) -> float:
    from . import doc_vectors  # noqa: PLC0415 (`import spacy_sbert` is light)

    return doc_vectors.sentence_similarity(obj, other, _answering(pipe, doc_vectors.doc_of(obj)))


def _extension_most_similar(
    pipe: str,
    text: Doc | Span,
    query: str | Doc | Span,
    k: int = 3,
    *,
    prompt_name: str | None = None,
    nlp: Language | None = None,
) -> list[Any]:
    from . import doc_vectors  # noqa: PLC0415 (`import spacy_sbert` is light)
    from .most_similar import most_similar  # noqa: PLC0415 (not needed for a first vector)

    return most_similar(
        text, query, k, prompt_name=prompt_name, name=_answering(pipe, doc_vectors.doc_of(text)), nlp=nlp
    )


def _answering(pipe: str, doc: Doc) -> str | None:
    from . import doc_vectors  # noqa: PLC0415 (`import spacy_sbert` is light)

    return None if pipe == "sbert" and "sbert" not in doc_vectors.names(doc) else pipe
