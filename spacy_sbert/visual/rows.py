"""The texts of a picture, and their vectors."""

from collections.abc import Iterable, Iterator

import numpy
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..errors import Errors
from ..pipeline import doc_vectors
from ..similarity import checked, unit_length

Text = Doc | Span
EXCERPT = 50  # characters of a text in a message


def as_rows(docs: Text | Iterable[Text]) -> Iterator[Text]:
    """Yield the texts to draw: the given texts, or the sentences of a single Doc or Span that are not blank.

    YIELDS (Doc or Span): one text at a time, so that nlp.pipe can be given.
    RAISES (ValueError): if that Doc has no sentence boundaries. RAISES (TypeError): for anything else.
    """
    if isinstance(docs, (Doc, Span)):
        doc = _doc_of(docs)
        if not doc.has_annotation("SENT_START"):
            raise ValueError(
                f"Cannot draw the sentences of '{doc.text[:EXCERPT]}': the Doc has no sentence boundaries. Put "
                "a sentencizer, senter or parser into the pipeline, or give a list of Docs or Spans."
            )
        docs = [sentence for sentence in docs.sents if sentence.text.strip()]  # type: ignore[union-attr]
    for number, row in enumerate(docs):
        if not isinstance(row, (Doc, Span)):
            raise TypeError(
                f"Cannot draw {f'{row!r:.{EXCERPT}}'}, number {number} (from 0) of what was given: expected "
                "Docs and Spans. Process texts first: render(nlp.pipe(texts))."
            )
        yield row


def row_vector(row: Text, number: int) -> numpy.ndarray:
    """Return a copy of the vector of a text, which does not keep its Doc in memory.

    number (int): of the text, for messages.
    RETURNS (float array of shape (width,)). RAISES (ValueError): if it has none.
    """
    vector = _vector_of(row)
    if vector is None:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw, '{row.text[:EXCERPT]}', has no vector: it has no "
            "words, or its Doc was not processed by a pipe that makes vectors, such as 'sbert', or its user "
            "data did not travel with it. Leave it out, or process the text with the pipeline."
        )
    return vector.copy()


def unit_rows(vectors: Iterable[numpy.ndarray]) -> numpy.ndarray:
    """Scale the vectors of texts to length 1.

    RETURNS (float64 array of shape (n, width)): of length 1 or 0.
    RAISES (ValueError): if widths differ, or a number is not finite.
    """
    vectors = list(vectors)
    for vector in vectors:
        if vector.shape != vectors[0].shape:
            raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=len(vectors[0]), theirs=len(vector)))
    return unit_length(checked(numpy.stack(vectors), "vectors", "float64"))


def _vector_of(text: Text | Token) -> numpy.ndarray | None:
    """Return the vector that a pipe stored for a text, even if no hooks are set, else spaCy's own, else None."""
    if doc_vectors.find(_doc_of(text)):
        return doc_vectors.vector(text) if doc_vectors.has_vector(text) else None
    return to_numpy(text.vector) if text.has_vector else None


def token_vectors(text: Text) -> list[numpy.ndarray | None]:
    """Return the vector of each token, None for a token without one and for all if the pipe did not keep them."""
    kept = all("states" in record.data for record in doc_vectors.find(_doc_of(text)))
    return [_vector_of(token) if kept else None for token in text]


def language(row: Text) -> str:
    """Return the language code of a text."""
    return _doc_of(row).lang_


def _doc_of(text: Text | Token) -> Doc:
    return text if isinstance(text, Doc) else text.doc
