"""The sentences of a Doc that are most similar to a query: doc._.sbert_most_similar."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Errors, Warnings, warn
from ..models.spans import trimmed
from ..similarity import check_widths, cosine
from ..validation import Positive, validated
from . import doc_vectors
from .records import find

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

    Where there are no sentence boundaries, the encoder's rows take the place of sentences.
    Sentences without a vector are left out, with a warning if they are more than white space.

    text (Doc or Span): processed by an `sbert` pipe.
    query (str, Doc or Span): a str is encoded by the pipe that made the vectors of the text: a Doc
        knows it until it is stored or sent, later nlp does.
    k (int): how many, 1 or more; all if there are fewer.
    prompt_name (str): the encoder's prompt for a query that is a str, such as "query".
    name (str): the pipe whose vectors are compared; by default that of the pipe that answers
        `doc.vector`.
    nlp (Language): the pipeline that has this pipe, or one with the same encoder.
    RAISES (ValueError): if the text carries no sentence vectors or its sentences are not rows, the
        query has no vector, or it is a str and there is no pipe to encode it.

    Example:
        best = doc._.sbert_most_similar("Who eats?", k=1)[0]
        print(best.score, best.span.text)

    """
    doc = doc_vectors.doc_of(text)
    if not find(doc, name):
        raise doc_vectors.no_vectors(text, name)
    get_candidates = sentences if doc.has_annotation("SENT_START") else _rows
    spans, vectors = with_vectors(get_candidates(text, name), name)
    target = query_vector(query, text, prompt_name, name, nlp)
    if not spans:
        return []
    rows = numpy.stack(vectors)
    check_widths(rows.shape[1], len(target))
    scores = cosine(numpy.broadcast_to(target, rows.shape), rows)
    best = numpy.argsort(-scores, kind="stable")[:k]
    return [SimilarSpan(spans[i], float(scores[i])) for i in best]


def query_vector(
    query: Query,
    text: Doc | Span,
    prompt_name: str | None = None,
    name: str | None = None,
    nlp: Language | None = None,
    *,
    encoders: doc_vectors.Encoders | None = None,
) -> numpy.ndarray:
    """Return the vector of a query, float32 (width,), to compare with those of a Doc or Span.

    See most_similar.

    encoders (dict): what made these; by default what made those that the Doc has now.
    """
    if not isinstance(query, str | Doc | Span):
        raise TypeError(
            f"Cannot search for {repr(query)[:50]}: expected a str, a Doc, a Span, or where it "
            "says so a vector."
        )
    if encoders is None:
        encoders = doc_vectors.encoders_of_vector(text, name)
    if isinstance(query, str):
        doc_vectors.check_one_encoder(encoders)
        vector = _encoded(query, doc_vectors.doc_of(text), encoders, prompt_name, name, nlp)
    else:
        doc_vectors.check_hooks(doc_vectors.doc_of(query))
        vector, others = doc_vectors.comparable_vector(query, name, encoders)
        doc_vectors.check_one_encoder(encoders, others)
    if not vector.any():
        raise ValueError(Errors.SEARCH_EMPTY_QUERY.format(query="the query"))
    return vector


def with_vectors(
    spans: Iterable[Span], name: str | None = None
) -> tuple[list[Span], list[numpy.ndarray]]:
    """Return the Spans that have a vector, and their vectors, float32 (width,).

    Warn if the vectors are of two encoders, or a Span that is more than white space has none.
    """
    spans = list(spans)
    kept: list[Span] = []
    vectors: list[numpy.ndarray] = []
    missing: list[str] = []
    # Of a Span of each Doc
    encoders: dict[Doc, doc_vectors.Encoders] = {}
    for span in spans:
        vector, encoders[span.doc] = doc_vectors.comparable_vector(span, name)
        if vector.any():
            kept.append(span)
            vectors.append(vector)
        elif span.text.strip():
            missing.append(span.text)
    for doc in encoders:
        doc_vectors.check_hooks(doc)
    doc_vectors.check_one_encoder(*encoders.values())
    if missing:
        warn(
            Warnings.SPANS_LEFT_OUT.format(
                count=len(missing), total=len(spans), text=missing[0][:50]
            )
        )
    return kept, vectors


def _encoded(
    query: str,
    doc: Doc,
    encoders: doc_vectors.Encoders,
    prompt_name: str | None,
    name: str | None,
    nlp: Language | None,
) -> numpy.ndarray:
    """Return the vector of a query from the pipe of a Doc's vectors.

    A pipe with the same encoder will do.
    """
    records = find(doc, name)
    if not records:
        raise doc_vectors.no_vectors(doc)
    fingerprint = min(encoders, default="")
    pipe_name = records[0].name
    for pipe in _pipes(doc, pipe_name, nlp):
        if fingerprint and pipe.fingerprint() == fingerprint:
            # The call that made the vectors may have kept fewer dimensions
            return pipe.encode([query], prompt_name=prompt_name)[0][: records[0].data["width"]]
        # Without a fingerprint, vocab and name must be those of the pipe.
        if not fingerprint and pipe.vocab is doc.vocab and pipe.name == pipe_name:
            return pipe.encode([query], prompt_name=prompt_name)[0]
    encoder = f", encoder {fingerprint}" if fingerprint else ""
    raise ValueError(
        "Cannot encode a query given as str: this Doc does not know a pipe with the encoder that "
        f"made its vectors (pipe '{pipe_name}'{encoder}). Give its pipeline (nlp=nlp), or the "
        "query as a Doc, nlp(query); if the pipe was replaced or trained since, process the text "
        "again: nlp(doc.text)."
    )


def _pipes(doc: Doc, name: str, nlp: Language | None) -> list[Any]:
    """Return the pipes that may have made vectors on a Doc, the likeliest first.

    name (str): of the pipe that made them.
    """
    pipes = [doc_vectors.pipe_of(doc, name)]
    if nlp is not None:
        known = {key: pipe for key, pipe in nlp.components if hasattr(pipe, "fingerprint")}
        pipes += [known.pop(name, None), *known.values()]
    return [pipe for pipe in pipes if pipe is not None]


def sentences(text: Doc | Span, name: str | None = None) -> list[Span]:
    """Return the sentences of a Doc or Span.

    RAISES (ValueError): if one was not encoded by itself.
    """
    spans = list(text.sents)  # type: ignore[union-attr]
    records = find(doc_vectors.doc_of(text), name)
    if not records:
        return spans
    for sentence in spans:
        start, end = trimmed(sentence.text, sentence.start_char)
        if start < end and records.at(start, end).row_at(start, end) is None:
            pipe = records[0].name
            raise ValueError(
                f"The sentence '{sentence.text[:50]}' has no vector of its own: the encoder read "
                "it in the context of its Doc. Set "
                f'[components.{pipe}.model.get_spans] unit = "doc+sent" (of the component '
                '"transformer" where that is shared), and set boundaries before the encoder: '
                f'nlp.add_pipe("sentencizer", before="{pipe}").'
            )
    return spans


def _rows(text: Doc | Span, name: str | None) -> list[Span]:
    """Return the rows of the encoder in a Doc or Span."""
    doc = doc_vectors.doc_of(text)
    first = 0
    last = len(doc.text)
    if isinstance(text, Span):
        first = text.start_char
        last = text.end_char
    rows, _ = find(doc, name).rows()
    spans = [
        doc.char_span(start, end, alignment_mode="expand")
        for start, end in rows.tolist()
        if first <= start < end <= last
    ]
    return [span for span in spans if span is not None]
