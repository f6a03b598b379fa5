"""The states of a shared transformer by Doc, left on Docs, and joined to a batch again.

The states of a Doc are the batch of this Doc alone. Components that listen batch Docs in their own
way.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy
from spacy.attrs import IDX
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import Model
from thinc.types import Ragged
from thinc.util import get_array_module

from ..errors import Errors
from .alignment import align_characters
from .ragged import borders_of, group_of
from .span_batch import Array, EncodedSpans, SpanBatch, TokenEmbeddings, row_characters
from .transformer import SpanTransformer

# Docs whose states are copied at a time: they stay in the cache
_CHUNK = 32
# Among the hooks of a Doc, which its bytes do not have
_HOOK = "spacy_sbert.states_{id}"


def states_of_doc(
    rows: SpanBatch,
    lengths: numpy.ndarray,
    values: Array,
    characters: numpy.ndarray,
    of_text: numpy.ndarray,
    *,
    n_lead: int = 0,
    texts: Sequence[str | None] | None = None,
) -> EncodedSpans:
    """Return the batch of one Doc, with the states of its windows one after another.

    values (float (N, width)): the states. For the others see EncodedSpans.
    """
    windows = numpy.arange(len(lengths))
    return EncodedSpans(
        rows,
        [0, len(rows.spans)],
        lengths,
        [TokenEmbeddings(windows, lengths, values, rows.has_merged)],
        n_lead=n_lead,
        texts=texts,
        characters=characters,
        of_text=of_text,
    )


def split_by_doc(batch: EncodedSpans) -> list[EncodedSpans]:
    """Return each Doc of a batch as a batch of its own, with the states of its windows in order."""
    n_docs = len(batch.borders) - 1
    if not len(batch.lengths):
        return [EncodedSpans.empty(1) for _ in range(n_docs)]
    of_windows: list[Array] = [None] * len(batch.lengths)
    for part in batch.list_states():
        borders = pairwise(borders_of(part.lengths.tolist()))
        for window, (start, end) in zip(part.windows.tolist(), borders, strict=True):
            of_windows[window] = part.values[start:end]
    pieces = borders_of(batch.lengths.tolist())
    docs = []
    for (start, end), (first, last) in zip(
        pairwise(batch.borders), pairwise(batch.window_borders), strict=True
    ):
        if first == last:
            docs.append(EncodedSpans.empty(1))
            continue
        # Of one window without a copy
        values = of_windows[first]
        if last - first > 1:
            values = get_array_module(values).concatenate(of_windows[first:last])
        own_pieces = slice(pieces[first], pieces[last])
        states = states_of_doc(
            batch.rows.part(slice(start, end), slice(first, last)),
            batch.lengths[first:last],
            values,
            cast(numpy.ndarray, batch.characters)[own_pieces],
            cast(numpy.ndarray, batch.of_text)[own_pieces],
            n_lead=batch.n_lead,
            texts=None if batch.texts is None else batch.texts[start:end],
        )
        docs.append(states)
    return docs


def join_docs(docs: Sequence[EncodedSpans]) -> EncodedSpans:
    """Return batches of one Doc each as one batch."""
    with_text = [doc for doc in docs if len(doc.lengths)]
    if not with_text:
        return EncodedSpans.empty(len(docs))
    batch = EncodedSpans(
        _join_rows([doc.rows for doc in with_text]),
        borders_of(len(doc.rows.spans) for doc in docs),
        numpy.concatenate([doc.lengths for doc in with_text]),
        _join_states(with_text),
        n_lead=with_text[0].n_lead,
    )
    batch.keep_pieces(
        numpy.concatenate([doc.characters for doc in with_text]),
        numpy.concatenate([doc.of_text for doc in with_text]),
    )
    # A Doc that is one row
    if len(batch.rows.spans) == len(with_text):
        batch.texts = [None if doc.texts is None else doc.texts[0] for doc in with_text]
    return batch


def _join_rows(docs: Sequence[SpanBatch]) -> SpanBatch:
    """Return the rows of several Docs, one at least, as one batch."""
    first_rows = borders_of(len(own.spans) for own in docs)[:-1]
    row_of = [own.row_of + first for own, first in zip(docs, first_rows, strict=True)]
    return SpanBatch(
        spans=numpy.concatenate([own.spans for own in docs]),
        row_of=numpy.concatenate(row_of),
        window_weights=numpy.concatenate([own.window_weights for own in docs]),
        n_cut=numpy.concatenate([own.n_cut for own in docs]),
        settings=docs[0].settings,
        characters=numpy.concatenate([own.characters for own in docs]),
        is_merged=numpy.concatenate([numpy.full(len(own.spans), own.has_merged) for own in docs]),
    )


def _join_states(docs: Sequence[EncodedSpans]) -> list[TokenEmbeddings]:
    """Return the states of Docs that all have text, see joined_parts."""
    first_windows = borders_of(len(doc.lengths) for doc in docs)
    joined = []
    for numbers in joined_parts(docs):
        parts = [docs[number].list_states()[0] for number in numbers]
        firsts = [first_windows[number] for number in numbers]
        windows = [first + part.windows for first, part in zip(firsts, parts, strict=True)]
        values = [part.values for part in parts]
        joined.append(
            TokenEmbeddings(
                numpy.concatenate(windows),
                numpy.concatenate([part.lengths for part in parts]),
                get_array_module(values[0]).concatenate(values),
                parts[0].is_merged,
            )
        )
    return joined


def joined_parts(docs: Sequence[EncodedSpans]) -> list[list[int]]:
    """Return which Docs, all with text, each part of the states of a joined batch is made of.

    They are of one kind, merged or not, and few enough to stay in the cache.
    """
    plain: list[int] = []
    merged: list[int] = []
    for number, doc in enumerate(docs):
        kind = merged if doc.rows.has_merged else plain
        kind.append(number)
    return [*minibatch(plain, _CHUNK), *minibatch(merged, _CHUNK)]


# Windows that overlap


def join_merged(docs: Sequence[Doc], states: Sequence[EncodedSpans]) -> EncodedSpans:
    """Return the states of Docs as one batch, and windows that overlap as one row for each Doc."""
    merged = []
    for doc, own in zip(docs, states, strict=True):
        if own.rows.overlap:
            own, _ = merge_windows(own, doc)
        merged.append(own)
    return join_docs(merged)


def merge_windows(states: EncodedSpans, doc: Doc) -> tuple[EncodedSpans, numpy.ndarray]:
    """Return windows of a Doc that overlap as one row, and which of their wordpieces are in it.

    Of each token these are the wordpieces in the first window that it is in.
    """
    characters = cast(numpy.ndarray, states.characters)
    of_text = cast(numpy.ndarray, states.of_text)
    ends = numpy.where(of_text, characters[:, 1], 0)
    align = align_characters(doc.to_array(IDX).astype("int64"), characters[:, 0], ends)
    chosen = numpy.unique(_in_first_windows(align, states.lengths))
    n_text = len(chosen)
    if not n_text:
        # A special token stands for no text
        chosen = numpy.zeros(1, dtype="int64")
    rows = SpanBatch(
        spans=numpy.array([[0, states.rows.spans[:, 1].max()]]),
        row_of=numpy.zeros(1, dtype="int64"),
        window_weights=numpy.array([n_text]),
        n_cut=numpy.array([states.rows.n_cut.sum()]),
        settings=states.rows.settings,
        characters=row_characters([doc[:]], [doc.text]),
        is_merged=numpy.array([True]),
    )
    values = states.list_states()[0].values[chosen]
    lengths = numpy.array([len(chosen)])
    return states_of_doc(rows, lengths, values, characters[chosen], of_text[chosen]), chosen


def _in_first_windows(align: Ragged, lengths: numpy.ndarray) -> numpy.ndarray:
    """Return the indices of the wordpieces of each token in the first window that it is in."""
    pieces = numpy.asarray(align.dataXd)
    counts = numpy.asarray(align.lengths)
    windows = group_of(lengths)[pieces]
    first_pieces = numpy.cumsum(counts) - counts
    return pieces[windows == windows[numpy.repeat(first_pieces, counts)]]


# States on Docs


class _StoredStates:
    """The states of a Doc for those that listen: each takes them once, then they go.

    A copy is empty.
    """

    def __init__(self, states: EncodedSpans | None = None, listeners: Iterable[Model] = ()):
        self.states = states
        self.waiting = {listener.id for listener in listeners}

    # Hooks of a Doc are callable
    def __call__(self) -> EncodedSpans | None:
        return self.states

    def __reduce__(self) -> tuple[type, tuple]:
        return _StoredStates, ()


def store_states(
    doc: Doc, states: EncodedSpans, transformer: SpanTransformer, listeners: list[Model]
) -> None:
    """Leave states on a Doc for listeners."""
    doc.user_hooks[_HOOK.format(id=transformer.id)] = cast(Any, _StoredStates(states, listeners))


def not_encoded(doc: Doc) -> ValueError:
    """Return the error for a Doc that no transformer has read."""
    return ValueError(Errors.NOT_ENCODED.format(text=doc.text[:50]))


def take_states(
    docs: list[Doc], transformer: SpanTransformer, listener: Model
) -> list[EncodedSpans]:
    """Return the states that a transformer left on Docs. The last listener removes them.

    RAISES (ValueError): if it left none on a Doc that has text.
    """
    hook = _HOOK.format(id=transformer.id)
    found = []
    for doc in docs:
        stored = doc.user_hooks.get(hook)
        states = stored.states if isinstance(stored, _StoredStates) else None
        if states is None:
            if len(doc):
                raise not_encoded(doc)
            states = EncodedSpans.empty(1)
        found.append(states)
    # Only now, as a Doc may be there twice
    for doc in docs:
        stored = doc.user_hooks.get(hook)
        if isinstance(stored, _StoredStates):
            stored.waiting.discard(listener.id)
            if not stored.waiting:
                del doc.user_hooks[hook]
    return found
