"""Training objectives of a cross-encoder."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from spacy.training import Example
from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..errors import Errors
from ..losses._common import cross_entropy, mean_square
from ..models.heads import sigmoid
from ..training.examples import labels_of, scores_of
from ..validation import SCORE_RANGE
from .cross_encoder import CrossEncoder
from .shim import ACTIVATIONS


def _binary_cross_entropy(logits: Floats2d, gold: Floats1d) -> tuple[float, Floats2d]:
    """Return the binary cross-entropy of the sigmoid of the one output.

    loss = -1/n sum_i (y_i log sigmoid(s_i) + (1 - y_i) log(1 - sigmoid(s_i)))

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    RETURNS (float, float (n, 1)): the loss, and its derivative by s.
    """
    xp = get_array_module(logits)
    scores = xp.asarray(logits)[:, 0]
    losses = xp.logaddexp(xp.zeros_like(scores), scores) - gold * scores
    return float(losses.mean()), ((sigmoid(scores) - gold) / len(gold))[:, None]


def _mean_squared_error(logits: Floats2d, gold: Floats1d, activation: str = "identity") -> tuple[float, Floats2d]:
    """Return the mean squared error of the score of the one output.

    loss = 1/n sum_i (f(s_i) - y_i)^2

    logits (float (n, 1)): s. gold (float (n,)): y, from 0 to 1.
    activation (str): f: "identity", the linear output, or "sigmoid", whose derivative is f(s) (1 - f(s)).
    RETURNS (float, float (n, 1)): the loss, and its derivative by s.
    SOURCE: Devlin et al. 2019, section 4.1, on the STS benchmark (identity); Reimers and Gurevych 2019, section 3,
        regression by mean squared error.
    """
    scores = ACTIVATIONS[activation](logits)[:, 0]
    errors = scores - gold
    slopes = scores * (1 - scores) if activation == "sigmoid" else 1.0
    return mean_square(errors), (2 * errors * slopes / len(gold))[:, None]


def _label_cross_entropy(logits: Floats2d, targets: Ints1d) -> tuple[float, Floats2d]:
    """Return the cross-entropy of the softmax of the outputs.

    loss = -1/n sum_i log softmax(s_i)[y_i]

    logits (float (n, labels)): s. targets (int (n,)): y, the index of each label.
    RETURNS (float, float (n, labels)): the loss, and its derivative by s.
    """
    losses, d_logits = cross_entropy(logits, targets)
    return float(losses.mean()), d_logits / len(targets)


_Loss = tuple[float, Floats2d]


@dataclass(frozen=True)
class Objective:
    """Training objective of a reranker.

    name: in the config. labels_of: from pairs and the spans key to the labels that outputs are made for.
    n_outputs: from labels, and how many outputs there are, to how many there have to be.
    loss: from the cross-encoder, its logits, examples and the spans key to the loss and its gradient by the logits.
    """

    name: str
    labels_of: Callable[[Iterable[Example], str], list[str]]
    n_outputs: Callable[[Sequence[str], int], int]
    loss: Callable[[CrossEncoder, Floats2d, list[Example], str], _Loss]


def _one_output(name: str, labels: Sequence[str], current: int) -> int:
    if labels:
        raise ValueError(
            f'Labels were given ({", ".join(labels)}), but the objective "{name}" learns scores. Set objective '
            '= "classification", or leave the labels out.'
        )
    return 1


def _learns_scores(name: str, loss: Callable[[CrossEncoder, Floats2d, Floats1d], _Loss]) -> Objective:
    """loss: from the cross-encoder, its logits and gold scores to the loss and its gradient by the logits."""

    def of_examples(model: CrossEncoder, logits: Floats2d, examples: list[Example], spans_key: str) -> _Loss:
        if logits.shape[1] != 1:
            raise ValueError(Errors.RERANKER_NOT_INITIALIZED.format(objective=name, given=logits.shape[1]))
        return loss(model, logits, scores_of(examples, model.ops, spans_key, SCORE_RANGE))

    return Objective(name, lambda pairs, key: [], partial(_one_output, name), of_examples)


def _found_labels(examples: Iterable[Example], spans_key: str) -> list[str]:
    return sorted(set(labels_of(list(examples), spans_key)))


def _output_a_label(labels: Sequence[str], current: int) -> int:
    if len(labels) == 1:
        raise ValueError(Errors.SINGLE_CLASS.format(loss="classification", given=labels[0]))
    return len(labels) or current  # no labels: nlp.initialize() without a corpus


def _classification_loss(model: CrossEncoder, logits: Floats2d, examples: list[Example], spans_key: str) -> _Loss:
    if logits.shape[1] == 1:
        raise ValueError(Errors.RERANKER_NOT_INITIALIZED.format(objective="classification", given=1))
    index = {label: i for i, label in enumerate(model.shim.labels)}
    gold = labels_of(examples, spans_key)
    for label in gold:
        if label not in index:
            raise ValueError(
                f"The label '{label}' is unknown to the reranker, which has outputs for {', '.join(index)}. "
                "Correct the example, or initialize the pipe with all labels, from the examples or from "
                "[initialize.components.sbert_reranker] labels."
            )
    return _label_cross_entropy(logits, model.ops.asarray1i([index[label] for label in gold]))


OBJECTIVES = {
    each.name: each
    for each in (
        _learns_scores("regression", lambda model, logits, gold: _binary_cross_entropy(logits, gold)),
        _learns_scores(
            "squared_error", lambda model, logits, gold: _mean_squared_error(logits, gold, model.activation)
        ),
        Objective("classification", _found_labels, _output_a_label, _classification_loss),
    )
}
