"""Batches of training examples."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from spacy.tokens import Doc
from spacy.training import Example

from ..models.spans import SPANS_KEY
from ..validation import Name, Positive, validated
from .examples import kind_of

_Batches = Iterator[list[Example]]
# Also those of spaCy
AnyBatcher = Callable[[Iterable[Example]], Iterable[list[Example]]]


@dataclass(frozen=True)
class Batcher:
    """Makes batches of `size` examples from examples, size and spans_key, by `make`.

    count: returns the number of batches, from the numbers of examples of each objective, in any
        order, and size.
    """

    size: int
    spans_key: str
    make: Callable[[Iterable[Example], int, str], _Batches]
    count: Callable[[Sequence[int], int], int]

    def __call__(self, examples: Iterable[Example]) -> _Batches:
        for batch in self.make(examples, self.size, self.spans_key):
            yield from _with_sizes(batch, self.spans_key)


@validated
def batch_by_objective(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of one objective each, so that in-batch negatives are of one kind.

    Until the next batch is requested, the reference of each example has the size of its batch in
    doc.spans[spans_key].attrs["batch_size"]: with training.accumulate_gradient the parts of a batch
    then add up to the step of the whole one. A single example that is left over joins the batch
    before it.

    size (int): the examples in a batch.
    spans_key (str): where the members are stored. Examples without members (of ner, textcat) make
        their own batches.
    """
    return Batcher(size, spans_key, partial(_filled, kind=kind_of), _count_by_objective)


@validated
def batch_mixed(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches in the order of the examples, so that every step trains every component.

    size, spans_key, and the sizes on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    return Batcher(size, spans_key, partial(_filled, kind=_no_kind), _count_mixed)


@validated
def batch_in_turn(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of one objective each, in turn, until the examples of one are used up.

    Small data sets then count as much as large ones, which show other examples in each epoch. A
    stream should come in turn, too (sampling = "round_robin" of spacy-sbert.MultiCorpus.v1):
    examples ahead of their turn are held in memory.

    size, spans_key, and the sizes on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    return Batcher(size, spans_key, _in_turn, _count_in_turn)


def _filled(
    examples: Iterable[Example], size: int, spans_key: str, *, kind: Callable[..., str | None]
) -> _Batches:
    """Yield batches of one kind each.

    A single example that is left over joins the batch before it.
    """
    # Of each kind up to two batches, in case one example is left over
    held: dict[str | None, list[Example]] = {}
    for example in examples:
        batch = held.setdefault(kind(example.reference, spans_key), [])
        if len(batch) == 2 * size:
            yield batch[:size]
            del batch[:size]
        batch.append(example)
    for batch in held.values():
        if len(batch) <= size or (len(batch) == size + 1 and size > 1):
            yield batch
        else:
            yield batch[:size]
            yield batch[size:]


def _count_by_objective(counts: Sequence[int], size: int) -> int:
    """Count batches: a single example that is left over makes one only if there is no other.

    See _filled.
    """
    if size == 1:
        return sum(counts)
    n_batches = 0
    for n in counts:
        n_batches += n // size
        if n % size > 1 or n == 1:
            n_batches += 1
    return n_batches


def _no_kind(doc: Doc, spans_key: str) -> None:
    """Return the same for each example, so that all go into the same batches."""


def _count_mixed(counts: Sequence[int], size: int) -> int:
    return _count_by_objective([sum(counts)], size)


def _in_turn(examples: Iterable[Example], size: int, spans_key: str) -> _Batches:
    # In memory: what comes late has its turn, too
    known = examples if isinstance(examples, Sequence) else ()
    # Of each objective so far
    n_batches = {kind_of(example.reference, spans_key): 0 for example in known}
    waiting: dict[str | None, list[Example]] = {}
    for example in examples:
        kind = kind_of(example.reference, spans_key)
        waiting.setdefault(kind, []).append(example)
        n_batches.setdefault(kind, 0)
        # Sorted by the numbers before any of these batches
        for ready in sorted(n_batches, key=n_batches.__getitem__):
            is_next = n_batches[ready] == min(n_batches.values())
            if is_next and len(waiting.get(ready, ())) >= size:
                batch = waiting[ready][:size]
                del waiting[ready][:size]
                n_batches[ready] += 1
                yield batch
    # An objective without a batch would not have one in another epoch either
    for name, n in n_batches.items():
        if not n:
            n_examples = len(waiting[name])
            raise ValueError(
                f"spacy-sbert.batch_in_turn.v1 with size = {size} found only {n_examples} examples "
                f"{_described(name)}. Set size to {n_examples} or less in [training.batcher]."
            )


def _described(kind: str | None) -> str:
    """Return what examples of a kind are, see kind_of, as messages say it."""
    if kind is None:
        return "without members"
    return f"of the objective '{kind}'" if kind else "in all"


def _count_in_turn(counts: Sequence[int], size: int) -> int:
    """Count batches: the objective with the fewest ends it.

    Others may have had their turn before, with one more.
    """
    whole = [n // size for n in counts]
    return sum(min(n, min(whole) + 1) for n in whole)


def _with_sizes(batch: list[Example], spans_key: str) -> _Batches:
    """Yield the batch.

    Its examples have its size, of their objective, until the next one is requested.
    """
    docs = [example.reference for example in batch if spans_key in example.reference.spans]
    sizes = Counter(kind_of(doc, spans_key) for doc in docs)
    for doc in docs:
        doc.spans[spans_key].attrs["batch_size"] = sizes[kind_of(doc, spans_key)]
    yield batch
    for doc in docs:
        doc.spans[spans_key].attrs.pop("batch_size", None)
