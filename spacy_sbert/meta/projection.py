"""Meta-embeddings that are one linear projection of the centred concatenation."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy

from ..errors import Errors
from .estimator import MetaEmbedding, Views
from .moments import Moments

CONSTANT = 1e-12  # variance of a member, as a share of its mean square, that is none


class LinearMeta(MetaEmbedding):
    """F(s) = C ([F_1(s); ...; F_J(s)] - mean), with a mean and a projection C learned from streamed moments.

    mean_: float64 (D,), of the concatenation, D = sum_j d_j.
    components_: float64 (d, D), the projection C.
    values_: float64 (d,), what each component is worth, the best first: see the method.
    """

    learned = ("mean_", "components_", "values_")
    mean_: numpy.ndarray
    components_: numpy.ndarray
    values_: numpy.ndarray

    @property
    def width(self) -> int:
        return self.size or max(self.widths_, default=0)

    def _fit(self, views: Views, names: Sequence[str]) -> None:
        widths = [view.shape[1] for view in views]
        moments = Moments(sum(widths))
        for block in self._blocks(views, names):
            moments.update(numpy.hstack(block))
        self.fit_moments(moments, widths, names)

    def fit_moments(self, moments: Moments, widths: Sequence[int], names: Sequence[str]) -> "LinearMeta":
        """Learn from moments alone: those of the concatenation of the members' vectors.

        moments (Moments): of width D. widths (J ints): d_j. names (J strings): of the members.
        RETURNS (LinearMeta): self.
        RAISES (ValueError): if a member is the same for every sentence, or fewer than d directions are left.
        """
        size, total = self.size or max(widths), sum(widths)
        if size > total:
            raise ValueError(Errors.META_RANK.format(size=size, method=self.method, rank=total, names=", ".join(names)))
        covariance = moments.covariance
        ends = numpy.cumsum(widths)
        for name, start, end in zip(names, ends - widths, ends, strict=True):
            variance, square = covariance.diagonal()[start:end].sum(), (moments.mean[start:end] ** 2).sum()
            if not variance > CONSTANT * max(square, numpy.finfo("float64").tiny):
                raise ValueError(Errors.META_ZERO_VARIANCE.format(name=name, n=moments.n))
        values, components, rank = self._solve(covariance, list(widths), size)
        if rank < size:
            raise ValueError(Errors.META_RANK.format(size=size, method=self.method, rank=rank, names=", ".join(names)))
        signs = numpy.sign(components[numpy.arange(size), abs(components).argmax(axis=1)])
        self.mean_, self.components_, self.values_ = moments.mean.copy(), components * signs[:, None], values
        self.names_, self.widths_ = tuple(names), tuple(widths)
        return self

    @abstractmethod
    def _solve(
        self, covariance: numpy.ndarray, widths: list[int], size: int
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        """Values (size,), components (size, D), best first, and how many components there are that mean something."""

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return (numpy.hstack(views) - self.mean_) @ self.components_.T

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        total, size = sum(self.widths_), self.width
        return {"mean_": (total,), "components_": (size, total), "values_": (size,)}
