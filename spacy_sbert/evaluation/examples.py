"""Evaluation of a pipeline on a file of examples."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language
from spacy.scorer import Scorer

from ..errors.checks import validated
from ..errors.progress import progress_of
from ..readers import PairCorpus
from .errors import Errors

MEASURES = ("sts_spearman", "sts_pearson", "pair_ap", "nli_acc", "triplet_acc")


@runtime_checkable
class AnswersForDocs(Protocol):
    """A pipe that may answer `doc.vector`, such as `sbert`; the members of pairs stand under its spans_key."""

    set_hooks: bool
    spans_key: str


@validated
def evaluate(nlp: Language, path: str | Path, *, progress: bool = False, **reader: Any) -> dict[str, Any]:
    """Score a pipeline with an `sbert` pipe on graded pairs, labelled pairs or triplets.

    spaCy's own `evaluate` makes the Docs anew and drops their members; this one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): the examples, see PairCorpus. progress (bool): whether to show progress bars.
    reader: settings of PairCorpus, such as format.
    RETURNS (dict): pairs, the number of examples, and what the pipeline's scorers report of them: sts_spearman and
        sts_pearson, from -1 to 1, pair_ap, nli_acc and triplet_acc, from 0 to 1; None where not defined.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.
    """
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, AnswersForDocs) and pipe.set_hooks:
            reader["spans_key"] = pipe.spans_key
    read = PairCorpus(path, **reader)(nlp)
    examples = list(progress_of(read, desc="Reading", unit="examples", shown=progress))
    # As nlp.evaluate does, which cannot tell how far it is.
    docs = nlp.pipe(example.predicted for example in examples)
    shown = progress_of(docs, total=len(examples), desc="Encoding", unit="examples", shown=progress)
    for example, doc in zip(examples, shown, strict=True):
        example.predicted = doc
    scores = Scorer(nlp=nlp).score(examples)
    if "sts_spearman" not in scores:
        raise ValueError(Errors.NO_SCORES.format(pipes=nlp.pipe_names))
    found = {key: scores.get(key) for key in MEASURES}
    return {"pairs": len(examples), **{key: None if score is None else float(score) for key, score in found.items()}}
