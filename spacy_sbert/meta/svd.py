"""Truncated singular value decomposition of the concatenation."""

from collections.abc import Sequence

import numpy

from ..similarity.principal_components import components_of_covariance
from .moments import Moments
from .projection import LinearMeta


class SVD(LinearMeta):
    """The directions in which the centred concatenation varies most.

    X - mean = U S V', F(s) = V_d' ([F_1(s); ...; F_J(s)] - mean), with X the n normalised concatenations; V is found
    as the eigenvectors of their covariance. values_ are the singular values S_d over sqrt(n - 1).

    SOURCE: Poerner et al. 2020, section 3.2; Yin and Schuetze 2016, Learning Word Meta-Embeddings.
    """

    method = "svd"

    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        found = components_of_covariance(moments.covariance)
        return numpy.sqrt(numpy.maximum(found.variances[:size], 0.0)), found.axes[:size], found.rank
