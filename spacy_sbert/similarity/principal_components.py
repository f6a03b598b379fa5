"""Principal components, of rows or of their covariance: the one definition that pictures, evaluation and meta share."""

from typing import NamedTuple

import numpy
from scipy import linalg

EPSILON = numpy.finfo("float64").eps


class PrincipalComponents(NamedTuple):
    """The directions in which rows vary, the one of most variance first.

    axes: float64 (k, width), orthonormal; their signs are arbitrary, see positive. variances: float64 (k,), along each
        axis, over n - 1. rank: how many of the variances are more than rounding.
    """

    axes: numpy.ndarray
    variances: numpy.ndarray
    rank: int


def principal_components(rows: numpy.ndarray) -> tuple[numpy.ndarray, PrincipalComponents]:
    """The principal components of rows.

    X - mean = U S V', axes = V', variances = S^2 / (n - 1)

    rows (float (n, width)): X, at least one row.
    RETURNS (float64 (width,), PrincipalComponents): the mean, and min(n, width) components.
    """
    mean = rows.mean(axis=0, dtype="float64")
    deviations, axes = numpy.linalg.svd(rows - mean, full_matrices=False)[1:]
    rounding = max(rows.shape) * EPSILON * numpy.linalg.norm(rows.astype("float64", copy=False))
    variances = deviations**2 / max(len(rows) - 1, 1)
    return mean, PrincipalComponents(axes, variances, int((deviations > rounding).sum()))


def components_of_covariance(covariance: numpy.ndarray) -> PrincipalComponents:
    """The principal components of rows whose covariance is known, a size that does not grow with n.

    covariance = V diag(variances) V', axes = V'

    covariance (float64 (width, width)): (X - mean)' (X - mean) / (n - 1).
    RETURNS (PrincipalComponents): as many as the width.
    """
    variances, vectors = linalg.eigh(covariance)
    rounding = len(covariance) * EPSILON * variances[-1]
    return PrincipalComponents(vectors.T[::-1], variances[::-1], int((variances > rounding).sum()))


def positive(axes: numpy.ndarray) -> numpy.ndarray:
    """The axes with the sign that makes the number of the largest absolute value, the first of equal ones, positive.

    axes (float (k, width)). RETURNS (float (k, width)): a copy.
    """
    largest = axes[numpy.arange(len(axes)), abs(axes).argmax(axis=1)]
    return axes * numpy.sign(largest)[:, None]
