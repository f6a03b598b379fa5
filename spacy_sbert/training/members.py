"""The members of training examples, found among the encoder's rows, and their gold values."""

import math
from collections.abc import Sequence
from typing import cast

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from ..errors.checks import is_text
from ..spans import members, row_order
from ..vectors.encoded import EncodedDoc
from .errors import Errors

MIDDLE = 0.5  # of scores, which readers give from 0 to 1
Gold = Floats1d | Floats2d | list[str] | list[list[str]] | None


def predicted_label(name: str) -> str:
    """Under which name a pipe notes the label that it gives to a pair, beside its members; "sbert_label"."""
    return f"{name}_label"


def predicted_score(name: str) -> str:
    """Under which name a reranker notes the score of a pair, beside its members; "sbert_reranker_score"."""
    return f"{name}_score"


def member_rows(doc: Doc, encoded: EncodedDoc, spans_key: str) -> list[int]:
    """The row of each member of an example, in the order of the members; empty if the Doc is not an example.

    RAISES (ValueError): if the rows are not the members, or a member has no text.
    """
    spans = members(doc, spans_key)
    if not spans:
        return []
    text = doc.text[:50]
    for number, span in enumerate(spans, start=1):
        if not span.text.strip():
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    rows = encoded.rows
    given = [(start, end) for start, end in rows.spans.tolist()]
    check_rows("windows that overlap" if rows.foreign else given, doc, spans_key)
    order = row_order(spans)
    for number, row in enumerate(order, start=1):
        if not rows.has_text[row]:
            raise ValueError(Errors.EMPTY_MEMBER.format(text=text, number=number, key=spans_key))
    return order


def check_rows(given: list[tuple[int, int]] | str, doc: Doc, spans_key: str) -> None:
    """Refuse rows that are not the members of an example.

    given: start and end token of each row, in the order of the text, or a word for what are not rows at all.
    RAISES (ValueError): if they are not.
    """
    expected = sorted((span.start, span.end) for span in members(doc, spans_key))
    if given != expected:
        raise ValueError(Errors.WRONG_ROWS.format(text=doc.text[:50], given=given, expected=expected, key=spans_key))


def gold_values(
    examples: Sequence[Example],
    kind: str | None,
    ops: Ops,
    spans_key: str,
    *,
    score_range: tuple[float, float] | None = None,
) -> Gold:
    """What a loss learns from beside the vectors of its members.

    examples (Sequence[Example]): with as many members each.
    kind (str): "score", "label", "vector" or "text"; None for a loss that needs nothing.
    score_range: see scores_of.
    RETURNS: scores, float32 (n,); labels, a list of n; vectors of a teacher, float32 (n, width); or the texts, a list
        of n for each member.
    RAISES (ValueError): if a value is missing or not what it should be.
    """
    if kind == "score":
        return scores_of(examples, ops, spans_key, score_range)
    if kind == "label":
        return labels_of(examples, spans_key)
    if kind == "vector":
        return ops.asarray2f(cast(Floats2d, numpy.stack([_vector_of(example, spans_key) for example in examples])))
    if kind == "text":
        texts = [[span.text for span in members(example.predicted, spans_key)] for example in examples]
        return [list(of_member) for of_member in zip(*texts, strict=True)]
    return None


def unlike_pair(examples: Sequence[Example], kind: str | None, spans_key: str) -> tuple[str, float] | None:
    """The texts and score of a pair whose score is below the middle, for a loss that reads none: it takes every pair as
    one that belongs together. None if there is no such pair, or the loss reads scores, labels or vectors.

    kind (str): see gold_values.
    """
    if kind not in ("text", None):
        return None
    for example in examples:
        score = attribute(example.reference, "score", spans_key)
        is_pair = len(members(example.predicted, spans_key)) == 2
        if is_pair and isinstance(score, int | float | numpy.number) and score < MIDDLE:
            return " / ".join(span.text[:50] for span in members(example.predicted, spans_key)), float(score)
    return None


def scores_of(
    examples: Sequence[Example], ops: Ops, spans_key: str, score_range: tuple[float, float] | None
) -> Floats1d:
    """The gold scores, float32 (n,), from example.reference.spans[spans_key].attrs["score"].

    score_range: the least and the greatest score there may be; None for any.
    RAISES (ValueError): if one is missing, not a finite number, or out of range.
    """
    scores = [gold_value(example, "score", spans_key) for example in examples]
    low, high = score_range or (-math.inf, math.inf)
    for example, score in zip(examples, scores, strict=True):
        if not low <= score <= high:
            text = example.reference.text[:50]
            message = Errors.GOLD_OUT_OF_RANGE.format(text=text, given=score, low=low, high=high, key=spans_key)
            raise ValueError(message)
    return ops.asarray1f(scores)


def gold_value(example: Example, gold: str, spans_key: str) -> float:
    """The gold value of an example: the number in example.reference.spans[spans_key].attrs[gold].

    RAISES (ValueError): if it is missing or not a finite number.
    """
    value = attribute(example.reference, gold, spans_key)
    if not isinstance(value, (int, float, numpy.number)) or not math.isfinite(value):
        text = example.reference.text[:50]
        raise ValueError(Errors.NO_GOLD.format(text=text, gold=gold, kind="a finite number", key=spans_key))
    return float(value)


def labels_of(examples: Sequence[Example], spans_key: str) -> list[str]:
    """The gold labels, from example.reference.spans[spans_key].attrs["label"].

    RAISES (ValueError): if one is missing or not a text.
    """
    labels = []
    for example in examples:
        label = attribute(example.reference, "label", spans_key)
        if not is_text(label) or not label:
            text = example.reference.text[:50]
            raise ValueError(Errors.NO_GOLD.format(text=text, gold="label", kind="a label", key=spans_key))
        labels.append(cast(str, label))
    return labels


def objective_of(example: Example, spans_key: str) -> str:
    """The name of the objective that an example is for; empty if it has none."""
    return cast(str, attribute(example.reference, "objective", spans_key) or "")


def batch_size_of(example: Example, spans_key: str, *, default: int) -> int:
    """How many examples of the same objective its whole batch has, as the batcher noted it."""
    return cast(int, attribute(example.reference, "batch_size", spans_key) or default)


def attribute(doc: Doc, name: str, spans_key: str) -> object:
    """What is noted under a name beside the members of an example; None if nothing is."""
    group = doc.spans.get(spans_key)
    return None if group is None else group.attrs.get(name)


def _vector_of(example: Example, spans_key: str) -> numpy.ndarray:
    vector = attribute(example.reference, "vector", spans_key)
    found = numpy.asarray([] if vector is None else vector, dtype="float32")
    if found.ndim != 1 or not found.size or not numpy.isfinite(found).all():
        text = example.reference.text[:50]
        raise ValueError(Errors.NO_GOLD.format(text=text, gold="vector", kind="a teacher's vector", key=spans_key))
    return found
