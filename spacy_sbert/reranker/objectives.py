"""The objectives of a reranker: the score of a pair, by either of two losses, or its label."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from spacy.training import Example
from thinc.types import Floats1d, Floats2d

from ..errors.checks import SCORE_RANGE
from ..training.members import labels_of, scores_of
from .cross_encoder import CrossEncoder
from .errors import Errors
from .losses import binary_cross_entropy, label_cross_entropy, mean_squared_error

Loss = tuple[float, Floats2d]


@dataclass(frozen=True)
class Objective:
    """What a reranker learns.

    name: in the config. labels_of: from pairs and the spans key to the labels that outputs are made for.
    n_outputs: from labels, and how many outputs there are, to how many there have to be.
    loss: from the cross-encoder, its logits, examples and the spans key to the loss and its gradient by the logits.
    """

    name: str
    labels_of: Callable[[Iterable[Example], str], list[str]]
    n_outputs: Callable[[Sequence[str], int], int]
    loss: Callable[[CrossEncoder, Floats2d, list[Example], str], Loss]


def _one_output(name: str, labels: Sequence[str], there: int) -> int:
    if labels:
        raise ValueError(Errors.RERANKER_LABELS_OF_SCORES.format(given=", ".join(labels), objective=name))
    return 1


def _learns_scores(name: str, loss: Callable[[CrossEncoder, Floats2d, Floats1d], Loss]) -> Objective:
    """loss: from the cross-encoder, its logits and gold scores to the loss and its gradient by the logits."""

    def of_examples(model: CrossEncoder, logits: Floats2d, examples: list[Example], spans_key: str) -> Loss:
        if logits.shape[1] != 1:
            raise ValueError(Errors.RERANKER_NOT_INITIALIZED.format(objective=name, given=logits.shape[1]))
        return loss(model, logits, scores_of(examples, model.ops, spans_key, SCORE_RANGE))

    return Objective(name, lambda pairs, key: [], partial(_one_output, name), of_examples)


def _found_labels(examples: Iterable[Example], spans_key: str) -> list[str]:
    return sorted(set(labels_of(list(examples), spans_key)))


def _output_a_label(labels: Sequence[str], there: int) -> int:
    if len(labels) == 1:
        raise ValueError(Errors.SINGLE_CLASS.format(loss="classification", given=labels[0]))
    return len(labels) or there  # none: nlp.initialize() without a corpus


def _classification_loss(model: CrossEncoder, logits: Floats2d, examples: list[Example], spans_key: str) -> Loss:
    if logits.shape[1] == 1:
        raise ValueError(Errors.RERANKER_NOT_INITIALIZED.format(objective="classification", given=1))
    index = {label: i for i, label in enumerate(model.shim.labels)}
    gold = labels_of(examples, spans_key)
    for label in gold:
        if label not in index:
            raise ValueError(Errors.RERANKER_UNKNOWN_LABEL.format(given=label, known=", ".join(index)))
    return label_cross_entropy(logits, model.ops.asarray1i([index[label] for label in gold]))


OBJECTIVES = {
    each.name: each
    for each in (
        _learns_scores("regression", lambda model, logits, gold: binary_cross_entropy(logits, gold)),
        _learns_scores("squared_error", lambda model, logits, gold: mean_squared_error(logits, gold, model.activation)),
        Objective("classification", _found_labels, _output_a_label, _classification_loss),
    )
}
