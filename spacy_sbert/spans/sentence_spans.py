"""Which stretches of a Doc become rows of the encoder: the whole Doc, its sentences, both, or the members of a pair."""

from collections.abc import Iterable
from functools import partial
from typing import Literal

from spacy.tokens import Doc, Span
from spacy.util import registry

from ..errors import Errors
from ..errors.checks import Name, validated
from . import SPANS_KEY, SpanGetter, members

Unit = Literal["doc", "sent", "doc+sent"]


@registry.span_getters("spacy-sbert.sentence_spans.v1")  # type: ignore[attr-defined]
@validated
def sentence_spans(unit: Unit = "doc", spans_key: Name = SPANS_KEY) -> SpanGetter:
    """Span getter of sentence encoders: one row a Doc, one a sentence, both, or one for each member of a pair.

    unit (str): "doc" for one row a Doc; "sent" for one a sentence (needs sentence boundaries: put a sentencizer,
        senter or parser before the encoder); "doc+sent" for one a Doc and, where there are boundaries of several
        sentences, one a sentence behind it.
    spans_key (str): a Doc with members in doc.spans[spans_key] is an example of training or evaluation: its members
        are its rows, whatever the unit.
    RETURNS (Callable): from a list of Docs to a list of Spans a Doc, in the order of the text; none for an empty Doc.
    RAISES (ValueError): for an unknown unit; when called, if rows are to be sentences and a Doc has no boundaries.
    """
    return partial(get_sentence_spans, unit=unit, spans_key=spans_key)


def get_sentence_spans(docs: Iterable[Doc], unit: str, spans_key: str) -> list[list[Span]]:
    """The rows of each Doc, see sentence_spans."""
    return [_rows(doc, unit, spans_key) for doc in docs]


def spans_key_of(getter: object) -> str | None:
    """Where a span getter takes members from; None for one that is not of this package."""
    return (
        getattr(getter, "keywords", {}).get("spans_key")
        if getattr(getter, "func", None) is get_sentence_spans
        else None
    )


def wants_sentences(getter: object) -> bool:
    """Whether a span getter of this package makes rows of sentences."""
    return spans_key_of(getter) is not None and getattr(getter, "keywords", {})["unit"] != "doc"


def _rows(doc: Doc, unit: str, spans_key: str) -> list[Span]:
    pair = members(doc, spans_key)
    if pair:
        return sorted((span for span in pair if len(span)), key=lambda span: (span.start, span.end))
    if not len(doc):
        return []  # a row without tokens would break the alignment of the whole batch
    if unit == "sent":
        if not doc.has_annotation("SENT_START"):
            raise ValueError(Errors.NO_BOUNDARIES.format(text=doc.text[:50]))
        return list(doc.sents)
    sentences = list(doc.sents) if unit == "doc+sent" and doc.has_annotation("SENT_START") else []
    return [doc[:], *sentences] if len(sentences) > 1 else [doc[:]]
