"""Loss and gradients of a batch of examples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy
from spacy.training import Example
from thinc.api import Model, Ops
from thinc.types import Floats1d, Floats2d, Ints1d

from ..errors import DivergedError, warn
from ..losses._common import LossLayer, objectives_of
from ..models.encoded_docs import EncodedDoc
from ..models.spans import members, row_order
from ..validation import Name
from .examples import (
    OBJECTIVE,
    attribute,
    check_one_text,
    check_rows,
    labels_of,
    lost_members_warning,
    scores_of,
    teacher_numbers,
)

LOSS_NOT_FINITE = (
    "The loss '{loss}' is not finite in the batch that begins with '{text}': training has "
    "diverged. Lower the learning rate, clip the gradient, or use float32 or bfloat16 in place of "
    "float16."
)
SINGLE_CLASS = (
    "The loss '{loss}' learns to tell labels apart, but all examples have the same: {given}. Train "
    "on data with two labels or more, or give all of them in [initialize.components.sbert] labels."
)

Labels = list[Name] | dict[str, list[Name]]
Scores = dict[str, float | None]
_Gold = Floats1d | Floats2d | list[str] | list[list[str]] | None
# Of 0 to 1
_LOW_SCORE = 0.5


@dataclass(frozen=True)
class BatchLoss:
    """The losses of a batch and their gradient.

    by_objective: the loss of each objective that had examples; of a part of a batch, its share.
    gradients: float32, of the shape of each Doc's vectors.
    is_part: the whole-batch objectives that only saw a part. knows_batch: whether the batcher noted
        the batch's size.
    unlike: the loss that took a pair of low score as one that belongs together, the pair's text and
        its score.
    """

    by_objective: dict[str, float]
    gradients: list[Floats2d]
    is_part: list[str]
    knows_batch: bool
    unlike: tuple[str, str, float] | None = None


def needs_labels(loss: Model) -> bool:
    """Return whether an objective learns from labels, all of which it must know in advance."""
    return any(layer.gold == "label" for layer in objectives_of(loss).values())


def needs_width(loss: Model) -> bool:
    """Return whether an objective needs labels, or the width of vectors for its parameters."""
    return needs_labels(loss) or _has_parameters(loss)


def _has_parameters(loss: Model) -> bool:
    """Return whether a loss learns itself, such as the projection to a teacher's width."""
    return any(node.param_names for node in loss.walk())


def batch_loss(
    loss: Model,
    ops: Ops,
    examples: Sequence[Example],
    scores: Sequence[EncodedDoc],
    spans_key: str,
    factor: float,
    peers: Any = None,
) -> BatchLoss:
    """Compute the loss of every objective that has examples in a batch.

    scores: the encoded predicted Docs. factor: on values and gradients.
    peers (TorchDistributed): the processes that have the other examples of the batch; the values
        are those of all, the gradients those of this process's Docs.
    """
    batch = _MemberVectors(ops, examples, scores, spans_key, peers)
    layers = objectives_of(loss)
    values: dict[str, float] = {}
    is_part: list[str] = []
    knows_batch = True
    unlike = None
    for name, chosen in _by_objective(loss, batch.examples, spans_key).items():
        layer = layers[name]
        group = [batch.examples[i] for i in chosen]
        vectors = batch.members(chosen, _count_members(group, layer, spans_key))
        gold = _gold_values(group, layer, ops, spans_key)
        unlike = _low_scored_pair(group, layer, spans_key) or unlike
        share, is_known = _share_of_batch(group, spans_key)
        knows_batch = knows_batch and is_known
        if share < 1 and layer.whole_batch:
            is_part.append(layer.name)
            if len(group) == 1:
                # A single example has no others to compare with
                continue
        if layer.is_sum:
            # The parts of a sum add up
            share = 1.0
        value, d_vectors = _loss_and_gradients(loss, name, (vectors, gold), factor * share)
        layer.check_outputs(vectors, value, d_vectors)
        values[name] = value * factor * share
        if not math.isfinite(values[name]):
            raise DivergedError(
                LOSS_NOT_FINITE.format(loss=layer.name, text=group[0].reference.text[:50])
            )
        batch.set_gradients(chosen, d_vectors)
    return BatchLoss(values, batch.doc_gradients(), is_part, knows_batch, unlike)


def _share_of_batch(group: Sequence[Example], spans_key: str) -> tuple[float, bool]:
    """Return which fraction of their batch the examples of an objective are.

    1 if the size of the batch is not known: the batcher notes it on each example.
    RETURNS (float, bool): the fraction, and whether each example has the size.
    """
    sizes = [attribute(example.reference, "batch_size", spans_key) for example in group]
    size = cast(int, sizes[0] or len(group))
    return len(group) / size, None not in sizes


