"""Evaluation of a pipeline on labelled examples."""

import warnings
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example

from ..errors import Warnings
from ..progress import progress_of
from ..readers import MEASURES, GoldFacts, PairCorpus, listed_labels

_OTHER_LABELS = "the labels of the pairs are {given}, and the pipeline has none of them: {known}"
_MODEL_REASONS = {
    "sts_spearman": "all similarities are alike",
    "sts_pearson": "all similarities are alike",
    "nli_acc": "the pipeline has no head for labels, such as training with spacy-sbert.SoftmaxLoss.v1 gives it",
    "knn_acc": "no pipe gives vectors to single texts",
}


@runtime_checkable
class _AnswersForDocs(Protocol):
    """A pipe that may answer `doc.vector`, such as `sbert`; the members of pairs stand under its spans_key."""

    set_hooks: bool
    spans_key: str


def evaluate(nlp: Language, path: str | Path, *, progress: bool = False, **reader: Any) -> dict[str, Any]:  # noqa: ANN401 (settings)
    """Score a pipeline with an `sbert` pipe on graded pairs, labelled pairs, triplets or labelled texts.

    spaCy's own `evaluate` makes the Docs anew and drops their members; this one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): the examples, see PairCorpus. progress (bool): whether to show progress bars.
    reader: settings of PairCorpus, such as format.
    RETURNS (dict): pairs, the number of examples, and what the pipeline's scorers report of them: sts_spearman and
        sts_pearson, from -1 to 1, pair_ap, nli_acc, triplet_acc and knn_acc, from 0 to 1; None where not defined. Of a
        scorer of the user's own, also the numbers that it gives.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.
    """
    return evaluate_with_reasons(nlp, path, progress=progress, **reader)[0]


def evaluate_with_reasons(
    nlp: Language,
    path: str | Path,
    *,
    progress: bool = False,
    **reader: Any,  # noqa: ANN401 (settings of PairCorpus)
) -> tuple[dict[str, Any], list[str]]:
    """Score a pipeline, see evaluate, and find out why scores are not defined.

    RETURNS (dict, list[str]): what evaluate returns; the reasons, of gold that the file has, or of the whole file if it
        has none.
    """
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, _AnswersForDocs) and pipe.set_hooks:
            reader["spans_key"] = pipe.spans_key
    corpus = PairCorpus(path, **reader)
    examples = list(progress_of(corpus(nlp), desc="Reading", unit="examples", shown=progress))
    # as nlp.evaluate does, which cannot tell how far it is
    docs = progress_of(
        nlp.pipe(example.predicted for example in examples),
        total=len(examples),
        desc="Encoding",
        unit="examples",
        shown=progress,
    )
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    scores = Scorer(nlp=nlp).score(examples)
    custom = {} if "sts_spearman" in scores else _custom_scores(nlp, examples)
    if "sts_spearman" not in scores and not custom:
        raise ValueError(
            f"The pipeline has no 'sbert' pipe that scores pairs; its pipes are {nlp.pipe_names}. Add one: "
            'nlp.add_pipe("sbert").'
        )
    measured = {key: None if (score := scores.get(key)) is None else float(score) for key in MEASURES} | custom
    gold = GoldFacts()
    for example in examples:
        gold.add(example.reference, corpus.spans_key)
    undefined = {**_MODEL_REASONS, **gold.undefined()}
    if measured["nli_acc"] is not None and (reason := _other_labels(nlp, path, gold)):
        measured["nli_acc"], undefined["nli_acc"] = None, reason
    reasons = gold.relevant(
        {key: undefined[key] for key, score in measured.items() if score is None and key in undefined}
    )
    if not reasons and not any(score is not None for score in measured.values()):
        reasons = ["its examples have no gold: no scores, no labels, no triplets"]
    return {"pairs": len(examples), **measured}, reasons


def _custom_scores(nlp: Language, examples: list[Example]) -> dict[str, float | None]:
    """Return the numbers that a scorer of the user's own gives, in place of that of this package."""
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, _AnswersForDocs)]
    scores = {key: score for pipe in pipes for key, score in pipe.score(examples).items()}
    return {key: score for key, score in scores.items() if score is None or isinstance(score, int | float)}


def _other_labels(nlp: Language, path: str | Path, gold: GoldFacts) -> str | None:
    """Return the reason if the pipeline knows none of the labels of pairs; warn if it knows some of them."""
    known = {label for _, pipe in nlp.pipeline if hasattr(pipe, "spans_key") for label in getattr(pipe, "labels", ())}
    unknown = [label for label in gold.pair_labels if label not in known]
    labels = {"given": listed_labels(unknown), "known": listed_labels(sorted(known))}
    if not known or not unknown:
        return None
    if len(unknown) == len(gold.pair_labels):
        return _OTHER_LABELS.format(**labels)
    count = sum(gold.pair_labels[label] for label in unknown)
    warnings.warn(Warnings.UNKNOWN_EVALUATE_LABELS.format(path=path, count=count, **labels), stacklevel=3)
    return None
