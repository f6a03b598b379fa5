"""What the sentence encoder returns for a Doc."""

from dataclasses import dataclass

import numpy
from thinc.types import Floats2d

from ..encoder.rows import Rows


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
    text: of the first row; None if nobody noted it.
    """

    rows: Rows
    vectors: Floats2d
    pooling: str
    normalize: bool
    wordpieces: WordpieceStates | None
    dense: bool = False
    text: str | None = None

    def __repr__(self) -> str:
        rows, width = self.vectors.shape
        return f"EncodedDoc({rows} vectors of {width} numbers, {self.pooling} pooling)"

    @classmethod
    def without_rows(cls, vectors: Floats2d, pooling: str) -> "EncodedDoc":
        """What a Doc without text gets; vectors (float (0, width)): of the width that others have."""
        return cls(Rows.none(), vectors, pooling, False, None)
