"""Evaluation of a pipeline on a file of examples."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language

from ..errors.checks import validated
from ..readers import PairCorpus
from .errors import Errors

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc")


@runtime_checkable
class AnswersForDocs(Protocol):
    """A pipe that may answer `doc.vector`, such as `sbert`; the members of pairs stand under its spans_key."""

    set_hooks: bool
    spans_key: str


@validated
def evaluate(nlp: Language, path: str | Path, **reader: Any) -> dict[str, Any]:
    """Score a pipeline with an `sbert` pipe on graded pairs, labelled pairs or triplets.

    spaCy's own `evaluate` makes the Docs anew and drops their members; this one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): the examples, see PairCorpus.
    reader: settings of PairCorpus, such as format.
    RETURNS (dict): pairs, the number of examples, and what the pipeline's scorers report of them: sts_spearman and
        sts_pearson, from -1 to 1, pair_ap, nli_acc and triplet_acc, from 0 to 1; None where not defined.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.
    """
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, AnswersForDocs) and pipe.set_hooks:
            reader["spans_key"] = pipe.spans_key
    examples = list(PairCorpus(path, **reader)(nlp))
    scores = nlp.evaluate(examples)
    if "sts_spearman" not in scores:
        raise ValueError(Errors.NO_SCORES.format(pipes=nlp.pipe_names))
    return {"pairs": len(examples), **{key: scores.get(key) for key in MEASURES}}
