"""Training examples: the members, gold values and objective of a Doc."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops
from thinc.types import Floats1d

from ..errors import Errors, Warnings
from ..models.spans import members

# In doc.spans[spans_key].attrs: the data set that an example comes from
OBJECTIVE = "objective"
Reader = Callable[[Language], Iterable[Example]]
# Examples of each objective, by kind_of
Counts = Counter[str | None]


def check_rows(rows: list[tuple[int, int]] | str, doc: Doc, spans_key: str) -> None:
    """Raise ValueError if the spans that were encoded are not the members.

    rows: start and end tokens, or what they are.
    """
    expected = sorted((span.start, span.end) for span in members(doc, spans_key))
    if rows != expected:
        raise ValueError(
            Errors.WRONG_ROWS.format(
                text=doc.text[:50], given=rows, expected=expected, key=spans_key
            )
        )


def attribute(doc: Doc, name: str, spans_key: str) -> object:
    """Return an attribute of the members of an example; None if it is not set."""
    group = doc.spans.get(spans_key)
    return None if group is None else group.attrs.get(name)


def kind_of(doc: Doc, spans_key: str) -> str | None:
    """Return the objective of an example, "" if it is the only one.

    None for a Doc without members.
    """
    group = doc.spans.get(spans_key)
    return None if group is None else cast(str, group.attrs.get(OBJECTIVE, ""))


def scores_of(
    examples: Sequence[Example], ops: Ops, spans_key: str, score_range: tuple[float, float] | None
) -> Floats1d:
    """Return the gold scores, float32 (n,).

    Raise ValueError if one is missing, not finite or out of score_range.
    """
    scores = [gold_value(example, "score", spans_key) for example in examples]
    low, high = score_range or (-math.inf, math.inf)
    for example, score in zip(examples, scores, strict=True):
        if not low <= score <= high:
            raise ValueError(
                f"The example '{example.reference.text[:50]}' has the gold score {score}: expected "
                f"one from {low:g} to {high:g}. Scale it, as spacy-sbert.PairCorpus.v1 does by "
                "min_score and max_score."
            )
    return ops.asarray1f(scores)


def gold_value(example: Example, gold: str, spans_key: str) -> float:
    """Return the number in example.reference.spans[spans_key].attrs[gold].

    Raise ValueError if it is not finite.
    """
    value = attribute(example.reference, gold, spans_key)
    if not isinstance(value, (int, float, numpy.number)) or not math.isfinite(value):
        raise _no_gold(example, gold, "a finite number", spans_key)
    return float(value)


def labels_of(examples: Sequence[Example], spans_key: str) -> list[str]:
    """Return the gold labels, from example.reference.spans[spans_key].attrs["label"].

    Raise ValueError for no text.
    """
    labels = [attribute(example.reference, "label", spans_key) for example in examples]
    for example, label in zip(examples, labels, strict=True):
        if not isinstance(label, str) or not label:
            raise _no_gold(example, "label", "a label", spans_key)
    return cast(list[str], labels)


def teacher_numbers(examples: Sequence[Example], gold: str, spans_key: str) -> numpy.ndarray:
    """Return the vectors or scores of a teacher, float32 (n, numbers).

    gold (str): "vector" or "scores".
    Raise ValueError if one is missing or not finite.
    """
    values = [attribute(example.reference, gold, spans_key) for example in examples]
    arrays = [numpy.asarray([] if value is None else value, dtype="float32") for value in values]
    for example, array in zip(examples, arrays, strict=True):
        # As many numbers as the first has, at least one
        is_row = array.ndim == 1 and 0 < array.size == arrays[0].size
        if not is_row or not numpy.isfinite(array).all():
            raise _no_gold(
                example, gold, f"a teacher's {gold}, numbers, as many in each example,", spans_key
            )
    return numpy.stack(arrays)


def _no_gold(example: Example, gold: str, kind: str, spans_key: str) -> ValueError:
    return ValueError(
        f"The example '{example.reference.text[:50]}' has no gold value '{gold}': expected {kind} "
        f"in example.reference.spans['{spans_key}'].attrs['{gold}']. Correct the data, or choose a "
        "loss for them."
    )


def count_objectives(corpus: Reader, spans_key: str, nlp: Language | None = None) -> Counts:
    """Return how many examples of each objective, by kind_of, a reader has.

    It tells by its method counts if it has one.
    """
    if hasattr(corpus, "counts"):
        return corpus.counts(spans_key)
    return Counter(
        kind_of(example.reference, spans_key) for example in corpus(nlp or spacy.blank("xx"))
    )


def check_one_text(examples: Sequence[Example], spans_key: str) -> None:
    """Check that the two Docs of each example with members have one text.

    White space and case may differ, as in the examples of spaCy's own components.

    RAISES (ValueError): if the gold values are those of another text.
    """
    for example in examples:
        texts = (example.predicted.text, example.reference.text)
        if texts[0] == texts[1] or not members(example.predicted, spans_key):
            continue
        predicted, reference = ("".join(text.split()).lower() for text in texts)
        if predicted != reference:
            raise ValueError(Errors.TWO_TEXTS.format(predicted=texts[0][:50], gold=texts[1][:50]))


def lost_members_warning(examples: Sequence[Example], spans_key: str) -> str | None:
    """Return the warning of examples with members on the reference alone; None without any."""
    lost = [
        example
        for example in examples
        if members(example.reference, spans_key) and not members(example.predicted, spans_key)
    ]
    if not lost:
        return None
    return Warnings.MEMBERS_LOST.format(count=len(lost), total=len(examples), key=spans_key)
