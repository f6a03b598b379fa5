"""What `spacy train` and `python -m spacy sbert evaluate` report."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from scipy.stats import pearsonr, spearmanr
from spacy.training import Example
from spacy.util import registry

from . import records
from .errors import Errors
from .pairs import gold_value
from .similarity import cosine
from .spans import SPANS_KEY, members

Scores = dict[str, float | None]


@registry.scorers("spacy-sbert.sts_scorer.v1")
def make_sts_scorer() -> Callable[..., Scores]:
    """Correlation of cosine similarities with gold scores, see score_sts."""
    return score_sts


def score_sts(
    examples: Iterable[Example], *, name: str | None = None, spans_key: str = SPANS_KEY, **kwargs: Any
) -> Scores:
    """Spearman and Pearson correlation between the cosine of each pair and its gold score.

    examples (Iterable[Example]): those whose predicted Doc has two members and stored vectors count.
    name (str): the pipe whose vectors are compared; by default the one that answers `doc.vector`.
    spans_key (str): where the members stand, doc.spans[spans_key].
    RETURNS (dict): sts_spearman and sts_pearson, from -1 to 1; None where they are not defined: fewer than two pairs,
        or all similarities or all gold scores alike.
    RAISES (ValueError): if a pair has no gold score, its members are no rows, or its similarity is not finite.
    SOURCE: Reimers and Gurevych 2019, section 4 (Spearman; Reimers et al. 2016 argue against Pearson).
    """
    predicted, gold = [], []
    for example in examples:
        if len(members(example.predicted, spans_key)) == 2:
            predicted.append(_similarity(example, name, spans_key))
            gold.append(gold_value(example, "score", spans_key))
    if len(gold) < 2 or numpy.ptp(predicted) == 0 or numpy.ptp(gold) == 0:
        return {"sts_spearman": None, "sts_pearson": None}
    return {
        "sts_spearman": float(spearmanr(predicted, gold)[0]),
        "sts_pearson": float(pearsonr(predicted, gold)[0]),
    }


def _similarity(example: Example, name: str | None, spans_key: str) -> float:
    doc = example.predicted
    found = records.find(doc, name)
    if not found:
        raise ValueError(Errors.NO_VECTORS.format(kind="Doc", which=f" of a pipe named '{name}'" if name else ""))
    rows = []
    for span in members(doc, spans_key):
        row = next((r for r in (f.row_at(*records.trimmed(span)) for f in found) if r is not None), None)
        if row is None:
            expected = [(s.start_char, s.end_char) for s in members(doc, spans_key)]
            given = [tuple(row) for f in found for row in f.rows.tolist()]
            message = Errors.WRONG_ROWS.format(text=doc.text[:50], given=given, expected=expected, key=spans_key)
            raise ValueError(message)
        rows.append(row)
    similarity = float(cosine(rows[0][None], rows[1][None])[0])
    if not numpy.isfinite(similarity):
        raise ValueError(Errors.NOT_FINITE.format(text=doc.text[:50]))
    return similarity
