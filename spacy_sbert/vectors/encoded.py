"""What the sentence encoder returns for a Doc."""

from dataclasses import dataclass

import numpy
from thinc.types import Floats2d, Ragged

from ..encoder.rows import Rows


@dataclass
class WordpieceStates:
    """What other Spans and Tokens need to have vectors: the states of a Doc's wordpieces.

    states: float32 (wordpieces, width), NumPy or CuPy, in memory of their own; without special tokens where characters
        are known.
    characters: int32 (wordpieces, 2), of each in the Doc; None where only align is known.
    align: for each token of the Doc the indices of its wordpieces; None where characters are known.
    """

    states: Floats2d
    characters: numpy.ndarray | None
    align: Ragged | None


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
