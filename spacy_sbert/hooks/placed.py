"""One stored record and where it stands in its Doc."""

from dataclasses import dataclass
from typing import TypedDict

import numpy


class Record(TypedDict, total=False):
    """What a pipe stores on a Doc: NumPy arrays and scalars, places in characters from its start.

    rows: int32 (rows, 2). vectors: float32 (rows, width). has_text: bool (rows,). text: what it was made of.
    pooling, normalize: how vectors were made; of a meta-embedding combined_by, its pipe, in their place.
    fingerprint: of the encoder; not there if it is not known.
    truncated: whether a row was cut. dense: True with a dense layer.
    states: float32 (wordpieces, width), special tokens left out, and characters, int32 (wordpieces, 2): with token
        vectors.
    """

    rows: numpy.ndarray
    vectors: numpy.ndarray
    has_text: numpy.ndarray
    width: int
    text: str
    set_hooks: bool
    truncated: bool
    pooling: str
    normalize: bool
    combined_by: str
    fingerprint: str
    dense: bool
    states: numpy.ndarray
    characters: numpy.ndarray


@dataclass
class PlacedRecord:
    """One stored record and where it stands in its Doc: characters [start, end)."""

    name: str
    start: int
    end: int
    data: Record

    @property
    def rows(self) -> numpy.ndarray:
        """int32 (rows, 2): the characters of each row in the Doc."""
        return self.data["rows"] + self.start

    @property
    def vectors(self) -> numpy.ndarray:
        """float32 (n, width): what the vector of its whole stretch is the mean of; no more than one where a row is
        that stretch, and others are its sentences."""
        rows, vectors, has_text = self.data["rows"], self.data["vectors"], self.data["has_text"]
        if len(rows) > 1 and rows[0, 0] <= rows[:, 0].min() and rows[0, 1] >= rows[:, 1].max():
            return vectors[:1][has_text[:1]]
        return vectors[has_text]

    def row_at(self, start: int, end: int) -> numpy.ndarray | None:
        """The vector of the row that covers exactly the characters [start, end), if there is one."""
        hits = numpy.flatnonzero((self.rows == (start, end)).all(axis=1))
        return self.data["vectors"][hits[0]] if len(hits) else None
