"""Batches of training examples."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from spacy.training import Example
from spacy.util import registry

from .errors import Errors
from .spans import SPANS_KEY

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]


@registry.batchers("spacy-sbert.batch_by_objective.v1")
def batch_by_objective(size: int, spans_key: str = SPANS_KEY) -> Batcher:
    """Make batches that hold examples of one objective each, so that in-batch negatives are of one kind.

    Each example's reference is told the size of its batch, doc.spans[spans_key].attrs["batch_size"]: with
    training.accumulate_gradient the parts of a batch then add up to the step of the whole one. A single example that
    is left over joins the batch before it.

    size (int): the examples in a batch.
    spans_key (str): where the members stand. Examples without members (of ner, textcat) make batches of their own.
    RETURNS (Callable): from examples to batches.
    RAISES (ValueError): if size is not at least 1.
    """
    if size < 1:
        raise ValueError(Errors.BATCHER_SIZE.format(given=size))
    return partial(_by_objective, size=size, spans_key=spans_key)


@registry.batchers("spacy-sbert.batch_mixed.v1")
def batch_mixed(size: int, spans_key: str = SPANS_KEY) -> Batcher:
    """Make batches of examples in the order they come, whatever their objective: every step trains every component.

    size, spans_key, what is returned and what is noted on the examples: see spacy-sbert.batch_by_objective.v1.
    """
    if size < 1:
        raise ValueError(Errors.BATCHER_SIZE.format(given=size))
    return partial(_mixed, size=size, spans_key=spans_key)


def _by_objective(examples: Iterable[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    open_batches: dict[str | None, list[Example]] = {}
    full: dict[str | None, list[Example]] = {}  # held back, should one example be left over
    for example in examples:
        kind = _kind(example, spans_key)
        batch = open_batches.setdefault(kind, [])
        if len(batch) == size:
            if kind in full:
                yield _noted(full[kind], spans_key)
            full[kind] = batch
            batch = open_batches[kind] = []
        batch.append(example)
    for kind, batch in open_batches.items():
        held = full.get(kind)
        if held is not None and len(batch) == 1 and size > 1:
            held.extend(batch)
            batch = []
        for last in (held, batch):
            if last:
                yield _noted(last, spans_key)


def _mixed(examples: Iterable[Example], size: int, spans_key: str) -> Iterator[list[Example]]:
    held: list[Example] = []
    batch: list[Example] = []
    for example in examples:
        if len(batch) == size:
            if held:
                yield _noted(held, spans_key)
            held, batch = batch, []
        batch.append(example)
    if held and len(batch) == 1 and size > 1:
        held, batch = held + batch, []
    for last in (held, batch):
        if last:
            yield _noted(last, spans_key)


def _kind(example: Example, spans_key: str) -> str | None:
    """The objective of an example, "" where it is the only one; None if it has no members."""
    group = example.reference.spans.get(spans_key)
    return None if group is None else group.attrs.get("objective", "")


def _noted(batch: list[Example], spans_key: str) -> list[Example]:
    kinds = [_kind(example, spans_key) for example in batch]
    for example, kind in zip(batch, kinds, strict=True):
        if kind is not None:
            example.reference.spans[spans_key].attrs["batch_size"] = kinds.count(kind)
    return batch
