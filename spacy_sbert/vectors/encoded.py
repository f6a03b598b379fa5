"""What the sentence encoder returns for a Doc."""

from dataclasses import dataclass
from itertools import pairwise

import numpy
from thinc.types import Floats2d

from ..encoder.rows import Pieces, Rows, RowStates


@dataclass
class PooledRows:
    """The vectors of the rows of several Docs, and how they were made.

    vectors: float (rows, width), on the model's device.
    states: float32 (wordpieces, width) of the text of each window, NumPy arrays of their own; None for a window of
        which nobody asked for them.
    pooling, normalize, dense: see EncodedDoc.
    """

    vectors: Floats2d
    states: list[numpy.ndarray | None]
    pooling: str
    normalize: bool
    dense: bool


@dataclass
class WordpieceStates:
    """What other Spans and Tokens need to have vectors: the states of a Doc's wordpieces, without special tokens.

    states: float32 (wordpieces, width), in memory of their own. characters: int32 (wordpieces, 2), of each in the Doc.
    """

    states: numpy.ndarray
    characters: numpy.ndarray


@dataclass
class EncodedDoc:
    """The rows of one Doc and their vectors.

    rows: where they stand, in the order of the text.
    vectors: float32 (rows, width) on the model's device; zero for a row without wordpieces.
    pooling: see make_pooling.
    normalize: whether the vectors have unit length.
    wordpieces: for the vectors of other Spans and of Tokens; None in training and with token_vectors = false.
    dense: whether a dense layer made the vectors of pooled ones.
    """

    rows: Rows
    vectors: Floats2d
    pooling: str
    normalize: bool
    wordpieces: WordpieceStates | None
    dense: bool = False

    @classmethod
    def without_rows(cls, vectors: Floats2d, pooling: str) -> "EncodedDoc":
        """What a Doc without text gets; vectors (float (0, width)): of the width that others have."""
        return cls(Rows.none(), vectors, pooling, False, None)


def encoded_docs(batch: RowStates, pooled: PooledRows) -> list[EncodedDoc]:
    """Each Doc of a batch with its rows and their vectors."""
    kinds = pooled.pooling, pooled.normalize
    wordpieces = iter(() if batch.pieces is None else _wordpieces_of(batch, batch.pieces, pooled.states))
    found = []
    for row, window in zip(pairwise(batch.borders), pairwise(batch.window_borders), strict=True):
        vectors = pooled.vectors[slice(*row)]
        if row[0] == row[1]:
            found.append(EncodedDoc.without_rows(vectors, pooled.pooling))
            continue
        own = batch.rows.part(slice(*row), slice(*window))
        found.append(EncodedDoc(own, vectors, *kinds, next(wordpieces, None), pooled.dense))
    return found


def _wordpieces_of(batch: RowStates, pieces: Pieces, states: list[numpy.ndarray | None]) -> list[WordpieceStates]:
    """What the Spans and Tokens of each Doc with rows need."""
    piece_borders, found = numpy.append(0, numpy.cumsum(batch.lengths)), []
    for first, last in pairwise(batch.window_borders):
        own = [of_window for of_window in states[first:last] if of_window is not None]
        if own:
            here = slice(piece_borders[first], piece_borders[last])
            joined = own[0] if len(own) == 1 else numpy.concatenate(own)
            found.append(WordpieceStates(joined, pieces.characters[here][pieces.of_text[here]]))
    return found
