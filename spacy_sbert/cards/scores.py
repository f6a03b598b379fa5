"""The scores of a card, and their names on the Hugging Face hub."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from huggingface_hub import EvalResult

from ..render.markup import clean
from .errors import Errors
from .facts import PipelineFacts


class Measure(NamedTuple):
    """A measure of sentence vectors. label: in tables. task, metric: on the hub, as sentence-transformers has them."""

    label: str
    task: str
    metric: str


MEASURES = {
    "sts_spearman": Measure("Spearman correlation of cosine and gold score", "Semantic Similarity", "Spearman Cosine"),
    "sts_pearson": Measure("Pearson correlation of cosine and gold score", "Semantic Similarity", "Pearson Cosine"),
    "pair_ap": Measure("Average precision of cosine on labelled pairs", "Binary Classification", "Cosine Ap"),
    "nli_acc": Measure("Accuracy of the label of a pair", "Natural Language Inference", "Accuracy"),
    "triplet_acc": Measure("Accuracy of triplets, Euclidean", "Triplet", "Euclidean Accuracy"),
    "knn_acc": Measure("Accuracy of the nearest text's label, cosine", "Text Classification", "Cosine Knn Accuracy"),
}


def score_rows(facts: PipelineFacts) -> list[tuple[str, str, str]]:
    """Label, key in meta.json and value x 100 of every score, including those of other components."""
    rows = []
    for key, value in facts.scores.items():
        measure, of = _measure(key)
        label = ", ".join(filter(None, (MEASURES[measure].label, of))) if measure else key
        rows.append((label, key, f"{100 * value:.2f}"))
    return rows


def eval_results(facts: PipelineFacts) -> Iterator[EvalResult]:
    """The scores of sentence vectors as the hub's model-index has them, from 0 to 1."""
    dataset = scored_on(facts) or "Unknown"
    for key, value in facts.scores.items():
        measure, of = _measure(key)
        if measure:
            _, task, metric = MEASURES[measure]
            name = clean(f"{dataset}, {of}" if of else dataset)
            yield EvalResult(
                task_type=_slug(task, "-"),
                task_name=task,
                dataset_type=_slug(name, "-"),
                dataset_name=name,
                metric_type=_slug(metric, "_"),
                metric_name=metric,
                metric_value=value,
            )


def is_of_vectors(key: str) -> bool:
    """Whether a key of meta.json is a score of sentence vectors, not of another component."""
    return bool(_measure(key)[0])


def scored_on(facts: PipelineFacts) -> str:
    """The files that were scored."""
    return ", ".join(corpus.file for corpus in facts.corpora if corpus.role.split(", ")[0] == "dev")


def _measure(key: str) -> tuple[str, str]:
    """The measure that a key of meta.json is of, and the corpus or pipe it is for; two empty texts for other keys."""
    for measure in MEASURES:
        if found := re.fullmatch(rf"(?:(.+)_)?{measure}(?:_(.+))?", key):
            return measure, found[1] or found[2] or ""
    return "", ""


def _slug(text: str, joint: str) -> str:
    return re.sub(r"[\W_]+", joint, text.lower()).strip(joint)


def of_pipe(facts: PipelineFacts, pipe: str) -> PipelineFacts:
    """Return the facts of one pipe: its encoder and its scores.

    RAISES (ValueError): if the pipe makes no sentence vectors.
    """
    encoders = tuple(encoder for encoder in facts.encoders if encoder.pipe == pipe)
    if not encoders:
        given = ", ".join(encoder.pipe for encoder in facts.encoders)
        raise ValueError(Errors.CARD_NO_PIPE.format(name=pipe, given=given))
    others = [encoder.pipe for encoder in facts.encoders if encoder.pipe != pipe]
    scores = {key: value for key, value in facts.scores.items() if is_of_vectors(key)}
    if pipe == facts.answering:
        own = {key: value for key, value in scores.items() if not key.startswith(tuple(f"{name}_" for name in others))}
    else:  # scores of a pipe that does not answer `doc.vector` begin with its name
        prefix = f"{pipe}_"
        own = {key.removeprefix(prefix): value for key, value in scores.items() if key.startswith(prefix)}
    return replace(facts, encoders=encoders, scores=own)
