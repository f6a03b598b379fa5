"""Evaluation of a pipeline on labelled examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example

from ..errors import Warnings, warn
from ..progress import progress_of
from ..readers import PairCorpus
from ..training.gold import MEASURES, GoldFacts, listed_labels

_UNDEFINED = {
    "sts_spearman": "all similarities are alike",
    "sts_pearson": "all similarities are alike",
    "nli_acc": "the pipeline has no head for labels, such as training with "
    "spacy-sbert.SoftmaxLoss.v1 gives it",
    "knn_acc": "no pipe gives vectors to single texts",
}


def evaluate(
    nlp: Language, path: str | Path, *, progress: bool = False, **reader: Any
) -> dict[str, Any]:
    """Score a pipeline with an `sbert` pipe on pairs, triplets or labelled texts.

    Pairs have scores or labels. spaCy's own `evaluate` makes new Docs and drops their members; this
    one keeps them.

    nlp (Language): the pipeline.
    path (str or Path): the examples, see PairCorpus. progress (bool): whether to show progress
        bars.
    reader: settings of PairCorpus, such as format.
    RETURNS (dict): pairs, the number of examples, and what the pipeline's scorers report of them,
        see pipeline.scorer.score_pairs: sts_spearman and sts_pearson, from -1 to 1; pair_ap,
        pair_acc, pair_f1 and more of pairs with scores of 0 and 1; nli_acc, triplet_acc and
        knn_acc, from 0 to 1; None if not defined. Of a scorer of the user's own, also the numbers
        that it gives.
    RAISES (ValueError): if the file is not what PairCorpus reads, or no pipe scores pairs.

    Example:
        scores = evaluate(nlp, "pairs-dev.csv")
        scores["sts_spearman"]

    """
    return evaluate_with_reasons(nlp, path, progress=progress, **reader)[0]


def evaluate_with_reasons(
    nlp: Language,
    path: str | Path,
    *,
    progress: bool = False,
    **reader: Any,
) -> tuple[dict[str, Any], list[str]]:
    """Score a pipeline, see evaluate, and find out why scores are not defined.

    RETURNS (dict, list[str]): what evaluate returns; the reasons, of gold that the file has, or of
        the whole file if it has none.
    """
    pipes = _scoring_pipes(nlp)
    for pipe in pipes:
        if pipe.set_hooks:
            reader["spans_key"] = pipe.spans_key
    corpus = PairCorpus(path, **reader)
    examples = _encoded_examples(nlp, corpus, progress=progress)
    scores = _measures(nlp, pipes, examples)
    gold = GoldFacts()
    for example in examples:
        gold.add(example.reference, corpus.spans_key)
    if scores.get("knn_acc") is not None:
        gold.warn_of_single_labels()
    undefined = {**_UNDEFINED, **gold.undefined()}
    if scores["nli_acc"] is not None:
        reason = _unknown_labels(nlp, path, gold)
        if reason is not None:
            scores["nli_acc"] = None
            undefined["nli_acc"] = reason
    missing = [name for name, score in scores.items() if score is None]
    reasons = gold.relevant({name: undefined[name] for name in missing if name in undefined})
    if not reasons and len(missing) == len(scores):
        reasons = ["its examples have no gold: no scores, no labels, no triplets"]
    return {"pairs": len(examples), **scores}, reasons


def _scoring_pipes(nlp: Language) -> list[Any]:
    return [
        pipe
        for _, pipe in nlp.pipeline
        if hasattr(pipe, "set_hooks") and hasattr(pipe, "spans_key")
    ]


def _encoded_examples(nlp: Language, corpus: PairCorpus, *, progress: bool) -> list[Example]:
    """Return the examples with predicted Docs that the pipeline has processed.

    As nlp.evaluate does, but with progress bars.
    """
    bar: dict[str, Any] = {"unit": "examples", "shown": progress}
    examples = list(progress_of(corpus(nlp), desc="Reading", **bar))
    docs = nlp.pipe(example.predicted for example in examples)
    docs = progress_of(docs, total=len(examples), desc="Encoding", **bar)
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    return examples


def _measures(
    nlp: Language, pipes: Sequence[Any], examples: list[Example]
) -> dict[str, float | None]:
    """Return the scores of this package, and those of a user's own scorer in place of its own."""
    found = Scorer(nlp=nlp).score(examples)
    scores: dict[str, float | None] = {}
    for name in MEASURES:
        score = found.get(name)
        scores[name] = None if score is None else float(score)
    if "sts_spearman" in found:
        return scores
    custom = {}
    for pipe in pipes:
        for name, score in pipe.score(examples).items():
            if score is None or isinstance(score, int | float):
                custom[name] = score
    if not custom:
        raise ValueError(
            "The pipeline has no 'sbert' pipe that scores pairs; its pipes are "
            f'{nlp.pipe_names}. Add one: nlp.add_pipe("sbert").'
        )
    return scores | custom


def _unknown_labels(nlp: Language, path: str | Path, gold: GoldFacts) -> str | None:
    """Return the reason if the pipeline knows none of the labels of pairs.

    Warn if it knows some of them.
    """
    known: set[str] = set()
    for _, pipe in nlp.pipeline:
        if hasattr(pipe, "spans_key"):
            known.update(getattr(pipe, "labels", ()))
    unknown = [label for label in gold.pair_labels if label not in known]
    if not known or not unknown:
        return None
    given = listed_labels(unknown)
    expected = listed_labels(sorted(known))
    if len(unknown) == len(gold.pair_labels):
        return f"the labels of the pairs are {given}, and the pipeline has none of them: {expected}"
    count = sum(gold.pair_labels[label] for label in unknown)
    message = Warnings.UNKNOWN_EVALUATE_LABELS.format(
        path=path, count=count, given=given, known=expected
    )
    warn(message)
    return None
