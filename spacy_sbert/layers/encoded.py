"""What the sentence encoder returns for a Doc."""

from dataclasses import dataclass

from thinc.types import Floats2d

from ..encoder.rows import Rows
from ..span_pooling import TokenStates


@dataclass
class EncodedDoc:
    """The rows of one Doc and their vectors.

    rows: where they stand, in the order of the text.
    vectors: float32 (rows, width) on the model's device; zero for a row without wordpieces.
    pooling: "mean", "max" or "cls".
    normalize: whether the vectors have unit length.
    tokens: for the vectors of other Spans and of Tokens; None in training and with token_vectors = false.
    """

    rows: Rows
    vectors: Floats2d
    pooling: str
    normalize: bool
    tokens: TokenStates | None
