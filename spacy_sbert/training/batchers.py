"""Batches of training examples."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from spacy.training import Example
from spacy.util import registry

from ..models.spans import SPANS_KEY
from ..validation import Name, Positive, validated
from .examples import kind_of

Batches = Iterator[list[Example]]
AnyBatcher = Callable[[Iterable[Example]], Iterable[list[Example]]]  # also those of spaCy


@dataclass(frozen=True)
class Batcher:
    """Makes batches of examples, and tells how many there will be.

    size, spans_key: see batch_by_objective. cut: makes the batches.
    count: of how many examples there are of each objective and the size, how many batches these make in any order.
    """

    size: int
    spans_key: str
    cut: Callable[[Iterable[Example], int, str], Batches]
    count: Callable[[Sequence[int], int], int]

    def __call__(self, examples: Iterable[Example]) -> Batches:
        return self.cut(examples, self.size, self.spans_key)


@registry.batchers("spacy-sbert.batch_by_objective.v1")
@validated
def batch_by_objective(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches that hold examples of one objective each, so that in-batch negatives are of one kind.

    Until the next batch is asked for, each example's reference says how large its own is, in
    doc.spans[spans_key].attrs["batch_size"]: with training.accumulate_gradient the parts of a batch then add up to the
    step of the whole one. A single example that is left over joins the batch before it.

    size (int): the examples in a batch.
    spans_key (str): where the members stand. Examples without members (of ner, textcat) make batches of their own.
    RETURNS (Callable): from examples to batches.
    RAISES (ValueError): if size is not a whole number of at least 1.
    """
    return Batcher(size, spans_key, _by_objective, _count_by_objective)


@registry.batchers("spacy-sbert.batch_mixed.v1")
@validated
def batch_mixed(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of examples in the order they come, whatever their objective: every step trains every component.

    size, spans_key, what is returned and what is noted on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    return Batcher(size, spans_key, _mixed, _count_mixed)


@registry.batchers("spacy-sbert.batch_in_turn.v1")
@validated
def batch_in_turn(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of one objective each, one of every objective in turn, until the examples of one are used up.

    Small data sets then count as much as large ones. In memory (max_epochs of 0 or more) each epoch is shuffled anew,
    so that a large one shows other examples in each. A stream should come in turn, too (sampling = "round_robin" of
    spacy-sbert.MultiCorpus.v1): what is ahead of its turn is held.

    size, spans_key, what is returned and what is noted on the examples: see spacy-sbert.batch_by_objective.v1.
    RAISES (ValueError): also, in use, if the examples of one are fewer than size.
    """
    return Batcher(size, spans_key, _in_turn, _count_in_turn)


def _by_objective(examples: Iterable[Example], size: int, spans_key: str) -> Batches:
    open_batches: dict[str | None, list[Example]] = {}
    full: dict[str | None, list[Example]] = {}  # held back, should one example be left over
    for example in examples:
        kind = kind_of(example.reference, spans_key)
        batch = open_batches.setdefault(kind, [])
        if len(batch) == size:
            if kind in full:
                yield from _noted(full[kind], spans_key)
            full[kind] = batch
            batch = open_batches[kind] = []
        batch.append(example)
    for kind, batch in open_batches.items():
        yield from _last(full.get(kind, []), batch, size, spans_key)


def _mixed(examples: Iterable[Example], size: int, spans_key: str) -> Batches:
    held: list[Example] = []
    batch: list[Example] = []
    for example in examples:
        if len(batch) == size:
            yield from _noted(held, spans_key)
            held, batch = batch, []
        batch.append(example)
    yield from _last(held, batch, size, spans_key)


def _in_turn(examples: Iterable[Example], size: int, spans_key: str) -> Batches:
    done: dict[str | None, int] = {}  # batches of each objective so far
    if isinstance(examples, Sequence):  # in memory: an objective that comes late has its turn, too
        done = {kind_of(example.reference, spans_key): 0 for example in examples}
    waiting: dict[str | None, list[Example]] = {kind: [] for kind in done}
    for example in examples:
        kind = kind_of(example.reference, spans_key)
        waiting.setdefault(kind, []).append(example)
        done.setdefault(kind, 0)
        for ready in [k for k in sorted(done, key=lambda k: done[k]) if len(waiting[k]) >= size]:
            if done[ready] == min(done.values()):
                batch, waiting[ready] = waiting[ready][:size], waiting[ready][size:]
                done[ready] += 1
                yield from _noted(batch, spans_key)
    for name in (name for name, n_batches in done.items() if not n_batches):  # nor would it have one in another epoch
        kind = "without members" if name is None else f"of the objective '{name}'" if name else "in all"
        raise ValueError(
            f"spacy-sbert.batch_in_turn.v1 with size = {size} found only {len(waiting[name])} examples {kind}, "
            f"no batch of them: they would never be learned from. Set size to {len(waiting[name])} or less in "
            "[training.batcher], or give it more examples."
        )


def _count_by_objective(counts: Sequence[int], size: int) -> int:
    """A single example that is left over makes a batch only where there is no other, see _last."""
    return sum(n // size + (n % size > 1 or n == 1) for n in counts) if size > 1 else sum(counts)


def _count_mixed(counts: Sequence[int], size: int) -> int:
    return _count_by_objective([sum(counts)], size)


def _count_in_turn(counts: Sequence[int], size: int) -> int:
    """The objective with the fewest batches ends it; others may have had their turn before, with one more."""
    whole = [n // size for n in counts]
    return sum(min(n, min(whole) + 1) for n in whole)


def _last(held: list[Example], batch: list[Example], size: int, spans_key: str) -> Batches:
    """The last two batches; a single example that is left over joins the one before it."""
    if held and len(batch) == 1 and size > 1:
        held, batch = held + batch, []
    yield from _noted(held, spans_key)
    yield from _noted(batch, spans_key)


def _noted(batch: list[Example], spans_key: str) -> Batches:
    """The batch, unless it is empty; its sizes stand on the examples until the next one is asked for."""
    kinds = [kind_of(example.reference, spans_key) for example in batch]
    paired = [
        (example.reference.spans[spans_key].attrs, kind)
        for example, kind in zip(batch, kinds, strict=True)
        if kind is not None
    ]
    for attrs, kind in paired:
        attrs["batch_size"] = kinds.count(kind)
    if batch:
        yield batch
    for attrs, _ in paired:
        attrs.pop("batch_size", None)
