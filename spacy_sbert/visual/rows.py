"""The texts of a picture, and their vectors."""

from collections.abc import Iterable, Iterator

import numpy
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..hooks import doc_vectors
from ..similarity import unit_length
from ..similarity.rows import checked
from .errors import Errors

Text = Doc | Span
EXCERPT = 50  # characters of a text in a message


def as_rows(docs: Text | Iterable[Text]) -> Iterator[Text]:
    """The texts that are drawn: those given, or the sentences of a single Doc or Span that are not blank.

    YIELDS (Doc or Span): one text at a time, so that nlp.pipe can be given.
    RAISES (ValueError): if that Doc has no sentence boundaries. RAISES (TypeError): for anything else.
    """
    if isinstance(docs, (Doc, Span)):
        doc = _doc_of(docs)
        if not doc.has_annotation("SENT_START"):
            raise ValueError(Errors.VISUAL_NO_SENTENCES.format(text=doc.text[:EXCERPT]))
        docs = [sentence for sentence in docs.sents if sentence.text.strip()]  # type: ignore[union-attr]
    for number, row in enumerate(docs):
        if not isinstance(row, (Doc, Span)):
            raise TypeError(Errors.VISUAL_NOT_DOCS.format(number=number, given=f"{row!r:.{EXCERPT}}"))
        yield row


def row_vector(row: Text, number: int) -> numpy.ndarray:
    """A copy of the vector of a text, which does not keep its Doc in memory.

    number (int): of the text, for messages.
    RETURNS (float array of shape (width,)). RAISES (ValueError): if it has none.
    """
    vector = vector_of(row)
    if vector is None:
        raise ValueError(Errors.VISUAL_NO_VECTOR.format(number=number, text=row.text[:EXCERPT]))
    return vector.copy()


def unit_rows(vectors: Iterable[numpy.ndarray]) -> numpy.ndarray:
    """The vectors of texts, brought to length 1.

    RETURNS (float64 array of shape (n, width)): of length 1 or 0.
    RAISES (ValueError): if widths differ, or a number is not finite.
    """
    vectors = list(vectors)
    for vector in vectors:
        if vector.shape != vectors[0].shape:
            raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=len(vectors[0]), theirs=len(vector)))
    return unit_length(checked(numpy.stack(vectors), "vectors", "float64"))


def vector_of(text: Text | Token) -> numpy.ndarray | None:
    """The vector that a pipe stored for a text, whether or not hooks are set, else spaCy's own; None without either."""
    if doc_vectors.find(_doc_of(text)):
        return doc_vectors.vector(text) if doc_vectors.has_vector(text) else None
    return to_numpy(text.vector) if text.has_vector else None


def token_vectors(text: Text) -> list[numpy.ndarray | None]:
    """The vector of each token; None for a token without one; None for all if the pipe did not keep them."""
    kept = all("states" in record.data for record in doc_vectors.find(_doc_of(text)))
    return [vector_of(token) if kept else None for token in text]


def language(row: Text) -> str:
    """The code of the language of a text."""
    return _doc_of(row).lang_


def _doc_of(text: Text | Token) -> Doc:
    return text if isinstance(text, Doc) else text.doc
