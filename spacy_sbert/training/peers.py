"""Whose examples the loss of a batch is of: those of this process alone, or of several that have a part of it each."""

from collections.abc import Sequence

from spacy.training import Example
from thinc.types import Floats2d


class Peers:
    """This process alone: its examples are the whole batch. Another kind is spacy_sbert.training.Ranks."""

    def batch(self, own: Sequence[Example]) -> Sequence[Example]:
        """All examples of the batch that these are the part of."""
        return own

    def gather(self, vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """The vectors of all examples of a batch.

        vectors (Floats2d): of the own ones, float32 (rows, width). counts: how many rows each example of the batch has.
        RETURNS (Floats2d): float32 (all rows, width), example by example.
        """
        return vectors

    def own(self, d_vectors: Floats2d, counts: Sequence[int]) -> Floats2d:
        """The rows that belong to the own examples, of those of all; what gather is for vectors, backwards."""
        return d_vectors


ALONE = Peers()
