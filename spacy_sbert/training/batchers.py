"""Batches of training examples."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Warnings, warn
from ..models.spans import SPANS_KEY
from ..validation import Name, Positive, validated
from .examples import attribute, kind_of, labels_of

# Two texts of each of two labels
_SizeOfLabels = Annotated[int, Field(ge=4)]
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


@validated
def batch_by_label(size: _SizeOfLabels, spans_key: Name = SPANS_KEY, seed: int = 0) -> Batcher:
    """Make batches that hold several texts of each of several labels, for batch-hard losses.

    The texts of each label are dealt to the batches in pairs, the odd one alone. Each example comes
    once in an epoch, and the batches are about as large as each other, at most of size + 1. If a
    label is so frequent that some batches would have no pair of another, the texts of the others
    are dealt one by one. A warning counts the batches without two texts of a label beside one of
    another.

    Examples of an objective without labels make batches as those of
    spacy-sbert.batch_by_objective.v1. An epoch's examples are held in memory.

    size (int): the examples in a batch, 4 or more.
    seed (int): of the order. Other texts meet in each epoch, since spaCy shuffles the examples.
    spans_key, and the sizes on the examples: see spacy-sbert.batch_by_objective.v1.
    RAISES (ValueError): when called, if an example has no label, there are fewer than two labels,
        or no label has two texts.
    SOURCE: GroupByLabelBatchSampler of sentence-transformers, which also takes pairs in turn, and
        leaves out the odd ones and the rest of the most frequent label.
    """
    return Batcher(size, spans_key, partial(_by_label, seed=seed), _count_by_objective)


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


def _by_label(examples: Iterable[Example], size: int, spans_key: str, *, seed: int) -> _Batches:
    generator = random.Random(seed)
    by_kind: dict[str | None, list[Example]] = {}
    labelled = set()
    for example in examples:
        kind = kind_of(example.reference, spans_key)
        by_kind.setdefault(kind, []).append(example)
        if attribute(example.reference, "label", spans_key):
            labelled.add(kind)
    batches: list[list[Example]] = []
    for kind, group in by_kind.items():
        if labelled and kind not in labelled:
            batches += _filled(group, size, spans_key, kind=kind_of)
            continue
        generator.shuffle(group)
        n_batches = _count_by_objective([len(group)], size)
        dealt = _deal(labels_of(group, spans_key), n_batches)
        batches += [[group[place] for place in places] for places in dealt]
    generator.shuffle(batches)
    yield from batches


def _deal(labels: Sequence[str], n_batches: int) -> list[list[int]]:
    """Return the places of the examples of each batch, see batch_by_label.

    labels: of the examples, in random order.
    """
    by_label: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        by_label.setdefault(label, []).append(place)
    largest, *others = sorted(by_label.values(), key=len, reverse=True)
    if not others or len(largest) < 2:
        raise ValueError(
            "spacy-sbert.batch_by_label.v1 needs two labels, and two texts of one: it got "
            f"{len(labels)} texts of {len(by_label)}. Add texts, or take "
            "spacy-sbert.batch_by_objective.v1."
        )
    of_others = _parts(others, 2)
    if len(of_others) <= n_batches:
        of_others = _parts(others, 1)
    # Pairs first, a label in a row: so it comes again only when all batches have had a part
    parts = sorted(_parts([largest], 2) + of_others, key=len, reverse=True)
    batches: list[list[int]] = [[] for _ in range(n_batches)]
    for number, part in enumerate(parts):
        batches[number % n_batches] += part
    n_useful = min(sum(len(part) > 1 for part in parts), len(labels) - len(largest))
    if n_useful < n_batches:
        warn(Warnings.BATCHES_WITHOUT_TRIPLETS.format(count=n_batches - n_useful, total=n_batches))
    return batches


def _parts(groups: Iterable[list[int]], size: int) -> list[list[int]]:
    """Return the places of each group in parts of a size; the last one may be smaller."""
    return [
        places[start : start + size] for places in groups for start in range(0, len(places), size)
    ]


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
