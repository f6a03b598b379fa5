"""What ranks change in a pipeline while they train it together: what an update is, and who evaluates."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from spacy.language import Language
from spacy.training import Example
from thinc.api import Model

from .errors import Errors
from .parameters import bytes_of, share_drawn, sum_gradients
from .peers import ALONE
from .pipe import PairPipe
from .ranks import Ranks


@contextmanager
def together(nlp: Language, ranks: Ranks) -> Iterator[None]:
    """While ranks train a pipeline: each update takes a batch, learns from the rank's part of it, and sums gradients.

    The gradient of the encoders is then that of the whole batch, on all ranks; that of heads is so already, as each
    rank computes the loss of the whole batch. Rank 0 evaluates for all.

    nlp (Language): initialised, of the same config, files and seed on all ranks.
    RAISES (ValueError): if it has other components to train than `sbert` pipes and what they hear, or other weights
        than on another rank. Updates raise it for a batch without an example for each rank, or that is another batch
        than on another rank.
    """
    if ranks.size == 1:
        yield
        return
    config = nlp.config["training"]
    pipes, upstream = _trained(nlp, config["frozen_components"], ranks.size)
    if config["accumulate_gradient"] != 1:
        raise ValueError(Errors.RANKS_AND_PARTS.format(given=config["accumulate_gradient"], size=ranks.size))
    encoders = [*upstream, *(pipe.model.get_ref("encoder") for pipe in pipes)]
    everything = [*upstream, *(pipe.model for pipe in pipes)]
    share_drawn(everything, ranks)
    check = partial(_check_weights, everything, ranks)
    check(0)
    step = _Steps(nlp.update, ranks, pipes, encoders, config["seed"])
    changed = {"update": step, "evaluate": partial(_evaluate, nlp.evaluate, ranks, lambda: check(step.done))}
    for name, method in changed.items():
        setattr(nlp, name, method)
    for pipe in pipes:
        pipe.peers = ranks
    try:
        yield
    finally:
        for name in changed:
            delattr(nlp, name)
        for pipe in pipes:
            pipe.peers = ALONE


class _Steps:
    """Updates, in place of those of one process."""

    def __init__(
        self, update: Callable, ranks: Ranks, pipes: list[PairPipe], encoders: Sequence[Model], seed: int | None
    ):
        self._update, self._ranks, self._pipes, self._encoders, self._seed = update, ranks, pipes, encoders, seed
        self.done = 0

    def __call__(self, examples: Sequence[Example], *args: Any, **kwargs: Any) -> dict[str, float]:
        batch = list(examples)
        if not self._ranks.agree(_content(batch)):
            raise ValueError(Errors.UNLIKE_BATCHES.format(step=self.done, seed=self._seed))
        for pipe in self._pipes:
            _check_parts(batch, pipe, self._ranks.size)
            pipe.examples_seen += len(batch)
        with self._ranks.sharing(batch) as own:
            losses = self._update(own, *args, **kwargs)
        for pipe in self._pipes:
            pipe.examples_seen -= len(own)  # which it has counted itself
        sum_gradients(self._encoders, self._ranks)
        self.done += 1
        return losses


def _trained(nlp: Language, frozen: Sequence[str], size: int) -> tuple[list[PairPipe], list[Model]]:
    """The `sbert` pipes that learn, and the models of the components that they hear."""
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


def _check_weights(models: Sequence[Model], ranks: Ranks, step: int) -> None:
    if not ranks.agree(bytes_of(models)):
        raise ValueError(Errors.UNLIKE_WEIGHTS.format(step=step))


def _content(batch: Sequence[Example]) -> Iterator[bytes]:
    """What tells a batch from others: its texts."""
    return (f"{example.reference.text}\0".encode("utf8", "surrogatepass") for example in batch)


def _evaluate(
    evaluate: Callable, ranks: Ranks, check: Callable[[], None], examples: Any, **kwargs: Any
) -> dict[str, Any]:
    """The scores that rank 0 finds, on all; the others do not read the examples."""
    check()
    if not ranks.is_first:
        return ranks.said_by_first(None)
    state = random.getstate()  # a reader that shuffles must not leave the other ranks behind
    scores = evaluate(examples, **kwargs)
    random.setstate(state)
    return ranks.said_by_first(scores)
