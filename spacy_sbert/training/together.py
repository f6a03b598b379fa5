"""Updates and evaluation of a pipeline that several ranks train together."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.training import Example
from thinc.api import Model

from .errors import Errors
from .parameters import bytes_of, share_drawn, sum_gradients
from .peers import ALONE
from .pipe import PairPipe
from .ranks import Ranks


class JointTraining:
    """Updates and evaluations of a pipeline by all ranks; with one rank, those of the pipeline itself.

    Each update takes a batch, learns from the rank's part of it, and sums the gradients of the encoders, which are then
    those of the whole batch on all ranks. Those of heads are so already, as each rank computes the loss of the whole
    batch. Rank 0 evaluates for all.

    nlp (Language): initialised, of the same config, files and seed on all ranks.
    RAISES (ValueError): if it has other components to train than `sbert` pipes and what they listen to, or other
        weights than on another rank.
    """

    def __init__(self, nlp: Language, ranks: Ranks):
        self._nlp, self._ranks = nlp, ranks
        self.pipes: list[PairPipe] = []
        self._done = 0
        if ranks.size == 1:
            return
        config = nlp.config["training"]
        self.pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
        if config["accumulate_gradient"] != 1:
            raise ValueError(Errors.RANKS_AND_PARTS.format(given=config["accumulate_gradient"], size=ranks.size))
        self._encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in self.pipes)]
        self._models = [*upstream, *(pipe.model for pipe in self.pipes)]
        share_drawn(self._models, ranks)
        self._check_weights()

    def update(self, examples: Sequence[Example], **settings: Any) -> dict[str, float]:
        """Learn from a batch, the same on all ranks; settings are those of Language.update.

        RAISES (ValueError): if the batch has no example for some rank, or is another one than on another rank.
        """
        if self._ranks.size == 1:
            return self._nlp.update(examples, **settings)
        batch = list(examples)
        if not self._ranks.agree(_content(batch)):
            seed = self._nlp.config["training"]["seed"]
            raise ValueError(Errors.UNLIKE_BATCHES.format(step=self._done, seed=seed))
        for pipe in self.pipes:
            _check_parts(batch, pipe, self._ranks.size)
            pipe.examples_seen += len(batch)
        with self._ranks.sharing(batch) as own:
            losses = self._nlp.update(own, **settings)
        for pipe in self.pipes:
            pipe.examples_seen -= len(own)  # which it has counted itself
        sum_gradients(self._encoders, self._ranks)
        self._done += 1
        return losses

    def evaluate(self, evaluate: Callable[[], Any]) -> Any:
        """Return what rank 0 finds by a function, as JSON has it, on all ranks; the others do not call it.

        RAISES (ValueError): if the ranks have other weights by now.
        """
        if self._ranks.size == 1:
            return evaluate()
        self._check_weights()
        if not self._ranks.is_first:
            return self._ranks.said_by_first(None)
        state = random.getstate()  # a reader that shuffles must not leave the other ranks behind
        scores = evaluate()
        random.setstate(state)
        return self._ranks.said_by_first(scores)

    def _check_weights(self) -> None:
        if not self._ranks.agree(bytes_of(self._models)):
            raise ValueError(Errors.UNLIKE_WEIGHTS.format(step=self._done))


@contextmanager
def together(nlp: Language, ranks: Ranks) -> Iterator[JointTraining]:
    """Let the `sbert` pipes of a pipeline compute the loss of the batches of all ranks; see JointTraining."""
    joint = JointTraining(nlp, ranks)
    for pipe in joint.pipes:
        pipe.peers = ranks
    try:
        yield joint
    finally:
        for pipe in joint.pipes:
            pipe.peers = ALONE


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[PairPipe], list[Model]]:
    """Return the `sbert` pipes that learn, and the models of the components that they listen to."""
    learning: dict[str, object] = {
        name: pipe for name, pipe in nlp.pipeline if name not in frozen and getattr(pipe, "is_trainable", False)
    }
    pipes = {name: pipe for name, pipe in learning.items() if isinstance(pipe, PairPipe) and pipe.takes_peers}
    upstream = {}
    for name, pipe in learning.items():
        heard_by = [other for other in getattr(pipe, "listening_components", ()) if other in learning]
        if heard_by and all(other in pipes for other in heard_by):
            upstream[name] = pipe.model  # type: ignore[attr-defined]
    others = learning.keys() - pipes.keys() - upstream.keys()
    if others:
        raise ValueError(Errors.RANKS_OF_OTHERS.format(size=size, given=", ".join(sorted(others))))
    if not pipes:
        raise ValueError(Errors.RANKS_WITHOUT_SBERT.format(size=size, given=", ".join(nlp.pipe_names) or "none"))
    return [*pipes.values()], [*upstream.values()]


def _check_parts(batch: Sequence[Example], pipe: PairPipe, size: int) -> None:
    """All ranks refuse a batch of which one has no part."""
    for rank in range(size):
        if not any(pipe.learns_from(example) for example in batch[rank::size]):
            given = {"name": pipe.name, "key": pipe.spans_key, "given": len(batch)}
            raise ValueError(Errors.RANKS_ABOVE_BATCH.format(size=size, rank=rank, **given))


def _content(batch: Sequence[Example]) -> Iterator[bytes]:
    """What tells a batch from others: its texts."""
    return (f"{example.reference.text}\0".encode("utf8", "surrogatepass") for example in batch)
