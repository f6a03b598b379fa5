"""Average: a meta-embedding as wide as the widest member."""

import numpy

from .concatenation import Concatenation


class Average(Concatenation):
    """The mean of the members' vectors, shorter ones followed by zeros.

    F(s) = 1 / J sum_j [F_j(s); 0]

    SOURCE: Poerner et al. 2020, section 3.1; Coates and Bollegala 2018, Frustratingly Easy Meta-Embedding.
    """

    method = "avg"

    @property
    def width(self) -> int:
        return max(self.widths_, default=0)

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        total = numpy.zeros((len(views[0]), max(view.shape[1] for view in views)))
        for view in views:
            total[:, : view.shape[1]] += view
        return total / len(views)
