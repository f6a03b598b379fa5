"""Which stretches of a Doc are read by themselves: members of examples, and places without white space."""

from collections.abc import Callable

import catalogue
from spacy.tokens import Doc, Span
from spacy.util import registry

if not hasattr(registry, "span_getters"):  # which spacy-transformers creates, too
    registry.span_getters = catalogue.create("spacy", "span_getters", entry_points=True)  # type: ignore[attr-defined]

SpanGetter = Callable[[list[Doc]], list[list[Span]]]
SPANS_KEY = "sbert"


def members(doc: Doc, spans_key: str = SPANS_KEY) -> list[Span]:
    """The members of an example, in the order they were given (u, v); none if the Doc is not an example."""
    return list(doc.spans[spans_key]) if spans_key in doc.spans else []


def row_order(spans: list[Span]) -> list[int]:
    """Where each member stands among the rows, which follow the order of the text: alignment to tokens needs it."""
    by_position = sorted(range(len(spans)), key=lambda i: (spans[i].start, spans[i].end))
    order = [0] * len(spans)
    for row, member in enumerate(by_position):
        order[member] = row
    return order


def trimmed(text: str, start: int) -> tuple[int, int]:
    """The characters of a Span without white space at its ends: a row is the same row with or without it.

    text (str): of the Span. start (int): its first character.
    """
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))
