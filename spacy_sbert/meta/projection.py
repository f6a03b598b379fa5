"""Meta-embeddings that are one linear projection of the centred concatenation."""

import itertools
from abc import abstractmethod
from collections.abc import Sequence

import numpy

from ..errors.progress import progress_bar, ticking
from ..similarity.principal_components import components_of_covariance, positive
from .errors import MORE_SENTENCES, Errors
from .estimator import MetaEmbedding, Views
from .moments import Moments

CONSTANT = 1e-12  # variance of a member, as a share of its mean square, that counts as 0


class LinearMeta(MetaEmbedding):
    """F(s) = C ([F_1(s); ...; F_J(s)] - mean), with a mean and a projection C learned from streamed moments.

    mean_: float64 (D,), of the concatenation, D = sum_j d_j. components_: float64 (d, D), the projection C.
    values_: float64 (d,), what each component is worth, the best first: see the method.
    """

    learned = ("mean_", "components_", "values_")
    mean_: numpy.ndarray
    components_: numpy.ndarray
    values_: numpy.ndarray

    def most_directions(self, widths: Sequence[int], n: int) -> int:
        """How many directions there are at the most: those of the centred concatenations. For the arguments see
        check_size."""
        return min(sum(widths), max(n - 1, 0))

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        widths = [view.shape[1] for view in views]
        moments = Moments(sum(widths))
        with progress_bar(len(views[0]), desc="Fitting", unit="sentences", shown=progress) as bar:
            for block in self._blocks(views, names):
                with numpy.errstate(over="ignore", invalid="ignore"):  # it is looked at when all are added up
                    moments.update(numpy.hstack(block))
                bar.update(len(block[0]))
        with ticking(f"Solving for {sum(widths)} numbers", shown=progress):
            self.fit_moments(moments, widths, names)

    def fit_moments(self, moments: Moments, widths: Sequence[int], names: Sequence[str]) -> "LinearMeta":
        """Learn from moments alone: those of the concatenation of the members' vectors.

        moments (Moments): of width D. widths (J ints): d_j. names (J strings): of the members.
        RETURNS (LinearMeta): self.
        RAISES (ValueError): if a member is the same for every sentence, or there are fewer than d directions.
        """
        covariance = moments.covariance
        for name, part in zip(names, parts(widths), strict=True):
            with numpy.errstate(over="ignore"):  # it is looked at
                variance, square = covariance.diagonal()[part].sum(), (moments.mean[part] ** 2).sum()
            if not numpy.isfinite(variance + square):
                raise ValueError(Errors.META_LARGE_NUMBERS.format(name=name))
            if not variance > CONSTANT * max(square, numpy.finfo("float64").tiny):
                raise ValueError(Errors.META_ZERO_VARIANCE.format(name=name, n=moments.n))
        most = self.most_directions(widths, moments.n)
        size = min(self.size or max(widths), most)
        values, components, found = self._solve(moments, list(widths), size, names)
        rank = min(found, most)  # rounding may look like one more
        if self.size is not None and rank < self.size:
            raise ValueError(self._too_few(rank, covariance, widths, names, moments.n))
        size = min(size, rank)
        self.mean_, self.components_, self.values_ = moments.mean.copy(), positive(components[:size]), values[:size]
        self.names_, self.widths_, self.size_ = tuple(names), tuple(widths), size
        return self

    def _too_few(
        self, rank: int, covariance: numpy.ndarray, widths: Sequence[int], names: Sequence[str], n: int
    ) -> str:
        ranks = [rank_of(covariance[part, part]) for part in parts(widths)]
        each = ", ".join(f"{name} {own} of {width}" for name, own, width in zip(names, ranks, widths, strict=True))
        found = {"size": self.size, "method": self.method, "rank": rank, "names": ", ".join(names), "each": each}
        more = MORE_SENTENCES if n - 1 in ranks or n - 1 == rank else ""
        return Errors.META_RANK.format(**found, n=n) + more

    @abstractmethod
    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        """Values (size,), components (size, D), best first, and how many there can be at any size."""

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return (numpy.hstack(views) - self.mean_) @ self.components_.T

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        total, size = sum(self.widths_), self.width
        return {"mean_": (total,), "components_": (size, total), "values_": (size,)}


def parts(widths: Sequence[int]) -> list[slice]:
    """Where each member stands in the concatenation; widths (J ints): d_j."""
    return [slice(start, end) for start, end in itertools.pairwise([0, *itertools.accumulate(widths)])]


def rank_of(covariance: numpy.ndarray) -> int:
    """How many directions a covariance, float64 (D, D), has, but for rounding."""
    return components_of_covariance(covariance).rank
