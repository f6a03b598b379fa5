"""Generalised canonical correlation analysis of the members."""

from typing import Any

import numpy
from scipy import linalg

from ..errors import Errors
from ..validation import NonNegativeFloat, Width, validated
from .projection import LinearMeta

TAU = 10.0
ROUNDING = 1e-10


class GCCA(LinearMeta):
    """Projections of the members that correlate with one another as much as can be, summed.

    F(s) = sum_j Theta_j (F_j(s) - mean_j), where the columns of [Theta_1, ..., Theta_J]' are the eigenvectors of the
    d largest rho in

        A theta = rho B theta,  A = blocks Sigma_jk for j != k, 0 for j = k,
                                B = blocks Sigma_jj + tau tr(Sigma_jj) / d_j I for j = k, 0 for j != k,

    with Sigma_jk the covariance of the members j and k, and scaled so that theta' B theta = 1. values_ are rho. Of two
    members these are the canonical correlations, if tau is 0.

    tau (float): regularisation, as a share of the mean variance of a member's numbers; at least 0.
    SOURCE: Poerner et al. 2020, section 3.3; Bach and Jordan 2002, Kernel Independent Component Analysis, section 3.2;
        Rastogi et al. 2015, Multiview LSA, for the regularisation.
    """

    method = "gcca"

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True, tau: NonNegativeFloat = TAU):
        super().__init__(size=size, normalize=normalize)
        self.tau = tau

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "tau": self.tau}

    def matrices(self, covariance: numpy.ndarray, widths: list[int]) -> tuple[numpy.ndarray, numpy.ndarray]:
        """A and B of the eigenvalue problem.

        covariance: float64 (D, D), of the concatenation. widths (J ints): d_j.
        RETURNS (float64 (D, D), float64 (D, D)).
        """
        between, within = covariance.copy(), numpy.zeros_like(covariance)
        ends = numpy.cumsum(widths)
        for start, end in zip(ends - widths, ends, strict=True):
            block = covariance[start:end, start:end]
            ridge = self.tau * numpy.trace(block) / (end - start)
            within[start:end, start:end] = block + ridge * numpy.eye(end - start)
            between[start:end, start:end] = 0.0
        return between, within

    def _solve(
        self, covariance: numpy.ndarray, widths: list[int], size: int
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        between, within = self.matrices(covariance, widths)
        total = len(covariance)
        try:
            rho, theta = linalg.eigh(between, within, subset_by_index=[total - size, total - 1])
        except linalg.LinAlgError as error:
            raise ValueError(Errors.META_SINGULAR.format(tau=self.tau)) from error
        rank = int((rho > ROUNDING * abs(rho).max()).sum())
        return rho[::-1], theta.T[::-1], rank
