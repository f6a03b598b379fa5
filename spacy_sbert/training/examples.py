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
from thinc.types import Floats1d, Floats2d

from ..errors import Errors
from ..models.spans import members

OBJECTIVE = "objective"  # in doc.spans[spans_key].attrs: the data set that an example comes from
Reader = Callable[[Language], Iterable[Example]]
Counts = Counter[str | None]  # examples of each objective, by kind_of


def predicted_label(name: str) -> str:
    """Return the name in doc.spans[spans_key].attrs of the label that a pipe predicts, such as "sbert_label"."""
    return f"{name}_label"


def predicted_score(name: str) -> str:
    """Return the name in doc.spans[spans_key].attrs of the score that a pipe predicts, "sbert_reranker_score"."""
    return f"{name}_score"


def check_rows(rows: list[tuple[int, int]] | str, doc: Doc, spans_key: str) -> None:
    """Raise ValueError if the rows that were encoded are not the members of an example.

    rows: start and end token of each, in the order of the text, or a description if they are none.
    """
    expected = sorted((span.start, span.end) for span in members(doc, spans_key))
    if rows != expected:
        raise ValueError(Errors.WRONG_ROWS.format(text=doc.text[:50], given=rows, expected=expected, key=spans_key))


def gold_values(
    examples: Sequence[Example],
    kind: str | None,
    ops: Ops,
    spans_key: str,
    *,
    score_range: tuple[float, float] | None = None,
) -> Floats1d | Floats2d | list[str] | list[list[str]] | None:
    """Return the gold values that a loss learns from, beside the vectors of the members.

    examples (Sequence[Example]): with the same number of members.
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


def scores_of(
    examples: Sequence[Example], ops: Ops, spans_key: str, score_range: tuple[float, float] | None
) -> Floats1d:
    """Return the gold scores, float32 (n,); raise ValueError if one is missing, not finite or out of score_range."""
    scores = [gold_value(example, "score", spans_key) for example in examples]
    low, high = score_range or (-math.inf, math.inf)
    for example, score in zip(examples, scores, strict=True):
        if not low <= score <= high:
            raise ValueError(
                f"The example '{example.reference.text[:50]}' has the gold score {score}: expected one from {low:g} to "
                f"{high:g} in example.reference.spans['{spans_key}'].attrs['score']. Scale it, as "
                "spacy-sbert.PairCorpus.v1 does by min_score and max_score: scores from 0 to 5 are divided by 5."
            )
    return ops.asarray1f(scores)


def gold_value(example: Example, gold: str, spans_key: str) -> float:
    """Return the number in example.reference.spans[spans_key].attrs[gold]; raise ValueError if it is not finite."""
    value = attribute(example.reference, gold, spans_key)
    if not isinstance(value, (int, float, numpy.number)) or not math.isfinite(value):
        raise _no_gold(example, gold, "a finite number", spans_key)
    return float(value)


def labels_of(examples: Sequence[Example], spans_key: str) -> list[str]:
    """Return the gold labels, from example.reference.spans[spans_key].attrs["label"]; raise ValueError for no text."""
    labels = []
    for example in examples:
        label = attribute(example.reference, "label", spans_key)
        if not isinstance(label, str) or not label:
            raise _no_gold(example, "label", "a label", spans_key)
        labels.append(label)
    return labels


def _vector_of(example: Example, spans_key: str) -> numpy.ndarray:
    value = attribute(example.reference, "vector", spans_key)
    vector = numpy.asarray([] if value is None else value, dtype="float32")
    if vector.ndim != 1 or not vector.size or not numpy.isfinite(vector).all():
        raise _no_gold(example, "vector", "a teacher's vector", spans_key)
    return vector


def _no_gold(example: Example, gold: str, kind: str, spans_key: str) -> ValueError:
    place = f"example.reference.spans['{spans_key}'].attrs['{gold}']"
    return ValueError(
        f"The example '{example.reference.text[:50]}' has no gold value '{gold}': expected {kind} in {place}. "
        "spacy-sbert.PairCorpus.v1 and 'python -m spacy sbert convert' set it where the data have it; else choose a "
        "loss for these data."
    )


def objective_of(example: Example, spans_key: str) -> str:
    """Return the name of the objective that an example is for; empty if it has none."""
    return cast(str, attribute(example.reference, OBJECTIVE, spans_key) or "")


def batch_size_of(example: Example, spans_key: str, *, default: int) -> int:
    """Return how many examples of the same objective the whole batch has, as the batcher noted it."""
    return cast(int, attribute(example.reference, "batch_size", spans_key) or default)


def attribute(doc: Doc, name: str, spans_key: str) -> object:
    """Return an attribute of the members of an example; None if it is not set."""
    group = doc.spans.get(spans_key)
    return None if group is None else group.attrs.get(name)


def kind_of(doc: Doc, spans_key: str) -> str | None:
    """Return the objective of an example, "" if it is the only one; None for a Doc without members."""
    group = doc.spans.get(spans_key)
    return None if group is None else cast(str, group.attrs.get(OBJECTIVE, ""))


def count_objectives(corpus: Reader, spans_key: str, nlp: Language | None = None) -> Counts:
    """Return how many examples of each objective, by kind_of, a reader has.

    corpus (Callable): the reader. If it has a method counts(spans_key), that counts, without making all Docs.
    spans_key (str): where the members are stored.
    nlp (Language): the pipeline to read in, None for reading_pipeline().
    """
    if hasattr(corpus, "counts"):
        return corpus.counts(spans_key)
    return Counter(kind_of(example.reference, spans_key) for example in corpus(nlp or reading_pipeline()))


def reading_pipeline() -> Language:
    """Return a pipeline to count examples in: spaCy's own readers have as many in any language."""
    return spacy.blank("xx")
