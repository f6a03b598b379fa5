"""Generalised canonical correlation analysis of the members."""

from collections.abc import Iterator, Sequence

import numpy
from scipy import linalg

from ..errors.checks import NonNegativeFloat, Width, validated
from .errors import Errors, Warnings
from .moments import Moments
from .projection import LinearMeta, parts, rank_of

TAU = 10.0
ROUNDING = 1e-10
SINGULAR = 1e-12  # smallest eigenvalue of a matrix, as a share of the largest, that cannot be told from 0


class GCCA(LinearMeta):
    """Projections of the members that correlate with one another as much as can be, summed.

    F(s) = sum_j Theta_j (F_j(s) - mean_j), where the columns of [Theta_1, ..., Theta_J]' are the eigenvectors of the
    d largest rho in

        A theta = rho B theta,  A = blocks Sigma_jk for j != k, 0 for j = k,
                                B = blocks Sigma_jj + tau tr(Sigma_jj) / d_j I for j = k, 0 for j != k,

    with Sigma_jk the covariance of the members j and k, and scaled so that theta' B theta = 1. values_ are rho,
    whatever their sign: there are as many as the members have numbers in all, and they add up to 0. Of two members, the
    positive ones are the canonical correlations if tau is 0, the negative ones are the same with the other sign, and
    the rest is 0. Where several rho are equal, their theta are some basis of one space.

    tau (float): regularisation, as a share of the mean variance of a member's numbers; at least 0.
    SOURCE: Poerner et al. 2020, section 3.3; Bach and Jordan 2002, Kernel Independent Component Analysis, section 3.2;
        Rastogi et al. 2015, Multiview LSA, for the regularisation.
    """

    method = "gcca"

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True, tau: NonNegativeFloat = TAU):
        super().__init__(size=size, normalize=normalize)
        self.tau = tau
        self._n_positive: int | None = None  # of values_, but for rounding; what is loaded has no notes

    def matrices(self, covariance: numpy.ndarray, widths: list[int]) -> tuple[numpy.ndarray, numpy.ndarray]:
        """A and B of the eigenvalue problem.

        covariance: float64 (D, D), of the concatenation. widths (J ints): d_j.
        RETURNS (float64 (D, D), float64 (D, D)).
        """
        between, within = covariance.copy(), numpy.zeros_like(covariance)
        for part, width in zip(parts(widths), widths, strict=True):
            block = covariance[part, part]
            within[part, part] = block + self.tau * numpy.trace(block) / width * numpy.eye(width)
            between[part, part] = 0.0
        return between, within

    def notes(self, name: str) -> Iterator[str]:
        yield from super().notes(name)
        if self._n_positive is not None and self._n_positive < self.width:
            counts = {"size": self.width, "count": self.width - self._n_positive, "positive": self._n_positive}
            yield Warnings.META_NOT_POSITIVE.format(name=name, **counts)

    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        """RAISES (ValueError): if B is singular, or A is 0, so that every direction is as good as any other."""
        covariance, conditions = moments.covariance, []
        between, within = self.matrices(covariance, widths)
        total = len(covariance)
        for name, part, width in zip(names, parts(widths), widths, strict=True):
            lowest, highest = linalg.eigvalsh(within[part, part])[[0, -1]]
            if lowest <= SINGULAR * highest:
                rank = rank_of(covariance[part, part])
                raise ValueError(Errors.META_SINGULAR.format(name=name, tau=self.tau, rank=rank, width=width))
            conditions.append(highest / lowest)
        rho, theta = linalg.eigh(between, within, subset_by_index=[total - size, total - 1])
        # What is rounding in Sigma_jk is divided by the roots of the smallest eigenvalues of B_jj and B_kk.
        of_pair = numpy.prod(sorted(conditions)[-2:]) ** 0.5
        rounding = max(ROUNDING * abs(rho).max(), total * numpy.finfo("float64").eps * of_pair)
        self._n_positive = int((rho > rounding).sum())
        if not self._n_positive:  # they add up to 0: then all of them are 0
            joined = ", ".join(names)
            raise ValueError(Errors.META_UNCORRELATED.format(names=joined, method=self.method, n=moments.n))
        return rho[::-1], theta.T[::-1], total