def _loss_and_gradients(
    loss: Model, name: str, inputs: tuple[list[Floats2d], _Gold], factor: float
) -> tuple[Any, Any]:
    """Return the loss of an objective, and the gradients by its members, times the factor."""
    if not name:
        value, backprop = loss(inputs, True)
        return value, backprop(factor)
    by_objective, backprop = loss({name: inputs}, True)
    return by_objective[name], backprop(factor)[name]


class _MemberVectors:
    """The members of all examples of a batch.

    vectors: float32 (members, width). gradient: of the same shape, zeros at first.
    """

    def __init__(
        self,
        ops: Ops,
        examples: Sequence[Example],
        scores: Sequence[EncodedDoc],
        spans_key: str,
        peers: Any,
    ):
        self._ops = ops
        self._peers = peers
        # Where the vectors of each Doc of this process begin among those of all
        self._borders = [0, *accumulate(len(encoded.vectors) for encoded in scores)]
        rows: list[int] = []
        for start, example, encoded in zip(self._borders, examples, scores, strict=False):
            rows += [start + row for row in _member_rows(example, encoded, spans_key)]
        self._rows = ops.asarray1i(rows)
        own = ops.xp.concatenate([encoded.vectors for encoded in scores])[self._rows]
        self.examples: Sequence[Example] = examples if peers is None else peers.batch
        self._counts = [len(members(example.predicted, spans_key)) for example in self.examples]
        self._starts = [0, *accumulate(self._counts)]
        self.vectors: Floats2d = own
        if peers is not None:
            self.vectors = peers.gather(own, self._counts)
        self.gradient = ops.alloc2f(*self.vectors.shape)

    def members(self, chosen: Sequence[int], n_members: int) -> list[Floats2d]:
        """Return the vectors of the chosen examples, float32 (examples, width) of each member."""
        return [self.vectors[self._rows_of(chosen, member)] for member in range(n_members)]

    def set_gradients(self, chosen: Sequence[int], d_members: Sequence[Floats2d]) -> None:
        """Set the gradient of what `members` returned."""
        for member, d_member in enumerate(d_members):
            self.gradient[self._rows_of(chosen, member)] = d_member

    def _rows_of(self, chosen: Sequence[int], member: int) -> Ints1d:
        return self._ops.asarray1i([self._starts[i] + member for i in chosen])

    def doc_gradients(self) -> list[Floats2d]:
        """Return the gradient of the vectors of each Doc of this process.

        It is zero for vectors that are no members.
        """
        own = self.gradient
        if self._peers is not None:
            own = self._peers.own(own, self._counts)
        d_flat = self._ops.alloc2f(self._borders[-1], self.vectors.shape[1])
        d_flat[self._rows] = own
        return [d_flat[start:end] for start, end in pairwise(self._borders)]


def _member_rows(example: Example, encoded: EncodedDoc, spans_key: str) -> list[int]:
    """Return the row of each member of an example.

    Raise ValueError if rows are not the members, or one has no text.
    """
    doc = example.predicted
    rows = encoded.rows
    spans = members(doc, spans_key)
    if not spans:
        return []
    has_text = [bool(span.text.strip()) for span in spans]
    if all(has_text):
        given: str | list[tuple[int, int]] = "windows that overlap"
        if not rows.has_merged:
            given = [(start, end) for start, end in rows.spans.tolist()]
        check_rows(given, doc, spans_key)
    order = row_order(spans)
    for i, row in enumerate(order):
        if not has_text[i] or not rows.has_text[row]:
            raise ValueError(
                f"The example '{doc.text[:50]}' has an empty member (number {i + 1}) in "
                f"doc.spans['{spans_key}'], which has no vector to learn from. Remove the example."
            )
    return order


def _gold_values(examples: Sequence[Example], layer: LossLayer, ops: Ops, spans_key: str) -> _Gold:
    """Return the gold values that a loss learns from, n or, of texts, n of each member."""
    if layer.gold == "score":
        return scores_of(examples, ops, spans_key, layer.score_range)
    if layer.gold == "label":
        return labels_of(examples, spans_key)
    if layer.gold in ("vector", "scores"):
        return ops.asarray2f(cast(Floats2d, teacher_numbers(examples, layer.gold, spans_key)))
    if layer.gold == "text":
        spans = [members(example.predicted, spans_key) for example in examples]
        return [[span.text for span in of_member] for of_member in zip(*spans, strict=True)]
    return None


def _low_scored_pair(
    examples: Sequence[Example], layer: LossLayer, spans_key: str
) -> tuple[str, str, float] | None:
    """Return the loss, and the texts and the score of a pair that it takes as alike.

    None if no pair has a low score.
    """
    if layer.gold not in ("text", None):
        return None
    for example in examples:
        pair = members(example.predicted, spans_key)
        score = attribute(example.reference, "score", spans_key)
        if not isinstance(score, int | float | numpy.number):
            continue
        if len(pair) == 2 and score < _LOW_SCORE:
            return layer.name, " / ".join(span.text[:50] for span in pair), float(score)
    return None


