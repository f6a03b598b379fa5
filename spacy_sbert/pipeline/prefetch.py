"""Encode the next batch of Docs in another thread while the last one is used."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from spacy.tokens import Doc

from ..models.encoded_docs import EncodedDoc
from ..models.engine.concurrency import TrainedElsewhereError

THREAD = "sbert-ahead"
_Predict = Callable[[list[Doc]], list[EncodedDoc]]
_Predicted = tuple[list[Doc], Callable[[], list[EncodedDoc]]]


def prefetch(
    predict: _Predict, batches: Iterable[list[Doc]], *, is_possible: Callable[[], bool]
) -> Iterator[_Predicted]:
    """Yield batches of Docs, each with a function that returns its vectors, or raises the error of encoding it.

    predict (Callable): encodes a batch. batches (Iterable): read one ahead.
    is_possible (Callable): whether another thread may encode; asked after each batch, until it may.
    """
    batches = iter(batches)
    while not is_possible():
        docs = next(batches, None)
        if docs is None:
            return
        yield docs, partial(predict, docs)
    yield from _one_ahead(predict, batches)


def _one_ahead(predict: _Predict, batches: Iterator[list[Doc]]) -> Iterator[_Predicted]:
    last: _Predicted | None = None
    error: Exception | None = None
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD) as executor:
        while True:
            try:
                docs = next(batches, None)
            except Exception as raised:  # again below: the batch before is whole
                docs, error = None, raised
            future = None if docs is None else executor.submit(copy_context().run, predict, docs)
            if last is not None:
                yield last
            if docs is None or future is None:
                break
            last = docs, partial(_result, future, predict, docs)
    if error is not None:
        raise error


def _result(future: Future[list[EncodedDoc]], predict: _Predict, docs: list[Doc]) -> list[EncodedDoc]:
    """Return a batch's vectors; encode it here if this thread trained the encoder meanwhile."""
    try:
        return future.result()
    except TrainedElsewhereError:
        return predict(docs)
