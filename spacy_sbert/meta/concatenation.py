"""Concatenation: the plainest meta-embedding, and the widest."""

from collections.abc import Sequence

import numpy

from ..errors.checks import Width, validated
from .errors import Errors
from .estimator import MetaEmbedding, Views


class Concatenation(MetaEmbedding):
    """All members' vectors behind one another.

    F(s) = [F_1(s); ...; F_J(s)]

    SOURCE: Poerner et al. 2020, section 3.1.
    """

    method = "conc"
    needs_fit = False

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True):
        super().__init__(size=size, normalize=normalize)
        if size is not None:
            raise ValueError(Errors.META_NO_SIZE.format(method=self.method, given=size))

    @property
    def width(self) -> int:
        return sum(self.widths_)

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        for _ in self._blocks(views, names):  # what is not finite is found here, as by the other methods
            pass

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return numpy.hstack(views)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {}
