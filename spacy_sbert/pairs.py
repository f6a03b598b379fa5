"""The members of training examples, found among the encoder's rows, and their gold values."""

import math

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from .encoder.rows import Rows
from .errors import Errors
from .spans import members, row_order


def member_rows(doc: Doc, rows: Rows, spans_key: str) -> list[int]:
    """The row of each member of an example, in the order of the members; empty if the Doc is no example.

    RAISES (ValueError): if the rows are not the members, or a member has no text.
    """
    spans = members(doc, spans_key)
    if not spans:
        return []
    text = doc.text[:50]
    for number, span in enumerate(spans, start=1):
        if not span.text.strip():
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    given = [(start, end) for start, end in rows.spans.tolist()]
    check_rows("windows that overlap" if rows.foreign else given, doc, spans_key)
    order = row_order(spans)
    for number, row in enumerate(order, start=1):
        if not rows.has_text[row]:
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    return order


def check_rows(given: list[tuple[int, int]] | str, doc: Doc, spans_key: str) -> None:
    """Refuse rows that are not the members of an example.

    given: start and end token of each row, in the order of the text, or a word for what is no rows at all.
    RAISES (ValueError): if they are not.
    """
    expected = sorted((span.start, span.end) for span in members(doc, spans_key))
    if given != expected:
        raise ValueError(Errors.WRONG_ROWS.format(text=doc.text[:50], given=given, expected=expected, key=spans_key))


def gold_value(example: Example, gold: str, spans_key: str) -> float:
    """The gold value of an example: the number in example.reference.spans[spans_key].attrs[gold].

    RAISES (ValueError): if it is missing or no finite number.
    """
    group = example.reference.spans.get(spans_key)
    value = None if group is None else group.attrs.get(gold)
    if not isinstance(value, (int, float, numpy.number)) or not math.isfinite(value):
        raise ValueError(Errors.NO_GOLD.format(text=example.reference.text[:50], gold=gold, key=spans_key))
    return float(value)
