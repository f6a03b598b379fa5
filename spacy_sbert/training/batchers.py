"""Batches of training examples."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from spacy.training import Example
from spacy.util import registry

from ..errors.checks import Name, Positive, validated
from ..spans import SPANS_KEY
from .errors import Errors

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]


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
    return partial(_by_objective, size=size, spans_key=spans_key)


@registry.batchers("spacy-sbert.batch_mixed.v1")
@validated
def batch_mixed(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of examples in the order they come, whatever their objective: every step trains every component.

    size, spans_key, what is returned and what is noted on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    return partial(_mixed, size=size, spans_key=spans_key)


@registry.batchers("spacy-sbert.batch_in_turn.v1")
@validated
def batch_in_turn(size: Positive, spans_key: Name = SPANS_KEY) -> Batcher:
    """Make batches of one objective each, one of every objective in turn, until the examples of one are used up.

    Small data sets then count as much as large ones. In memory (max_epochs = 0) each epoch is shuffled anew, so that a
    large one shows other examples in each. A stream should come in turn, too (sampling = "round_robin" of
    spacy-sbert.MultiCorpus.v1): what is ahead of its turn is held.

    size, spans_key, what is returned and what is noted on the examples: see spacy-sbert.batch_by_objective.v1.
    RAISES (ValueError): also, in use, if the examples of one are fewer than size.
    """
    return partial(_in_turn, size=size, spans_key=spans_key)


def _by_objective(examples: Iterable[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    open_batches: dict[str | None, list[Example]] = {}
    full: dict[str | None, list[Example]] = {}  # held back, should one example be left over
    for example in examples:
        kind = _kind(example, spans_key)
        batch = open_batches.setdefault(kind, [])
        if len(batch) == size:
            if kind in full:
                yield from _noted(full[kind], spans_key)
            full[kind] = batch
            batch = open_batches[kind] = []
        batch.append(example)
    for kind, batch in open_batches.items():
        yield from _last(full.get(kind, []), batch, size, spans_key)


def _mixed(examples: Iterable[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    held: list[Example] = []
    batch: list[Example] = []
    for example in examples:
        if len(batch) == size:
            yield from _noted(held, spans_key)
            held, batch = batch, []
        batch.append(example)
    yield from _last(held, batch, size, spans_key)


def _in_turn(examples: Iterable[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    waiting: dict[str | None, list[Example]] = {}
    done: dict[str | None, int] = {}  # batches of each objective so far
    for example in examples:
        kind = _kind(example, spans_key)
        waiting.setdefault(kind, []).append(example)
        done.setdefault(kind, 0)
        for ready in [k for k in sorted(done, key=lambda k: done[k]) if len(waiting[k]) >= size]:
            if done[ready] == min(done.values()):
                batch, waiting[ready] = waiting[ready][:size], waiting[ready][size:]
                done[ready] += 1
                yield from _noted(batch, spans_key)
    for name in (name for name, n_batches in done.items() if not n_batches):  # nor would it have one in another epoch
        kind = "without members" if name is None else f"of the objective '{name}'" if name else "in all"
        raise ValueError(Errors.NO_BATCH_IN_TURN.format(size=size, given=len(waiting[name]), kind=kind))


def _last(held: list[Example], batch: list[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    """The last two batches; a single example that is left over joins the one before it."""
    if held and len(batch) == 1 and size > 1:
        held, batch = held + batch, []
    yield from _noted(held, spans_key)
    yield from _noted(batch, spans_key)


def _kind(example: Example, spans_key: str) -> str | None:
    """The objective of an example, "" where it is the only one; None if it has no members."""
    group = example.reference.spans.get(spans_key)
    return None if group is None else group.attrs.get("objective", "")


def _noted(batch: list[Example], spans_key: str) -> Iterator[list[Example]]:
    """The batch, unless it is empty; its sizes stand on the examples until the next one is asked for."""
    kinds = [_kind(example, spans_key) for example in batch]
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
