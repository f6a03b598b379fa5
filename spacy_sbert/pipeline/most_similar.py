"""The sentences of a Doc that are most similar to a query: doc._.sbert_most_similar."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..similarity import cosine
from ..validation import Positive, validated
from . import doc_vectors
from .doc_vectors import (
    Encoders,
    check_one_encoder,
    comparable_name,
    encoders_of_vector,
    no_vectors,
    vector_of,
    warn_of_lost_hooks,
)

Query = str | Doc | Span


class SimilarSpan(NamedTuple):
    """A Span, and its cosine similarity to the query."""

    span: Span
    score: float


@validated
def most_similar(
    text: Doc | Span,
    query: Query,
    k: Positive = 3,
    *,
    prompt_name: str | None = None,
    name: str | None = None,
    nlp: Language | None = None,
) -> list[SimilarSpan]:
    """Return the k sentences of a Doc or Span that are most similar to a query, the best first.

    argsort_s (-cos(query, s), s), its first k

    Where there are no sentence boundaries, the encoder's rows take the place of sentences. Sentences without a vector,
    of white space alone, are left out.

    text (Doc or Span): processed by an `sbert` pipe. query (str, Doc or Span): a str is encoded by the pipe that made
        the vectors of the text: a Doc knows it until it is stored or sent, later nlp does.
    k (int): how many, 1 or more; all if there are fewer.
    prompt_name (str): the encoder's prompt for a query that is a str, such as "query".
    name (str): the pipe whose vectors are compared; by default that of the pipe that answers `doc.vector`.
    nlp (Language): the pipeline that has this pipe, or one with the same encoder.
    RETURNS (list[SimilarSpan]): the Spans and their similarities.
    RAISES (ValueError): if the text carries no sentence vectors or its sentences are not rows, the query has no vector,
        or it is a str and there is no pipe to encode it.
    """
    doc = text.doc if isinstance(text, Span) else text
    warn_of_lost_hooks(doc)
    if not doc_vectors.find(doc, name):
        raise no_vectors(text, name)
    spans, vectors = with_vectors(_rows(text, name), name)
    target = query_vector(query, text, prompt_name, name, nlp)
    if not spans:
        return []
    rows = numpy.stack(vectors)
    if rows.shape[1] != len(target):
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=rows.shape[1], theirs=len(target)))
    scores = cosine(numpy.broadcast_to(target, rows.shape), rows)
    return [SimilarSpan(spans[i], float(scores[i])) for i in numpy.argsort(-scores, kind="stable")[:k]]


def query_vector(
    query: Query,
    text: Doc | Span,
    prompt_name: str | None = None,
    name: str | None = None,
    nlp: Language | None = None,
) -> numpy.ndarray:
    """Return the vector of a query that is to be compared with the vectors of a Doc or Span.

    query (str, Doc or Span): a str is encoded by the pipe that made those, or one with the same encoder.
    prompt_name (str): the encoder's prompt for a str; by default that of its config.
    name (str): the pipe that made those; by default that which answers `doc.vector`.
    nlp (Language): the pipeline that has this pipe, for a Doc that does not know it.
    RETURNS (float32 (width,)).
    RAISES (TypeError, ValueError): if the query is something else, has no vector, or there is no such pipe.
    """
    if not isinstance(query, str | Doc | Span):
        raise TypeError(
            f"Cannot search for {repr(query)[:50]}: expected a str, a Doc, a Span, or where it says so a vector."
        )
    encoders = encoders_of_vector(text, name)
    if isinstance(query, str):
        vector = _encoded(query, text, prompt_name, name, encoders, nlp)
    else:
        name = comparable_name(query, name, encoders)
        vector = vector_of(query, name)
        check_one_encoder(encoders, encoders_of_vector(query, name))
    if not vector.any():
        raise ValueError(Errors.SEARCH_EMPTY_QUERY.format(query="the query"))
    return vector


def with_vectors(spans: Iterable[Span], name: str | None = None) -> tuple[list[Span], list[numpy.ndarray]]:
    """Return the Spans that have a vector, and their vectors, float32 (width,) each. Warns if they are of two encoders.

    RAISES (ValueError): if a Doc carries no vectors, or none for one of its Spans.
    """
    pairs = [(span, vector_of(span, name)) for span in spans]
    one_span_a_doc = {id(span.doc): span for span, _ in pairs}
    check_one_encoder(*(encoders_of_vector(span, name) for span in one_span_a_doc.values()))
    pairs = [(span, vector) for span, vector in pairs if vector.any()]
    return [span for span, _ in pairs], [vector for _, vector in pairs]


def _encoded(
    query: str,
    text: Doc | Span,
    prompt_name: str | None,
    name: str | None,
    encoders: Encoders,
    nlp: Language | None,
) -> numpy.ndarray:
    doc = text.doc if isinstance(text, Span) else text
    records = doc_vectors.find(doc, name)
    if not records:
        raise no_vectors(doc)
    check_one_encoder(encoders)
    fingerprint = min(encoders, default="")
    pipe = _find_pipe(doc, records[0].name, fingerprint, nlp)
    if pipe is None:
        encoder = f", encoder {fingerprint}" if fingerprint else ""
        raise ValueError(
            "Cannot encode a query given as str: this Doc does not know a pipe with the encoder that made its "
            f"vectors (pipe '{records[0].name}'{encoder}). Give its pipeline (nlp=nlp), or the query as a Doc, "
            "nlp(query); if the pipe was replaced or trained since, process the text again: nlp(doc.text)."
        )
    vector = pipe.encode([query], prompt_name=prompt_name)[0]
    return vector[: records[0].data["width"]] if fingerprint else vector  # a call may have kept fewer dimensions


def _find_pipe(doc: Doc, name: str, fingerprint: str, nlp: Language | None) -> Any:  # noqa: ANN401 (any component)
    """Return the pipe that made the vectors of a Doc, which the Doc knows, or a pipeline; None if neither does.

    fingerprint (str): of the encoder, which must still be that of the pipe; "" if it is not known: then vocab and name
        must be those of the pipe.
    """
    others = {} if nlp is None else {key: pipe for key, pipe in nlp.components if hasattr(pipe, "fingerprint")}
    for pipe in (doc_vectors.pipe_of(doc, name), others.pop(name, None), *others.values()):
        if pipe is None:
            continue
        if pipe.fingerprint() == fingerprint if fingerprint else (pipe.vocab is doc.vocab and pipe.name == name):
            return pipe
    return None


def sentences(text: Doc | Span, name: str | None = None) -> list[Span]:
    """Return the sentences of a Doc or Span that were encoded by themselves, or have vectors of spaCy's own.

    RAISES (ValueError): if one was not, so that its vector would be pooled in the context of its Doc; from spaCy if
        there are no sentence boundaries.
    """
    found = list(text.sents)  # type: ignore[union-attr]
    records = doc_vectors.find(text.doc if isinstance(text, Span) else text, name)
    for sentence in found if records else ():
        if not doc_vectors.is_row(sentence, records):
            pipe = records[0].name
            raise ValueError(
                f"The sentence '{sentence.text[:50]}' has no vector of its own: the encoder had no row of it, so that "
                "it would be pooled in the context of its Doc, and sentences that have nothing in common look alike. "
                f'Two things make rows of sentences: [components.{pipe}.model.get_spans] unit = "doc+sent" (of the '
                'component "transformer" where that is shared), and boundaries that are set before the encoder: put '
                f'it behind the parser, or add nlp.add_pipe("sentencizer", before="{pipe}").'
            )
    return found


def _rows(text: Doc | Span, name: str | None) -> list[Span]:
    doc = text.doc if isinstance(text, Span) else text
    if doc.has_annotation("SENT_START"):
        return sentences(text, name)
    start, end = (text.start_char, text.end_char) if isinstance(text, Span) else (0, len(doc.text))
    places, _ = doc_vectors.rows_of(doc, doc_vectors.find(doc, name))
    inside = [(first, last) for first, last in places.tolist() if start <= first < last <= end]
    rows = [doc.char_span(first, last, alignment_mode="expand") for first, last in inside]
    return [row for row in rows if row is not None]
