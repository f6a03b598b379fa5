"""Loss and gradients of a batch of examples."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy
from spacy.training import Example, validate_examples
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ints1d

from ..losses._common import LossLayer, check_outputs, objectives_of
from ..models.encoded_docs import EncodedDoc
from ..models.spans import members, row_order
from ..validation import Name
from .examples import attribute, batch_size_of, check_rows, gold_values, labels_of, objective_of

LOSS_NOT_FINITE = (
    "The loss '{loss}' is not finite in the batch that begins with '{text}': training has diverged. Lower "
    "the learning rate, clip the gradient, or use float32 or bfloat16 in place of float16."
)

SINGLE_CLASS = (
    "The loss '{loss}' learns to tell labels apart, but all examples have the same: {given}. Train on data "
    "with two labels or more, or give all of them in [initialize.components.sbert] labels, if the first "
    "examples do not show them."
)

Labels = list[Name] | dict[str, list[Name]]
Scores = dict[str, float | None]
_LOW_SCORE = 0.5  # of 0 to 1


@dataclass(frozen=True)
class BatchLoss:
    """The losses of a batch and their gradient.

    by_objective: the loss of each objective that had examples; of a part of a batch, its share.
    gradients: float32, of the shape of each Doc's vectors.
    is_part: the whole-batch objectives that only saw a part of their batch.
    knows_batch: whether the batcher noted the size of the whole batch on every example.
    unlike: the loss that took a pair of low score as one that belongs together, the pair's text and its score.
    """

    by_objective: dict[str, float]
    gradients: list[Floats2d]
    is_part: list[str]
    knows_batch: bool
    unlike: tuple[str, str, float] | None = None


class DistributedContext:
    """The processes that train together: here this one alone. See spacy_sbert.distributed.TorchDistributed."""

    def batch(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return all examples of a batch, of which this process has encoded these."""
        return examples

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the vectors of all examples of a batch, example by example.

        vectors (float32 (rows, width)): of this process. counts: how many rows each example of the batch has.
        """
        return vectors

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """Return the rows of this process: the backprop of gather."""
        return d_vectors


def needs_labels(loss: Model) -> bool:
    """Return whether an objective learns from labels, all of which it must know in advance."""
    return any(layer.gold == "label" for layer in objectives_of(loss).values())


def needs_width(loss: Model) -> bool:
    """Return whether an objective needs labels, or has parameters whose shapes depend on the width of the vectors."""
    return needs_labels(loss) or any(node.param_names for node in loss.walk())


def batch_loss(
    loss: Model,
    ops: Ops,
    examples: Sequence[Example],
    scores: Sequence[EncodedDoc],
    spans_key: str,
    factor: float,
    peers: DistributedContext | None = None,
) -> BatchLoss:
    """Compute the loss of every objective that has examples in a batch.

    loss (Model): a loss layer.
    examples (Sequence[Example]): the batch; members are on the predicted Docs, gold values on the references.
    scores (Sequence[EncodedDoc]): the encoded predicted Docs.
    factor (float): on values and gradients.
    peers (DistributedContext): the processes that have the other examples of the batch, None for this one alone. The
        values are those of the whole batch, the gradients those of this process's Docs.
    RAISES (ValueError): if an example does not fit its objective.
    """
    batch = _MemberVectors(ops, examples, scores, spans_key, peers or DistributedContext())
    values: dict[str, float] = {}
    is_part, knows_batch, unlike = [], True, None
    for name, chosen in _by_objective(loss, batch.examples, spans_key).items():
        layer, group = objectives_of(loss)[name], [batch.examples[i] for i in chosen]
        places = [batch.places(chosen, member) for member in range(_count_members(group, layer, spans_key))]
        gold = gold_values(group, layer.gold, ops, spans_key, score_range=layer.score_range)
        unlike = _low_scored_pair(group, layer, spans_key) or unlike
        share = len(chosen) / batch_size_of(group[0], spans_key, default=len(chosen))
        if share < 1 and layer.whole_batch:
            is_part.append(layer.name)
            if len(chosen) == 1:
                continue  # a single example has no others to compare with
        if layer.is_sum:
            share = 1.0  # the parts of a sum add up
        knows_batch &= all(batch_size_of(example, spans_key, default=0) for example in group)
        inputs = ([batch.vectors[place] for place in places], gold)
        value, backprop = loss({name: inputs} if name else inputs, True)
        d_loss = backprop(factor * share)
        layer_value, d_members = (value[name], d_loss[name]) if name else (value, d_loss)
        check_outputs(layer, inputs[0], layer_value, d_members)
        values[name] = layer_value * factor * share
        if not math.isfinite(values[name]):
            raise ValueError(LOSS_NOT_FINITE.format(loss=layer.name, text=group[0].reference.text[:50]))
        for place, d_member in zip(places, d_members, strict=True):
            batch.gradient[place] = d_member
    return BatchLoss(values, batch.doc_gradients(), is_part, knows_batch, unlike)


class _MemberVectors:
    """The members of all examples of a batch, of which this process has encoded its own.

    examples (Sequence[Example]): all of the batch. vectors: of all members, float32 (members of the batch, width),
        example by example. gradient: of the same shape, zeros at first.
    """

    def __init__(
        self,
        ops: Ops,
        examples: Sequence[Example],
        scores: Sequence[EncodedDoc],
        spans_key: str,
        peers: DistributedContext,
    ):
        rows = [_member_rows(eg, encoded, spans_key) for eg, encoded in zip(examples, scores, strict=True)]
        self._ops, self._peers = ops, peers
        self._borders = [0, *accumulate(len(encoded.vectors) for encoded in scores)]
        flat = ops.xp.concatenate([encoded.vectors for encoded in scores])  # (rows of this process, width)
        starts = zip(self._borders, rows, strict=False)
        self._rows = ops.asarray1i([start + row for start, of_doc in starts for row in of_doc])
        self.examples = peers.batch(examples)
        self._counts = [len(members(example.predicted, spans_key)) for example in self.examples]
        self._starts = [0, *accumulate(self._counts)]
        self.vectors = peers.gather(flat[self._rows], self._counts)
        self.gradient = ops.alloc2f(*self.vectors.shape)

    def places(self, chosen: Sequence[int], member: int) -> Ints1d:
        """Return the rows of a member. chosen: the numbers of the examples in the batch. member: its number."""
        return self._ops.asarray1i([self._starts[i] + member for i in chosen])

    def doc_gradients(self) -> list[Floats2d]:
        """Return the gradient of the rows of each Doc of this process, zeros for rows that are no members."""
        d_flat = self._ops.alloc2f(self._borders[-1], self.vectors.shape[1])
        d_flat[self._rows] = self._peers.own(self.gradient, self._counts)
        return [d_flat[start:end] for start, end in pairwise(self._borders)]


def _member_rows(example: Example, encoded: EncodedDoc, spans_key: str) -> list[int]:
    """Return the row of each member of an example, in the order of the members.

    RAISES (ValueError): if the rows are not the members, or a member has no text.
    """
    doc, rows = example.predicted, encoded.rows
    spans, order = members(doc, spans_key), []
    has_text = [bool(span.text.strip()) for span in spans]
    if spans and all(has_text):
        bounds = [(start, end) for start, end in rows.spans.tolist()]
        check_rows("windows that overlap" if rows.foreign else bounds, doc, spans_key)
        order = row_order(spans)
        has_text = [bool(rows.has_text[row]) for row in order]
    if not all(has_text):
        raise ValueError(
            f"The example '{doc.text[:50]}' has an empty member (number {has_text.index(False) + 1}) in "
            f"doc.spans['{spans_key}'], which has no vector to learn from. Remove the example."
        )
    return order


def _low_scored_pair(examples: Sequence[Example], layer: LossLayer, spans_key: str) -> tuple[str, str, float] | None:
    """Return the loss, and the texts and the score of a pair of low score that it takes as alike; None if none is."""
    for example in examples if layer.gold in ("text", None) else ():
        score, pair = attribute(example.reference, "score", spans_key), members(example.predicted, spans_key)
        if len(pair) == 2 and isinstance(score, int | float | numpy.number) and score < _LOW_SCORE:
            return layer.name, " / ".join(span.text[:50] for span in pair), float(score)
    return None


def initialize_objectives(
    loss: Model, ops: Ops, width: int, examples: Sequence[Example], spans_key: str, labels: Labels | None
) -> None:
    """Initialize every classifier for its width and labels, and every projection for the width of its teacher.

    width (int): of the vectors.
    examples (Sequence[Example]): with the teacher's vectors, and the labels if none are given.
    labels: of the only objective, or of each by its name.
    RAISES (ValueError): if an objective that learns from labels has fewer than two.
    """
    objectives = objectives_of(loss)
    if isinstance(labels, dict) and not labels.keys() <= objectives.keys():
        expected = ", ".join(objectives) or "none, but a list of labels"
        raise ValueError(
            f"[initialize.components.sbert] labels names the objectives {', '.join(labels)}, expected some of: "
            f"{expected}. Give a single objective a list of labels, and those of spacy-sbert.MultiTaskLoss.v1 a list "
            "each, by their names."
        )
    examples = [example for example in examples if members(example.predicted, spans_key)]
    for name, layer in objectives.items():
        group = [example for example in examples if not name or objective_of(example, spans_key) == name]
        inputs = [ops.alloc2f(1, width)] * layer.n_members[0]
        if layer.gold == "label":
            of_layer = labels.get(name) if isinstance(labels, dict) else labels
            known = sorted(set(labels_of(group, spans_key) if of_layer is None else of_layer))
            if len(known) == 1:
                raise ValueError(SINGLE_CLASS.format(loss=layer.name, given=known[0]))
            if known:  # none: nlp.initialize() without a corpus
                layer.initialize(X=(inputs, known))
        elif group and (layer.gold == "vector" or any(node.param_names for node in layer.walk())):
            layer.initialize(X=(inputs, gold_values(group[:1], layer.gold, ops, spans_key)))


def _by_objective(loss: Model, examples: Sequence[Example], spans_key: str) -> dict[str, list[int]]:
    """Return the numbers in the batch of the examples of each objective."""
    names = objectives_of(loss)
    chosen: dict[str, list[int]] = {}
    for i, example in enumerate(examples):
        if not members(example.predicted, spans_key):
            continue
        name = "" if "" in names else objective_of(example, spans_key)
        if name not in names:
            raise ValueError(
                f"The example '{example.reference.text[:50]}' is of the objective '{name}', but the loss "
                f"spacy-sbert.MultiTaskLoss.v1 has {', '.join(names)}. Give the corpora in spacy-sbert.MultiCorpus.v1 "
                "the names of the objectives in [components.sbert.loss]."
            )
        chosen.setdefault(name, []).append(i)
    return chosen


def _count_members(examples: Sequence[Example], layer: LossLayer, spans_key: str) -> int:
    """Return how many members the examples have: the same number in all, and one that the loss takes."""
    counts = [len(members(example.predicted, spans_key)) for example in examples]
    for example, count in zip(examples, counts, strict=True):
        if count not in layer.n_members or count != counts[0]:
            expected = counts[0] if counts[0] in layer.n_members else " or ".join(map(str, layer.n_members))
            raise ValueError(
                f"The example '{example.predicted.text[:50]}' has {count} members in doc.spans['{spans_key}'], but the "
                f"loss '{layer.name}' takes {expected} in this batch. Make one Doc an example, with one Span a member; "
                "all examples of an objective have as many."
            )
    return counts[0]


def score_pairs(pipe: Any, examples: list[Example], *, is_default: bool, **kwargs: object) -> Scores:  # noqa: ANN401 (a pipe of this package)
    """Score the pairs among the examples with the pipe's scorer.

    is_default (bool): whether scores without the pipe's name are this pipe's, see SentenceBert.set_hooks.
    RETURNS (dict): the scores; under the pipe's name if they are not the default ones.
    RAISES (ValueError): if the scorer returns no dict, or raises a KeyError, which spaCy would report as E900.
    """
    if pipe.scorer is None:
        return {}
    try:
        scores = pipe.scorer(examples, name=pipe.name, spans_key=pipe.spans_key, **kwargs)
    except KeyError as error:
        raise ValueError(
            f"The scorer of the pipe '{pipe.name}' looked up {error}, and there is no such key. Members are in "
            f"example.predicted.spans['{pipe.spans_key}'], gold values in example.reference.spans['{pipe.spans_key}']"
            ".attrs under 'score', 'label' and 'objective': see docs/own-loss.md."
        ) from error
    if not isinstance(scores, dict):
        raise ValueError(
            f"The scorer of the pipe '{pipe.name}' returned {type(scores).__name__}. Expected a dict of scores by "
            "name, such as {'my_accuracy': 0.5}, with the names in [training.score_weights]."
        )
    return scores if is_default else {f"{pipe.name}_{key}": value for key, value in scores.items()}


class PairPipe:
    """Base of a pipe whose examples are in doc.spans[spans_key].

    scorer (Callable): computes the scores of pairs; None for none.
    examples_seen (int), loss_seen (float): in training, the number of examples, and the sum of the loss.
    """

    name: str
    model: Model
    spans_key: str
    scorer: Callable[..., Scores] | None
    examples_seen = 0
    loss_seen = 0.0

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:
        """Score the pairs among the examples with the pipe's scorer, see score_pairs."""
        examples = self._scored(list(examples))
        return score_pairs(self, examples, is_default=self._answers(examples), **kwargs)

    def _scored(self, examples: list[Example]) -> list[Example]:
        """Return the examples that are scored."""
        raise NotImplementedError

    def _answers(self, examples: list[Example]) -> bool:
        """Return whether scores without a name are those of this pipe."""
        raise NotImplementedError

    def _received(
        self, examples: Iterable[Example], losses: dict[str, float] | None
    ) -> tuple[list[Example], dict[str, float]]:
        """Check and count the examples of an update, and add the pipe to its losses."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        self.examples_seen += len(examples)
        return examples, losses

    def _found_members(self, examples: Iterable[Example]) -> str:
        """Return where members are that no predicted Doc has, for a message."""
        on_reference = any(members(example.reference, self.spans_key) for example in examples)
        return " (example.reference has them: make the predicted Doc by reference.copy())" if on_reference else ""
