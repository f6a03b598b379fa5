"""Span getters: which spans of a Doc are encoded."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy
from spacy.tokens import Doc, Span

from ..validation import Name, Width, invalid_value_message, validated

# The rows of each Doc
SpansByDoc = list[list[Span]]
SpanGetter = Callable[[list[Doc]], SpansByDoc]
SPANS_KEY = "sbert"
# Where `sbert_chunks` puts passages
CHUNKS_KEY = "chunks"


def members(doc: Doc, spans_key: str = SPANS_KEY) -> list[Span]:
    """Return the members of an example, in the order they were given (u, v).

    There are none if the Doc is not an example.
    """
    if spans_key not in doc.spans:
        return []
    return list(doc.spans[spans_key])


def row_order(spans: list[Span]) -> list[int]:
    """Return the place of each member among the rows.

    Rows follow the order of the text, as alignment to tokens needs it.
    """
    by_position = sorted(range(len(spans)), key=lambda member: _position(spans[member]))
    return numpy.argsort(by_position).tolist()


def _position(span: Span) -> tuple[int, int]:
    return span.start, span.end


def trimmed(text: str, start: int) -> tuple[int, int]:
    """Return the characters of a Span without white space at its ends.

    A row is the same row with or without it.

    text (str): of the Span. start (int): its first character.
    """
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))


Unit = Literal["doc", "sent", "doc+sent", "chunk", "doc+chunk"]


@validated
def sentence_spans(
    unit: Unit = "doc", spans_key: Name = SPANS_KEY, chunks_key: Name = CHUNKS_KEY
) -> SpanGetter:
    """Return the span getter of sentence encoders.

    It gives one row a Doc, one a sentence, one a passage, or one for each member of a pair.

    unit (str): "doc" for one row a Doc; "sent" for one a sentence (needs sentence boundaries: put a
        sentencizer, senter or parser before the encoder); "chunk" for one a passage (needs
        `sbert_chunks` before the encoder); "doc+sent" and "doc+chunk" for one a Doc and, where
        there are several sentences or passages, one for each of these behind it.
    spans_key (str): a Doc with members in doc.spans[spans_key] is an example of training or
        evaluation: its members are its rows, whatever the unit.
    chunks_key (str): where passages are, doc.spans[chunks_key].
    RETURNS (Callable): from a list of Docs to a list of Spans a Doc, in the order of the text; none
        for an empty Doc.
    RAISES (ValueError): for an unknown unit; when called, if rows are to be sentences and a Doc has
        no boundaries, or passages and it has none.

    Example:
        get_spans = sentence_spans(unit="doc+sent")
        (spans,) = get_spans([nlp("A man is eating. He likes it.")])

    """
    return partial(_get_sentence_spans, unit=unit, spans_key=spans_key, chunks_key=chunks_key)


@validated
def strided_spans(window: Width = 128, stride: Width = 96) -> SpanGetter:
    """Return the span getter of long Docs: windows of tokens that may overlap.

    window (int): tokens in a window. stride (int): from the start of a window to that of the next.
    RETURNS (Callable): from a list of Docs to a list of Spans a Doc, in the order of the text; none
        for an empty Doc.
    RAISES (ValueError): if stride is greater than window: tokens between windows would have no
        vector.
    """
    if stride > window:
        raise ValueError(invalid_value_message("stride", stride, f"at most window = {window}"))
    return partial(_get_strided_spans, window=window, stride=stride)


def _get_strided_spans(docs: Iterable[Doc], window: int, stride: int) -> SpansByDoc:
    return [_strides(doc, window, stride) for doc in docs]


def _strides(doc: Doc, window: int, stride: int) -> list[Span]:
    if not len(doc):
        return []
    # A window from here on reaches the end
    last = max(len(doc) - window, 0)
    return [doc[start : start + window] for start in range(0, last + stride, stride)]


def _get_sentence_spans(
    docs: Iterable[Doc], unit: str, spans_key: str, chunks_key: str = CHUNKS_KEY
) -> SpansByDoc:
    return [_rows(doc, unit, spans_key, chunks_key) for doc in docs]


def getter_settings(getter: Any) -> dict[str, str]:
    """Return the settings of a span getter of this package; nothing for another."""
    if getattr(getter, "func", None) is not _get_sentence_spans:
        return {}
    return getter.keywords


def _rows(doc: Doc, unit: str, spans_key: str, chunks_key: str) -> list[Span]:
    """Return the rows of a Doc in the order of the text.

    One without tokens would break the alignment of its batch.
    """
    pair = members(doc, spans_key)
    if pair:
        return sorted((span for span in pair if len(span)), key=_position)
    if not len(doc):
        return []
    parts: list[Span] = []
    if unit.endswith("chunk"):
        parts = chunks(doc, chunks_key)
    elif unit == "sent" or (unit == "doc+sent" and doc.has_annotation("SENT_START")):
        parts = sentences_of(doc)
    if not unit.startswith("doc"):
        return parts
    if len(parts) == 1:
        return [doc[:]]
    return [doc[:], *parts]


def chunks(doc: Doc, chunks_key: str = CHUNKS_KEY) -> list[Span]:
    """Return the passages of a Doc. RAISES (ValueError): if it has none."""
    if chunks_key in doc.spans:
        return list(doc.spans[chunks_key])
    raise ValueError(
        f"The Doc '{doc.text[:50]}' has no passages in doc.spans['{chunks_key}']. Put "
        "'sbert_chunks' behind what sets sentence boundaries and before what encodes: "
        'nlp.add_pipe("sbert_chunks", before="sbert"), or before="transformer" if that is shared.'
    )


def sentences_of(doc: Doc) -> list[Span]:
    """Return the sentences of a Doc. RAISES (ValueError): if it has no boundaries of them."""
    if doc.has_annotation("SENT_START"):
        return list(doc.sents)
    raise ValueError(
        f"The Doc '{doc.text[:50]}' has no sentence boundaries, which unit = \"sent\" in "
        "get_spans and 'sbert_chunks' need. Put a parser, senter or sentencizer before these, "
        'nlp.add_pipe("sentencizer", before="sbert"), or before="transformer" if that is shared; '
        'or set unit = "doc+sent", which encodes such Docs whole.'
    )