def initialize_objectives(
    loss: Model,
    ops: Ops,
    width: int,
    examples: Sequence[Example],
    spans_key: str,
    labels: Labels | None,
) -> None:
    """Initialize classifiers for their width and labels, and projections for their teacher's width.

    labels: of the only objective, or of each by its name; None for those of the examples.
    """
    objectives = objectives_of(loss)
    given = _labels_by_objective(labels, list(objectives))
    chosen = _by_objective(loss, examples, spans_key)
    for name, layer in objectives.items():
        group = [examples[i] for i in chosen.get(name, ())]
        inputs = [ops.alloc2f(1, width)] * layer.n_members[0]
        if layer.gold == "label":
            known = _known_labels(given.get(name), group, layer, spans_key)
            # There are none in nlp.initialize() without a corpus
            if known:
                layer.initialize(X=(inputs, known))
        elif group and (layer.gold == "vector" or _has_parameters(layer)):
            layer.initialize(X=(inputs, _gold_values(group[:1], layer, ops, spans_key)))


def _labels_by_objective(
    labels: Labels | None, objectives: Sequence[str]
) -> Mapping[str, list[str] | None]:
    """Return the labels that were given, by objective; None for those of the examples.

    RAISES (ValueError): if there is no objective of a name.
    """
    if labels is None:
        return {}
    if isinstance(labels, list):
        return dict.fromkeys(objectives, labels)
    if not set(labels) <= set(objectives):
        raise ValueError(
            f"[initialize.components.sbert] labels names the objectives {', '.join(labels)}, "
            f"expected some of: {', '.join(objectives) or 'none'}. Give each objective a list by "
            "its name, and a single one a list."
        )
    return dict(labels)


def _known_labels(
    given: list[str] | None, examples: Sequence[Example], layer: LossLayer, spans_key: str
) -> list[str]:
    """Return the labels of a classifier: those that were given, or those of the examples.

    RAISES (ValueError): if there is but one.
    """
    if given is None:
        given = labels_of(examples, spans_key)
    known = sorted(set(given))
    if len(known) == 1:
        raise ValueError(SINGLE_CLASS.format(loss=layer.name, given=known[0]))
    return known


def _by_objective(loss: Model, examples: Sequence[Example], spans_key: str) -> dict[str, list[int]]:
    """Return the numbers of the examples of each objective."""
    known = objectives_of(loss)
    is_single = "" in known
    chosen: dict[str, list[int]] = {}
    for i, example in enumerate(examples):
        if not members(example.predicted, spans_key):
            continue
        name = ""
        if not is_single:
            name = cast(str, attribute(example.reference, OBJECTIVE, spans_key) or "")
        if name not in known:
            raise ValueError(
                f"The example '{example.reference.text[:50]}' is of the objective '{name}', but "
                f"the loss has {', '.join(known)}. Name the corpora in spacy-sbert.MultiCorpus.v1 "
                "as the objectives of the loss."
            )
        chosen.setdefault(name, []).append(i)
    return chosen


def _count_members(examples: Sequence[Example], layer: LossLayer, spans_key: str) -> int:
    """Return how many members the examples have.

    RAISES (ValueError): if that differs, or the loss does not take so many.
    """
    first = len(members(examples[0].predicted, spans_key))
    is_taken = first in layer.n_members
    expected = str(first) if is_taken else layer.expected_members
    for example in examples:
        doc = example.predicted
        count = len(members(doc, spans_key))
        if not is_taken or count != first:
            raise ValueError(
                f"The example '{doc.text[:50]}' has {count} members in doc.spans['{spans_key}'], "
                f"but the loss '{layer.name}' takes {expected} in this batch. Make one Span a "
                "member, and as many in every example."
            )
    return first


def score_examples(
    pipe: Any, examples: list[Example], *, is_default: bool, **kwargs: object
) -> Scores:
    """Score the pairs among the examples with the pipe's scorer.

    is_default (bool): whether the scores are named without the pipe's name, see
        SentenceBert.set_hooks.
    """
    if pipe.scorer is None:
        return {}
    check_one_text(examples, pipe.spans_key)
    message = lost_members_warning(examples, pipe.spans_key)
    if message:
        warn(message)
    try:
        scores = pipe.scorer(
            examples, name=pipe.name, spans_key=pipe.spans_key, pipe=pipe, **kwargs
        )
    except KeyError as error:
        # Which spaCy would report as E900
        raise ValueError(
            f"The scorer of the pipe '{pipe.name}' looked up {error}, and there is no such key. "
            f"Gold values are in example.reference.spans['{pipe.spans_key}'].attrs under 'score', "
            "'label' and 'objective'."
        ) from error
    if not isinstance(scores, dict):
        raise ValueError(
            f"The scorer of the pipe '{pipe.name}' returned {type(scores).__name__}. Expected a "
            "dict of scores, such "
            "as {'my_accuracy': 0.5}."
        )
    if is_default:
        return scores
    return {f"{pipe.name}_{key}": value for key, value in scores.items()}
