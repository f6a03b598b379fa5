"""Search over Spans of Docs: "which sentence in these documents says this?"."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..models.spans import chunks
from ..pipeline import doc_vectors
from ..pipeline.most_similar import Query, SimilarSpan, query_vector, sentences, with_vectors
from ..similarity import check_widths
from ..validation import Positive, short_repr, validated
from .exact import nearest
from .faiss_index import BuiltKind, import_faiss
from .index import VectorIndex, index_html

_UNITS: dict[str, Callable[[Doc], Iterable[Span]]] = {
    "doc": lambda doc: [doc[:]],
    "sent": sentences,
    "noun_chunks": lambda doc: doc.noun_chunks,
    "ents": lambda doc: doc.ents,
    "chunks": chunks,
}


@validated
def collect_spans(
    docs: Doc | Iterable[Doc],
    unit: Literal["doc", "sent", "noun_chunks", "ents", "chunks"]
    | Callable[[Doc], Iterable[Span]] = "sent",
) -> Iterator[Span]:
    """Yield the sentences, passages, or other Spans, of Docs, in order.

    docs (Doc or Iterable[Doc]): the documents; those without tokens have none.
    unit (str or Callable): "doc", "sent", "noun_chunks", "ents", "chunks" for the passages of
        `sbert_chunks`, or a function from a Doc to Spans, such as `lambda doc: doc.spans["sc"]`.
    YIELDS (Span).
    RAISES (ValueError): for an unknown unit, if a sentence is not a row of the encoder, or a Doc
        has no sentences or no passages.
    """
    spans_of = _UNITS[unit] if isinstance(unit, str) else unit
    if isinstance(docs, Doc):
        docs = [docs]
    for doc in docs:
        if not isinstance(doc, Doc):
            raise TypeError(
                f"Cannot take Spans of {short_repr(doc)}: expected Docs, nlp.pipe(texts)."
            )
        if len(doc):
            yield from spans_of(doc)


class SpanSearch:
    """Search among Spans by the vectors that they carry.

    spans (Iterable[Span]): of Docs that a pipeline processed, see collect_spans; those without a
        vector are left out, with a warning if they are more than white space.
    kind (str): "exact", or the kind of a FAISS index, see VectorIndex.build.
    index (VectorIndex): a saved index of the same Spans.
    RAISES (ValueError): if no Span has a vector, widths differ, or the index is of other Spans or
        another encoder.
    """

    @validated
    def __init__(
        self,
        spans: Iterable[Span],
        *,
        kind: Literal["exact"] | BuiltKind = "exact",
        index: VectorIndex | None = None,
    ):
        builds_index = index is None and kind != "exact"
        if builds_index:
            # Before Spans are made
            import_faiss()
        found, vectors = with_vectors(spans)
        self._spans = tuple(found)
        if not self.spans:
            raise ValueError(
                "There is no Span with a vector. Give other Docs, or another unit, such as unit = "
                '"doc".'
            )
        widths = [len(vector) for vector in vectors]
        check_widths(min(widths), max(widths))
        self._vectors = numpy.stack(vectors)
        self._vectors.flags.writeable = False
        self._encoders = doc_vectors.encoders_of_vector(self.spans[0])
        self._texts = [span.text for span in self.spans]
        if index is not None:
            index.check_made_of(self.vectors, self._texts)
        elif kind != "exact":
            index = VectorIndex.build(self.vectors, kind=kind, texts=self._texts)
        self._index = index

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return the Spans that have a vector."""
        return self._spans

    @property
    def vectors(self) -> numpy.ndarray:
        """Return the vectors of the Spans, float32 (spans, width), which are read-only."""
        return self._vectors

    @property
    def index(self) -> VectorIndex | None:
        """Return the index that is searched; None for exact search."""
        return self._index

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        kind = "exact" if self.index is None else self.index.kind
        return f"SpanSearch({kind}: {len(self)} Spans, vectors of {self.vectors.shape[1]} numbers)"

    def _repr_html_(self) -> str:
        return index_html(self, (span.text for span in self.spans))

    @validated
    def search(
        self,
        query: Query | numpy.ndarray,
        k: Positive = 10,
        *,
        prompt_name: str | None = None,
        nlp: Language | None = None,
    ) -> list[SimilarSpan]:
        """Find the k Spans most similar to a query, the best first.

        query (str, Doc, Span or float array of shape (width,)): a str is encoded by the pipe that
            made the vectors of the first Doc: the Doc knows it until it is stored or sent, later
            nlp does.
        k (int): how many, 1 or more; all if there are fewer.
        prompt_name (str): the encoder's prompt for a query that is a str, such as "query".
        nlp (Language): the pipeline that has this pipe, or one with the same encoder.
        RETURNS (list[SimilarSpan]): each has `span`, which knows its `doc`, `start_char` and
            `end_char`, and `score`.
        RAISES (TypeError, ValueError): if the query is something else, or has no vector or another
            width, or a Doc was retokenized.

        Example:
            search = SpanSearch(collect_spans(nlp.pipe(texts)))
            for found in search.search("A man eats.", k=3):
                print(found.score, found.span.text)

        """
        vector = query
        if not isinstance(query, numpy.ndarray):
            vector = query_vector(
                query, self.spans[0], prompt_name, nlp=nlp, encoders=self._encoders
            )
        queries = numpy.asarray(vector)[None]
        k = min(k, len(self.spans))
        if self.index is None:
            scores, rows = nearest(queries, self.vectors, k=k)
        else:
            scores, rows = self.index.search(queries, k=k)
        return [
            SimilarSpan(self._span(row), float(score))
            for score, row in zip(scores[0], rows[0], strict=True)
        ]

    def _span(self, place: int) -> Span:
        """Return a Span.

        RAISES (ValueError): if its Doc has other tokens than when the search was made.
        """
        span = self.spans[place]
        text = self._texts[place]
        if span.end > len(span.doc) or span.text != text:
            raise ValueError(
                f"The Span {text[:50]!r} is no longer where it was: its Doc was retokenized. Make "
                "a new SpanSearch."
            )
        return span
