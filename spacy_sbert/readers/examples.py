"""Example Docs from rows of a data set."""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy
from spacy.attrs import NORM
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from thinc.types import Ints2d

from ..files.text_lines import check_cell
from ..models.spans import SPANS_KEY
from ..training.examples import OBJECTIVE
from ..validation import Name, check, short_repr, validated

# What gold may be: a score, a label or a vector
_Gold = float | str | Sequence[float] | numpy.ndarray | None


@validated
def example_doc(
    nlp: Language, members: Sequence[str], *, spans_key: Name = SPANS_KEY, **gold: _Gold
) -> Doc:
    """Return one Doc of several texts, with the texts as members and gold values beside them.

    nlp (Language): whose tokenizer makes the Doc. members (Sequence[str]): the texts, none of them
        empty.
    spans_key (str): where the members stand.
    gold: score (float from 0 to 1), label (str), vector (floats of a teacher); None leaves one out.
    RETURNS (Doc): the texts one after the other; doc.spans[spans_key] holds a Span for each, and
        gold in its attrs.
    RAISES (ValueError): for a text without tokens, or no text at all.
    """
    check("label", gold.get("label"), Name | None)
    score = gold.get("score")
    # Tensors and arrays without a dimension, as cos_sim(a, b)[0][0] is one
    if getattr(score, "shape", None) == ():
        gold["score"] = float(cast(Any, score))
    words: list[str] = []
    spaces: list[bool] = []
    # The norms of the tokenizer, such as "not" for "n't"
    norms: list[int] = []
    # The tokens where a member begins or ends
    borders = [0]
    for number, text in enumerate(members, start=1):
        doc = nlp.make_doc(text)
        words += [token.text for token in doc]
        spaces += [bool(token.whitespace_) for token in doc]
        norms += [token.norm for token in doc]
        if not len(doc):
            raise ValueError(
                f"The member number {number} of an example ('{text}') has no tokens. Remove the "
                "example."
            )
        # A member ends where the next begins
        spaces[-1] = True
        borders.append(len(words))
    if not words:
        raise ValueError("An example was given no members: expected one text or more.")
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    doc.from_array([NORM], cast(Ints2d, numpy.array(norms, dtype="uint64")))
    spans = [Span(doc, start, end) for start, end in pairwise(borders)]
    attrs = {name: value for name, value in gold.items() if value is not None}
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, attrs=attrs, spans=spans)
    return doc


@validated
def pair_doc(
    nlp: Language, first: str, second: str, score: float, *, spans_key: Name = SPANS_KEY
) -> Doc:
    """Return one Doc of two texts, with a score from 0 to 1 as gold: see example_doc."""
    return example_doc(nlp, (first, second), spans_key=spans_key, score=score)


def make_example(reference: Doc, spans_key: str = SPANS_KEY) -> Example:
    """Return an Example whose predicted Doc is the reference without its gold.

    It has the words, members and objective.
    """
    words = [token.text for token in reference]
    predicted = Doc(
        reference.vocab, words=words, spaces=[bool(token.whitespace_) for token in reference]
    )
    predicted.from_array([NORM], cast(Ints2d, reference.to_array([NORM])))
    group = reference.spans[spans_key]
    spans = [Span(predicted, span.start, span.end) for span in group]
    attrs = {}
    if OBJECTIVE in group.attrs:
        attrs[OBJECTIVE] = group.attrs[OBJECTIVE]
    predicted.spans[spans_key] = SpanGroup(predicted, name=spans_key, attrs=attrs, spans=spans)
    return Example(predicted, reference)


_TRIPLET = 3
# How many lines a message names
_SHOWN = 5
_BOOLEANS = dict.fromkeys(("true", "t", "yes", "y"), 1.0)
_BOOLEANS |= dict.fromkeys(("false", "f", "no", "n"), 0.0)


@dataclass(frozen=True)
class Row:
    """An example as it stands in a file.

    members: its texts, in order, without white space around them. line: where it starts, counted
        from 1.
    score: gold similarity from 0 to 1, None where there is none. label: gold label, None where
        there is none. scores: a teacher's, of the members after the first, None where there are
        none.
    """

    members: tuple[str, ...]
    line: int
    score: float | None = None
    label: str | None = None
    scores: list[float] | None = None


def listed_lines(lines: Sequence[int]) -> str:
    """Return the first of some lines as messages list them."""
    word = "lines" if len(lines) > 1 else "line"
    listed = ", ".join(map(str, lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        listed += f" and {len(lines) - _SHOWN} more"
    return f"{word} {listed}"


def from_boolean(value: object) -> object:
    """Return a boolean that is written as a word, such as "True" or "no", as 1 or 0.

    Other values as they are.
    """
    if not isinstance(value, str):
        return value
    return _BOOLEANS.get(value.strip().lower(), value)


def as_number(value: object) -> float:
    """Return a cell as a number; nan if it is none, or not finite.

    Python's own 1_0 for 10 is none.
    """
    if isinstance(value, str) and "_" in value:
        return math.nan
    try:
        number = float(cast(float, value))
    except (TypeError, ValueError, OverflowError):
        return math.nan
    if not math.isfinite(number):
        return math.nan
    return number


def cell_text(value: object) -> str:
    """Return a cell as text without white space around it.

    "" for a blank one, also where pandas writes NaN.
    """
    is_nan = value != value
    if value is None or is_nan:
        return ""
    return str(value).strip()


def check_members(
    texts: Sequence[object], names: Sequence[str], path: Path, line: int
) -> tuple[str, ...]:
    """Return the texts in some columns, trimmed.

    RAISES (ValueError): for a bad one, or equal ones of a triplet, which may have several
        negatives.
    """
    members = [check_cell(text, name, path, line) for text, name in zip(texts, names, strict=True)]
    if len(members) >= _TRIPLET and len(set(members)) < len(members):
        same = [name for name, text in zip(names, members, strict=True) if members.count(text) > 1]
        raise ValueError(
            f"{path}, line {line}: the members {' and '.join(same)} of a triplet are equal, so "
            "there is nothing to tell apart. Remove the line."
        )
    return tuple(members)


def check_score(
    value: object, low: float, high: float, path: Path, line: int, column: str
) -> float:
    """Return a score scaled from low..high to 0..1.

    RAISES (ValueError): if it is not a number from low to high.
    """
    score = as_number(value)
    # Also refuses nan
    if not low <= score <= high:
        raise ValueError(
            f"{path}, line {line}: expected a score from {low:g} to {high:g}, got '{value}' in the "
            f"column '{column}'. Repair the line, or set min_score and max_score for a table of "
            "another range: options of a command that has them (--max-score 5), or settings of the "
            "config's corpus (--corpora.train.max_score 5 of train)."
        )
    return (score - low) / (high - low)


def check_scores(value: object, path: Path, line: int, column: str) -> list[float]:
    """Return a list of numbers; in .csv and .tsv it is written as JSON.

    RAISES (ValueError): if it is none.
    """
    scores: list[float] = []
    with suppress(TypeError, ValueError):
        if isinstance(value, str):
            value = json.loads(value)
        scores = [as_number(number) for number in cast(Any, value)]
    if not scores or any(map(math.isnan, scores)):
        raise ValueError(
            f"{path}, line {line}: expected numbers such as [0.9, 0.4] in the column '{column}', "
            f"got {short_repr(value)}. Repair the line."
        )
    return scores
