"""Batches of training examples."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from spacy.training import Example
from spacy.util import registry

from ..models.spans import SPANS_KEY
from ..validation import Name, Positive, validated
from .examples import kind_of

_Batches = Iterator[list[Example]]
AnyBatcher = Callable[[Iterable[Example]], Iterable[list[Example]]]  # also those of spaCy


@dataclass(frozen=True)
class Batcher:
    """Makes batches of examples, and counts them in advance.

    size, spans_key: see batch_by_objective.
    make: makes the batches, from examples, size and spans_key.
    count: returns the number of batches, from the numbers of examples of each objective, in any order, and size.
    """

    size: int
    spans_key: str
    make: Callable[[Iterable[Example], int, str], _Batches]
    count: Callable[[Sequence[int], int], int]

    def __call__(self, examples: Iterable[Example]) -> _Batches:
        for batch in self.make(examples, self.size, self.spans_key):
            yield from _with_sizes(batch, self.spans_key)


@registry.batchers("spacy-sbert.batch_by_objective.v1")
@validated
def batch_by_objective(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches that hold examples of one objective each, so that in-batch negatives are of one kind.

    Until the next batch is requested, the reference of each example has the size of its batch in
    doc.spans[spans_key].attrs["batch_size"]: with training.accumulate_gradient the parts of a batch then add up to the
    step of the whole one. A single example that is left over joins the batch before it.

    size (int): the examples in a batch.
    spans_key (str): where the members are stored. Examples without members (of ner, textcat) make their own batches.
    RETURNS (Callable): from examples to batches.
    RAISES (ValueError): if size is not a whole number of at least 1.
    """
    return Batcher(size, spans_key, _by_objective, _count_by_objective)


@registry.batchers("spacy-sbert.batch_mixed.v1")
@validated
def batch_mixed(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of examples in the order they come, whatever their objective: every step trains every component.

    size, spans_key, what is returned and the sizes on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    return Batcher(size, spans_key, _mixed, lambda counts, size: _count_by_objective([sum(counts)], size))


@registry.batchers("spacy-sbert.batch_in_turn.v1")
@validated
def batch_in_turn(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of one objective each, one of every objective in turn, until the examples of one are used up.

    Small data sets then count as much as large ones. In memory (max_epochs of 0 or more) each epoch is shuffled, so
    that a large one shows other examples in each. A stream should come in turn, too (sampling = "round_robin" of
    spacy-sbert.MultiCorpus.v1): examples ahead of their turn are held in memory.

    size, spans_key, what is returned and the sizes on the examples: see spacy-sbert.batch_by_objective.v1.
    RAISES (ValueError): also, in use, if the examples of one are fewer than size.
    """
    return Batcher(size, spans_key, _in_turn, _count_in_turn)


def _by_objective(examples: Iterable[Example], size: int, spans_key: str) -> _Batches:
    return _filled(((kind_of(example.reference, spans_key), example) for example in examples), size)


def _mixed(examples: Iterable[Example], size: int, spans_key: str) -> _Batches:
    return _filled((("", example) for example in examples), size)


def _filled(examples: Iterable[tuple[str | None, Example]], size: int) -> _Batches:
    """Yield batches of one kind each; a single example that is left over joins the batch before it."""
    open_batches: dict[str | None, list[Example]] = {}
    full: dict[str | None, list[Example]] = {}  # held back, in case one example is left over
    for kind, example in examples:
        batch = open_batches.setdefault(kind, [])
        if len(batch) == size:
            if kind in full:
                yield full[kind]
            full[kind] = batch
            batch = open_batches[kind] = []
        batch.append(example)
    for kind, batch in open_batches.items():
        last = full.get(kind, [])
        if last and len(batch) == 1 and size > 1:
            yield last + batch
        else:
            yield from (part for part in (last, batch) if part)


def _count_by_objective(counts: Sequence[int], size: int) -> int:
    """Count batches: a single example that is left over makes one only if there is no other, see _filled."""
    return sum(n // size + (n % size > 1 or n == 1) for n in counts) if size > 1 else sum(counts)


def _in_turn(examples: Iterable[Example], size: int, spans_key: str) -> _Batches:
    n_batches: dict[str | None, int] = {}  # of each objective so far
    if isinstance(examples, Sequence):  # in memory: an objective that comes late has its turn, too
        n_batches = {kind_of(example.reference, spans_key): 0 for example in examples}
    waiting: dict[str | None, list[Example]] = {kind: [] for kind in n_batches}
    for example in examples:
        kind = kind_of(example.reference, spans_key)
        waiting.setdefault(kind, []).append(example)
        n_batches.setdefault(kind, 0)
        for ready in [k for k in sorted(n_batches, key=lambda k: n_batches[k]) if len(waiting[k]) >= size]:
            if n_batches[ready] == min(n_batches.values()):
                batch, waiting[ready] = waiting[ready][:size], waiting[ready][size:]
                n_batches[ready] += 1
                yield batch
    for name in (name for name, n in n_batches.items() if not n):  # it would not have one in another epoch either
        kind = "without members" if name is None else f"of the objective '{name}'" if name else "in all"
        raise ValueError(
            f"spacy-sbert.batch_in_turn.v1 with size = {size} found only {len(waiting[name])} examples {kind}, too few "
            f"for a batch. Set size to {len(waiting[name])} or less in [training.batcher], or give it more examples."
        )


def _count_in_turn(counts: Sequence[int], size: int) -> int:
    """Count batches: the objective with the fewest ends it; others may have had their turn before, with one more."""
    whole = [n // size for n in counts]
    return sum(min(n, min(whole) + 1) for n in whole)


def _with_sizes(batch: list[Example], spans_key: str) -> _Batches:
    """Yield the batch; its examples have the number of those of their objective until the next one is requested."""
    kinds = [kind_of(example.reference, spans_key) for example in batch]
    sizes = Counter(kinds)
    groups = [eg.reference.spans[spans_key] for eg in batch if spans_key in eg.reference.spans]
    for group, kind in zip(groups, (kind for kind in kinds if kind is not None), strict=True):
        group.attrs["batch_size"] = sizes[kind]
    yield batch
    for group in groups:
        group.attrs.pop("batch_size", None)
