"""Batches of similar length, so that little is computed on padding."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.tokens import Doc
from spacy_transformers.util import batch_by_length
from thinc.api import Model

from .encoded import EncodedDoc


def length_batches(
    encoder: Model[list[Doc], list[EncodedDoc]], max_batch_items: int
) -> Model[list[Doc], list[EncodedDoc]]:
    """Encode Docs in sub-batches of similar length, and return them in the order they came.

    A training batch is one batch: its loss sees all of it at once.

    max_batch_items (int): the most spaCy tokens in a sub-batch, counted as the longest Doc times the number of Docs. A
        Doc that is longer by itself is a sub-batch of its own.
    """
    # No attr for the size: attrs are saved, and would win over the config when loaded.
    return Model("length_batches", partial(forward, max_batch_items=max_batch_items), init=init, layers=[encoder])


def init(model: Model[list[Doc], list[EncodedDoc]], X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize()


def forward(
    model: Model[list[Doc], list[EncodedDoc]], docs: list[Doc], is_train: bool, *, max_batch_items: int
) -> tuple[list[EncodedDoc], Callable]:
    encoder = model.layers[0]
    if is_train:
        return encoder(docs, is_train)
    encoded: dict[int, EncodedDoc] = {}
    for indices in batch_by_length(docs, max_batch_items):
        encoded.update(zip(indices, encoder.predict([docs[i] for i in indices]), strict=True))
    return [encoded[i] for i in range(len(docs))], lambda d_vectors: []
