"""From sentence vectors to points on a plane."""

from typing import Any

import numpy

from ..similarity import unit_length
from ..similarity.rows import checked
from .errors import Errors

AXES = 2
PERPLEXITY = 30.0
FEW = 200  # points, for which t-SNE needs no approximation


def pca(vectors: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Principal components: the points on the two axes along which vectors of length 1 vary most.

    X - mean = U S V', points = (X - mean) V_2, shares = S_2^2 / sum_k S_k^2

    The sign of an axis is such that its number of the largest absolute value, the first of equal ones, is positive.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row, of any length.
    RETURNS (float64 array of shape (n, 2), float64 array of shape (2,)): the points, and the share of the variance that
        each axis holds; an axis along which nothing varies is 0.
    RAISES (ValueError): if the array has not that shape or a number that is not finite, or if all directions are equal.
    """
    rows = unit_length(checked(vectors, "vectors", "float64"))
    centred = rows - rows.mean(axis=0)
    values, axes = numpy.linalg.svd(centred, full_matrices=False)[1:]
    rounding = max(centred.shape) * numpy.finfo("float64").eps * numpy.linalg.norm(rows)
    if values[0] <= rounding:
        raise ValueError(Errors.VISUAL_ONE_DIRECTION.format(n=len(rows)))
    points, shares = numpy.zeros((len(rows), AXES)), numpy.zeros(AXES)
    for axis in range(min(AXES, int((values > rounding).sum()))):
        sign = numpy.sign(axes[axis, numpy.abs(axes[axis]).argmax()])
        points[:, axis] = centred @ (sign * axes[axis])
        shares[axis] = values[axis] ** 2 / (values**2).sum()
    return points, shares


def tsne(vectors: Any, *, seed: int = 0) -> numpy.ndarray:
    """t-SNE of vectors of length 1, from their principal components on: neighbours stay close, distances are lost.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row. seed (int): of what is random.
    RETURNS (float64 array of shape (n, 2)): the points.
    RAISES (ValueError): as pca. RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: van der Maaten and Hinton 2008, Visualizing Data using t-SNE; 2014, Accelerating t-SNE using
        Tree-Based Algorithms (more than 200 vectors). Perplexity 30, or (n - 1) / 3 if that is less.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError(Errors.VISUAL_NO_SKLEARN) from error
    points = pca(vectors)[0]
    start = 1e-4 * points / points[:, 0].std()  # as scikit-learn scales its own, which is not exact
    method = "exact" if len(points) <= FEW else "barnes_hut"
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    model = TSNE(AXES, perplexity=perplexity, init=start, method=method, random_state=seed)
    return model.fit_transform(unit_length(checked(vectors, "vectors", "float64"))).astype("float64")
