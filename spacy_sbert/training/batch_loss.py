"""Loss and gradients of a batch of examples."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from spacy.training import Example, validate_examples
from thinc.api import Model, Ops
from thinc.types import Floats2d

from ..errors import Errors
from ..losses._common import LossLayer, check_outputs
from ..models.encoded_docs import EncodedDoc
from ..models.spans import members
from ..validation import Name
from .examples import (
    SINGLE_PROCESS,
    DistributedContext,
    MemberVectors,
    batch_size_of,
    gold_values,
    labels_of,
    low_scored_pair,
    objective_of,
)

Labels = list[Name] | dict[str, list[Name]]


@dataclass(frozen=True)
class BatchLoss:
    """The losses of a batch and their gradient.

    by_objective: the loss of each objective that had examples, in parts of the whole batch where it is accumulated.
    gradients: float32, of the shape of each Doc's vectors.
    is_part: the whole-batch objectives that saw but a part of their batch.
    knows_batch: whether the batcher noted the size of the whole batch on every example.
    unlike: the loss that took a pair of low score as one that belongs together, the pair's text and its score.
    """

    by_objective: dict[str, float]
    gradients: list[Floats2d]
    is_part: list[str]
    knows_batch: bool
    unlike: tuple[str, str, float] | None = None


def objectives_of(loss: Model) -> dict[str, LossLayer]:
    """The named objectives in a loss layer; of a single one the name is empty."""
    names = loss.attrs.get("objectives")
    found = {"": loss} if names is None else dict(zip(names, loss.layers, strict=True))
    return cast(dict[str, LossLayer], found)


def needs_labels(loss: Model) -> bool:
    """Whether an objective learns from labels, all of which it must know before."""
    return any(layer.gold == "label" for layer in objectives_of(loss).values())


def needs_width(loss: Model) -> bool:
    """Whether an objective has parameters of its own, whose shapes depend on the width of the vectors, or labels."""
    return needs_labels(loss) or any(node.param_names for node in loss.walk())


def batch_loss(
    loss: Model,
    ops: Ops,
    examples: Sequence[Example],
    scores: Sequence[EncodedDoc],
    spans_key: str,
    factor: float,
    peers: DistributedContext = SINGLE_PROCESS,
) -> BatchLoss:
    """Compute the loss of every objective that has examples in a batch.

    loss (Model): a loss layer.
    examples (Sequence[Example]): the batch; members stand on the predicted Docs, gold values on the references.
    scores (Sequence[EncodedDoc]): what the encoder made of the predicted Docs.
    factor (float): on values and gradients.
    peers (Peers): who has the other examples of the batch. The values are then of the whole batch, the gradients of the
        own Docs.
    RAISES (ValueError): if an example is not what its objective takes.
    """
    found = MemberVectors(ops, examples, scores, spans_key, peers)
    values: dict[str, float] = {}
    is_part, knows_batch, unlike = [], True, None
    for name, chosen in _by_objective(loss, found.batch, spans_key).items():
        layer, group = objectives_of(loss)[name], [found.batch[i] for i in chosen]
        n_members = _count_members(group, layer, spans_key)
        places = [found.places(chosen, member) for member in range(n_members)]
        gold = gold_values(group, layer.gold, ops, spans_key, score_range=layer.score_range)
        low = low_scored_pair(group, layer.gold, spans_key)
        unlike = (layer.name, *low) if low else unlike
        inputs = ([found.vectors[place] for place in places], gold)
        share = len(chosen) / batch_size_of(group[0], spans_key, default=len(chosen))
        if share < 1 and layer.whole_batch:
            is_part.append(layer.name)
            if len(chosen) == 1:
                continue  # spaCy's parts may be as small as that; there is nothing to compare it with
        if layer.is_sum:
            share = 1.0  # parts of a sum add up by themselves
        knows_batch &= all(batch_size_of(example, spans_key, default=0) for example in group)
        value, backprop = loss({name: inputs} if name else inputs, True)
        d_loss = backprop(factor * share)
        own_value, d_members = (value[name], d_loss[name]) if name else (value, d_loss)
        check_outputs(layer, inputs[0], own_value, d_members)
        values[name] = own_value * factor * share
        if not math.isfinite(values[name]):
            raise ValueError(Errors.LOSS_NOT_FINITE.format(loss=layer.name, text=group[0].reference.text[:50]))
        for place, d_member in zip(places, d_members, strict=True):
            found.gradient[place] = d_member
    return BatchLoss(values, found.of_docs(), is_part, knows_batch, unlike)


def initialize_objectives(
    loss: Model, ops: Ops, width: int, examples: Sequence[Example], spans_key: str, labels: Labels | None
) -> None:
    """Give every head its width and its labels, and every projection the width of its teacher.

    width (int): of the vectors.
    examples (Sequence[Example]): where labels are taken from, if they are not given, and the teacher's vectors.
    labels: of the only objective, or of each by its name.
    RAISES (ValueError): if an objective that learns from labels has fewer than two.
    """
    objectives = objectives_of(loss)
    if isinstance(labels, dict) and not labels.keys() <= objectives.keys():
        expected = ", ".join(objectives) or "none, but a list of labels"
        raise ValueError(
            f"[initialize.components.sbert] labels names the objectives {', '.join(labels)}, expected some of: "
            f"{expected}. Give a single objective a list of labels, and those of spacy-sbert.MultiTaskLoss.v1 "
            "a list each, by their names."
        )
    for name, layer in objectives.items():
        own = [
            example
            for example in examples
            if members(example.predicted, spans_key) and ("" in objectives or objective_of(example, spans_key) == name)
        ]
        inputs = [ops.alloc2f(1, width)] * layer.n_members[0]
        if layer.gold == "label":
            given = labels.get(name) if isinstance(labels, dict) else labels
            found = sorted(set(labels_of(own, spans_key) if given is None else given))
            if len(found) == 1:
                raise ValueError(Errors.SINGLE_CLASS.format(loss=layer.name, given=found[0]))
            if found:  # none: nlp.initialize() without a corpus
                layer.initialize(X=(inputs, found))
        elif own and (layer.gold == "vector" or any(node.param_names for node in layer.walk())):
            layer.initialize(X=(inputs, gold_values(own[:1], layer.gold, ops, spans_key)))


def _by_objective(loss: Model, examples: Sequence[Example], spans_key: str) -> dict[str, list[int]]:
    """The examples of each objective, by their place in the batch."""
    names = objectives_of(loss)
    chosen: dict[str, list[int]] = {}
    for i, example in enumerate(examples):
        if not members(example.predicted, spans_key):
            continue
        name = "" if "" in names else objective_of(example, spans_key)
        if name not in names:
            text = example.reference.text[:50]
            raise ValueError(
                f"The example '{text}' is of the objective '{name}', but the loss spacy-sbert.MultiTaskLoss.v1 "
                f"has {', '.join(names)}. Give the corpora in spacy-sbert.MultiCorpus.v1 the names of the "
                "objectives in [components.sbert.loss]."
            )
        chosen.setdefault(name, []).append(i)
    return chosen


def _count_members(examples: Sequence[Example], layer: LossLayer, spans_key: str) -> int:
    """How many members the examples have: one number for all, and one that the loss takes."""
    expected = layer.n_members
    counts = [len(members(example.predicted, spans_key)) for example in examples]
    for example, count in zip(examples, counts, strict=True):
        if count not in expected or count != counts[0]:
            also = counts[0] if counts[0] in expected else " or ".join(map(str, expected))
            text = example.predicted.text[:50]
            raise ValueError(
                f"The example '{text}' has {count} members in doc.spans['{spans_key}'], but the loss "
                f"'{layer.name}' takes {also} in this batch. Make one Doc an example, with one Span a "
                "member; all examples of an objective have as many."
            )
    return counts[0]


Scores = dict[str, float | None]


class PairPipe:
    """A pipe whose examples stand in doc.spans[spans_key].

    scorer (Callable): what to report of pairs; None for nothing.
    examples_seen (int), loss_seen (float): in training, for reporting speed, and the sum of the loss.
    takes_peers (bool): whether it can learn from a batch of which other processes have a part.
    peers (Peers): in training, those processes.
    """

    name: str
    model: Model
    spans_key: str
    scorer: Callable[..., Scores] | None
    examples_seen = 0
    loss_seen = 0.0
    takes_peers = False
    peers: DistributedContext = SINGLE_PROCESS

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:
        """Score the pairs among the examples with the pipe's scorer.

        RETURNS (dict): the scores; under the pipe's name if another pipe answers `doc.vector`.
        RAISES (ValueError): if the scorer returns no dict, or raises a KeyError, which spaCy would report as E900.
        """
        if self.scorer is None:
            return {}
        examples = self._scored(list(examples))
        try:
            scores = self.scorer(examples, name=self.name, spans_key=self.spans_key, **kwargs)
        except KeyError as error:
            raise ValueError(
                f"The scorer of the pipe '{self.name}' looked up {error}, and there is no such key. Members "
                f"are in example.predicted.spans['{self.spans_key}'], gold values in "
                f"example.reference.spans['{self.spans_key}'].attrs under 'score', 'label' and 'objective': "
                "see docs/own-loss.md."
            ) from error
        if not isinstance(scores, dict):
            raise ValueError(
                f"The scorer of the pipe '{self.name}' returned {type(scores).__name__}. Expected a dict of "
                "scores by name, such as {'my_accuracy': 0.5}, with the names in [training.score_weights]."
            )
        return scores if self._answers(examples) else {f"{self.name}_{key}": value for key, value in scores.items()}

    def learns_from(self, example: Example) -> bool:
        """Whether an example has members."""
        return bool(members(example.predicted, self.spans_key))

    def _found_members(self, examples: Iterable[Example]) -> str:
        """Return where else members are, if no predicted Doc has them, for a message."""
        on_reference = any(members(example.reference, self.spans_key) for example in examples)
        return " (example.reference has them: make the predicted Doc by reference.copy())" if on_reference else ""

    def _scored(self, examples: list[Example]) -> list[Example]:
        """The examples that are scored."""
        return examples

    def _answers(self, examples: list[Example]) -> bool:
        """Whether scores without a name are those of this pipe."""
        raise NotImplementedError

    def _received(
        self, examples: Iterable[Example], losses: dict[str, float] | None
    ) -> tuple[list[Example], dict[str, float]]:
        """The examples of an update, checked and counted, and where its losses are noted."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        self.examples_seen += len(examples)
        return examples, losses
