"""Batches that are encoded on all cores while Python, on one of them, makes the next Docs and uses the last."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from spacy.tokens import Doc

from ..encoder.concurrency import TrainedElsewhereError
from ..vectors.encoded import EncodedDoc

THREAD = "sbert-ahead"
Predict = Callable[[list[Doc]], list[EncodedDoc]]
Predicted = tuple[list[Doc], Callable[[], list[EncodedDoc]]]


def predict_ahead(
    predict: Predict, batches: Iterable[list[Doc]], *, is_possible: Callable[[], bool]
) -> Iterator[Predicted]:
    """Batches of Docs, each with what gives its vectors, or raises what encoding it did.

    predict: encodes a batch. batches: are taken one ahead of who takes the results.
    is_possible (Callable): whether another thread may encode; asked after each batch, until it may.
    """
    batches = iter(batches)
    while not is_possible():
        docs = next(batches, None)
        if docs is None:
            return
        yield docs, partial(predict, docs)
    yield from _one_ahead(predict, batches)


def _one_ahead(predict: Predict, batches: Iterator[list[Doc]]) -> Iterator[Predicted]:
    last: Predicted | None = None
    failed: Exception | None = None
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD) as encoding:
        while True:
            try:
                docs = next(batches, None)
            except Exception as error:  # is raised behind the batch before, which is whole
                docs, failed = None, error
            prediction = None if docs is None else encoding.submit(copy_context().run, predict, docs)
            if last is not None:
                yield last
            if docs is None or prediction is None:
                break
            last = docs, partial(_result, prediction, predict, docs)
    if failed is not None:
        raise failed


def _result(prediction: Future[list[EncodedDoc]], predict: Predict, docs: list[Doc]) -> list[EncodedDoc]:
    """Take a batch's vectors, or encode it here if this thread trained the encoder at that time."""
    try:
        return prediction.result()
    except TrainedElsewhereError:
        return predict(docs)
