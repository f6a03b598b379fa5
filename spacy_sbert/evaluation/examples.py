"""Evaluation of a pipeline on a file of examples."""

from pathlib import Path
from typing import Any

from spacy.language import Language

from ..component.sbert import SentenceBert
from ..errors.checks import validated
from ..readers import PairCorpus
from ..spans import SPANS_KEY
from .errors import Errors

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc")


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
    keys = [pipe.spans_key for _, pipe in nlp.pipeline if isinstance(pipe, SentenceBert) and pipe.set_hooks]
    examples = list(PairCorpus(path, spans_key=keys[-1] if keys else SPANS_KEY, **reader)(nlp))
    scores = nlp.evaluate(examples)
    if "sts_spearman" not in scores:
        raise ValueError(Errors.NO_SCORES.format(pipes=nlp.pipe_names))
    return {"pairs": len(examples), **{key: scores.get(key) for key in MEASURES}}
