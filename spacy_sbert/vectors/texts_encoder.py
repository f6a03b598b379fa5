"""What makes vectors of texts, whatever it is made of."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy

from .call import Call
from .sentence_pooling import SentencePooling

Encoded = tuple[numpy.ndarray, int]  # float32 (texts, width), and how many texts were cut
Moved = Callable[[int], object]  # is told how many more texts are done, such as the update of a bar


def unmoved(_: int) -> None:
    """For those who show no bar."""


class TextsEncoder(Protocol):
    """From texts to vectors: first their units, in any thread, then what is computed of these.

    pooling: what makes a vector of their states. call: what is not as the config says.
    """

    pooling: SentencePooling
    call: Call

    @property
    def name(self) -> str:
        """Of the encoder, for messages."""

    @property
    def width(self) -> int:
        """Of the vectors."""

    @property
    def max_length(self) -> int | None:
        """The most units of a text; None if there is no limit."""

    def load(self) -> None:
        """Load the weights, unless they are."""

    def digest(self) -> str:
        """Of what vectors depend on, see encoder_digest."""

    def tokenize(self, texts: list[str]) -> Any:
        """The units of texts."""

    def encode(self, units: Any, moved: Moved = unmoved) -> Encoded:
        """The vectors of texts, on the CPU, and how many were longer than the limit.

        moved (Callable): is told of all texts by the end, and of some on the way where it takes long.
        """

    def check_calibrated(self) -> None:
        """RAISES (ValueError): if vectors would depend on which texts come first."""

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
