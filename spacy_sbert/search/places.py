"""Places of rows in a graph of neighbours, where equal vectors are once and deleted ones stay."""

from functools import cached_property

import numpy

from .exact import Best


class Places:
    """The place of each row's vector in a graph, and the rows of each place.

    of_rows (int64 (n,)): the places of the rows. count (int): how many vectors the graph has.
    """

    def __init__(self, of_rows: numpy.ndarray, count: int):
        self.of_rows = of_rows.copy()
        self.of_rows.flags.writeable = False
        self.count = count

    @cached_property
    def n_rows(self) -> numpy.ndarray:
        """How many rows each place has, int64 (count,): none if they are deleted."""
        return numpy.bincount(self.of_rows, minlength=self.count)

    @cached_property
    def _rows(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The rows by their place, and where those of each place begin among them."""
        return numpy.argsort(self.of_rows, kind="stable"), numpy.cumsum([0, *self.n_rows])

    def best_rows(self, scores: numpy.ndarray, places: numpy.ndarray, k: int) -> Best:
        """Return the k best rows of each query, of the best places."""
        by_place, ends = self._rows
        best_scores = numpy.empty((len(places), k), dtype="float32")
        best_rows = numpy.empty((len(places), k), dtype="int64")
        for i, own in enumerate(places):
            copies = [by_place[ends[place] : ends[place + 1]] for place in own]
            counts = [len(equal) for equal in copies]
            best_scores[i] = numpy.repeat(scores[i], counts)[:k]
            best_rows[i] = numpy.concatenate(copies)[:k]
        return best_scores, best_rows
