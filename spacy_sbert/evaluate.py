"""Evaluation of a pipeline on a file of graded pairs."""

from pathlib import Path
from typing import Any

from spacy.language import Language

from .component import SentenceBert
from .errors import Errors
from .readers import PairCorpus
from .spans import SPANS_KEY


def evaluate(nlp: Language, path: str | Path) -> dict[str, Any]:
    """Score a pipeline with an `sbert` pipe on graded pairs.

    spaCy's own `evaluate` makes the Docs anew and drops their members; this one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): pairs, see PairCorpus.
    RETURNS (dict): pairs, the number of pairs, and what the pipeline's scorers report: sts_spearman and sts_pearson,
        from -1 to 1, None where not defined.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.
    """
    keys = [pipe.spans_key for _, pipe in nlp.pipeline if isinstance(pipe, SentenceBert) and pipe.set_hooks]
    examples = list(PairCorpus(path, spans_key=keys[-1] if keys else SPANS_KEY)(nlp))
    scores = nlp.evaluate(examples)
    if "sts_spearman" not in scores:
        raise ValueError(Errors.NO_SCORES.format(pipes=nlp.pipe_names))
    return {"pairs": len(examples), **{key: scores[key] for key in ("sts_spearman", "sts_pearson")}}
