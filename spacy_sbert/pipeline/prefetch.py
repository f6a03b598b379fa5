"""Encode the next batch of Docs in another thread while the last one is used."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import torch
from spacy.tokens import Doc
from thinc.api import Model

from ..models.encoded_docs import EncodedDoc
from ..models.engine.concurrency import TrainedElsewhereError, submit
from ..models.transformer import SpanTransformer

THREAD = "sbert-ahead"
# Docs a batch: streams in smaller batches may wait for each result
PREFETCH_FROM = 128
_Predict = Callable[[list[Doc]], list[EncodedDoc]]
_Predicted = tuple[list[Doc], Callable[[], list[EncodedDoc]]]


def can_prefetch(model: Model, batch_size: int) -> bool:
    """Return whether another thread may encode while this one runs Python."""
    if batch_size < PREFETCH_FROM or torch.get_num_threads() == 1:
        return False
    return any(isinstance(node, SpanTransformer) and node.in_parallel for node in model.walk())


def prefetch(
    predict: _Predict, batches: Iterable[list[Doc]], *, is_possible: Callable[[], bool]
) -> Iterator[_Predicted]:
    """Yield batches of Docs, each with a function that returns its vectors.

    It raises the error of encoding, if there was one.

    is_possible (Callable): whether another thread may encode; asked before each batch.
    """
    # At most one batch, which comes before what the next one raises
    ahead: list[_Predicted] = []
    batches = iter(batches)
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD) as executor:
        while True:
            is_ahead = is_possible()
            try:
                docs = next(batches, None)
            except Exception:
                yield from ahead
                raise
            if docs is None:
                yield from ahead
                return
            if is_ahead:
                future = submit(executor, copy_context().run, predict, docs)
                yield from ahead
                ahead = [(docs, partial(_result, future, predict, docs))]
            else:
                yield from ahead
                ahead = []
                yield docs, partial(predict, docs)


def _result(
    future: Future[list[EncodedDoc]], predict: _Predict, docs: list[Doc]
) -> list[EncodedDoc]:
    """Return a batch's vectors; encode it here if this thread trained the encoder meanwhile."""
    try:
        return future.result()
    except TrainedElsewhereError:
        return predict(docs)
