"""From the states of wordpieces to the vectors of tokens."""

from collections.abc import Callable
from itertools import pairwise
from typing import cast

import numpy
from spacy.attrs import IDX
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_array_module

from .alignment import align_characters
from .ragged import borders_of, ragged_arange
from .span_batch import Array, EncodedSpans, in_places

# From the states of each token's wordpieces to a vector
TokenPooling = Model[Ragged, Floats2d]


def init_pooling(pooling: TokenPooling, width: int) -> None:
    """Initialize the weights of a pooling, if it has any."""
    pooling.initialize(X=Ragged(pooling.ops.alloc2f(1, width), pooling.ops.asarray1i([1])))


def is_same_pooling(first: TokenPooling, second: TokenPooling) -> bool:
    """Return whether two poolings make the same vectors: of one name, and without weights."""
    has_weights = any(node.param_names for pooling in (first, second) for node in pooling.walk())
    return first.name == second.name and not has_weights


def pool_tokens(
    pooling: TokenPooling, docs: list[Doc], batch: EncodedSpans, width: int, *, is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Array]]]:
    """Return the vectors of the tokens of Docs, and their backprop to the states.

    batch (EncodedSpans): of the Docs, with the characters of its wordpieces. width (int): of a
        vector.
    RETURNS (list[Floats2d], Callable): float (tokens, width) for each Doc; zeros for a token
        without wordpieces.
    """
    if not len(batch.lengths):
        return [pooling.ops.alloc2f(len(doc), width) for doc in docs], lambda d_vectors: []
    pieces, backprop_pieces = _pieces_of_tokens(docs, batch)
    xp = get_array_module(pieces.dataXd)
    counts = numpy.asarray(pieces.lengths)
    vectors = xp.zeros((len(counts), width), dtype=pieces.dataXd.dtype)
    of_docs = [vectors[start:end] for start, end in pairwise(borders_of(map(len, docs)))]
    # Nothing but white space
    if not counts.any():
        return of_docs, lambda d_vectors: backprop_pieces(pieces.dataXd)
    # A pooling need not know what to do with a token without wordpieces
    has_pieces = xp.asarray(numpy.flatnonzero(counts))
    lengths = pooling.ops.asarray1i(counts[counts > 0].tolist())
    pooled, backprop_pooling = pooling(Ragged(pieces.data, lengths), is_train)
    vectors[has_pieces] = pooled

    def backprop(d_vectors: list[Floats2d]) -> list[Array]:
        d_pooled = xp.concatenate(d_vectors)[has_pieces]
        return backprop_pieces(backprop_pooling(d_pooled).dataXd)

    return of_docs, backprop


def _pieces_of_tokens(
    docs: list[Doc], batch: EncodedSpans
) -> tuple[Ragged, Callable[[Array], list[Array]]]:
    """Return the states of the wordpieces of each token of Docs, and their backprop."""
    parts = [part.values for part in batch.list_states()]
    xp = get_array_module(parts[0])
    values = parts[0] if len(parts) == 1 else xp.concatenate(parts)
    align = _align_tokens(docs, batch)
    pieces, backprop_places = in_places(values, _places_of_pieces(batch)[align.dataXd])
    borders = borders_of(map(len, parts))[1:-1]

    def backprop(d_pieces: Array) -> list[Array]:
        return xp.split(backprop_places(d_pieces), borders)

    return Ragged(pieces, align.lengths), backprop


def _align_tokens(docs: list[Doc], batch: EncodedSpans) -> Ragged:
    """Return the ascending indices of the wordpieces of each token of Docs.

    They are those that share a character with it.
    """
    # Docs are laid end to end on one line of characters
    doc_starts = borders_of(len(doc.text) + 1 for doc in docs)[:-1]
    token_starts = [
        doc.to_array(IDX).astype("int64") + start
        for doc, start in zip(docs, doc_starts, strict=True)
    ]
    of_windows = numpy.repeat(doc_starts, numpy.diff(batch.window_borders))
    of_pieces = numpy.repeat(of_windows, batch.lengths)
    characters = cast(numpy.ndarray, batch.characters) + of_pieces[:, None]
    is_text = cast(numpy.ndarray, batch.of_text)
    ends = numpy.where(is_text, characters[:, 1], 0)
    return align_characters(numpy.concatenate(token_starts), characters[:, 0], ends)


def _places_of_pieces(batch: EncodedSpans) -> numpy.ndarray:
    """Return where the state of each wordpiece is among those of all parts, int64 (N,)."""
    starts = numpy.cumsum(batch.lengths) - batch.lengths
    order = numpy.concatenate(
        [ragged_arange(starts[part.windows], part.lengths) for part in batch.list_states()]
    )
    places = numpy.empty(len(order), dtype="int64")
    places[order] = numpy.arange(len(order))
    return places
