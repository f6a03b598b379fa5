"""From sentence vectors to points on a plane."""

import numpy
from numpy.typing import ArrayLike

from ..arrays import checked
from ..errors import import_extra
from ..similarity import flip_signs, principal_components, unit_length

AXES = 2
PERPLEXITY = 30.0
# Points for which t-SNE needs no approximation
MAX_EXACT = 200
# Points that t-SNE places: about half a minute on two cores
MAX_TSNE = 5000
# Placed points among which each further point is placed
NEIGHBOURS = 5
# Points whose neighbours are looked for at once
_BLOCK = 1000


def pca(vectors: ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Project vectors of length 1 to their first two principal components.

    X - mean = U S V', points = (X - mean) V_2, shares = S_2^2 / sum_k S_k^2

    The sign of an axis is such that its number of the largest absolute value, the first of equal
    ones, is positive.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row, of any length.
    RETURNS (float64 array of shape (n, 2), float64 array of shape (2,)): the points, and the share
        of the variance that each axis holds; an axis along which nothing varies is 0.
    RAISES (ValueError): if the array has another shape or a number that is not finite, or all
        directions are equal.
    """
    rows = unit_length(checked(vectors, "vectors", "float64"))
    mean, (axes, variances, rank) = principal_components(rows)
    if not rank:
        raise ValueError(
            f"All {len(rows)} vectors have the same direction: there is nothing to map. Draw "
            "others."
        )
    points = numpy.zeros((len(rows), AXES))
    shares = numpy.zeros(AXES)
    known = min(AXES, rank)
    points[:, :known] = (rows - mean) @ flip_signs(axes[:known]).T
    shares[:known] = variances[:known] / variances.sum()
    return points, shares


def import_tsne() -> type:
    """Return scikit-learn's t-SNE. RAISES (ImportError): if scikit-learn is not installed."""
    return import_extra("sklearn.manifold", "t-SNE needs scikit-learn", "visual").TSNE


def tsne(vectors: ArrayLike, *, seed: int = 0) -> numpy.ndarray:
    """Project vectors of length 1 by t-SNE, initialized with PCA.

    Neighbours stay close; distances are lost.

    Of more than 5,000 vectors a random sample of 5,000 is projected. Each of the others is placed,
    axis by axis, at the median of the 5 most similar of the sample.

    vectors (float array of shape (n, width), NumPy or CuPy): a vector a row. seed (int): of what is
        random.
    RETURNS (float64 array of shape (n, 2)): the points.
    RAISES (ValueError): as pca. RAISES (ImportError): if scikit-learn is not installed.
    SOURCE: van der Maaten and Hinton 2008, Visualizing Data using t-SNE; 2014, Accelerating t-SNE
        using Tree-Based Algorithms (more than 200 vectors). Perplexity 30, or (n - 1) / 3 if that
        is less.
    """
    model_of = import_tsne()
    rows = unit_length(checked(vectors, "vectors", "float64"))
    if len(rows) > MAX_TSNE:
        return _from_sample(rows, seed)
    points = pca(rows)[0]
    # As scikit-learn scales its own, which is not exact
    start = 1e-4 * points / points[:, 0].std()
    method = "exact" if len(points) <= MAX_EXACT else "barnes_hut"
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    model = model_of(AXES, perplexity=perplexity, init=start, method=method, random_state=seed)
    return model.fit_transform(rows).astype("float64")


def _from_sample(rows: numpy.ndarray, seed: int) -> numpy.ndarray:
    """Return t-SNE's points of a sample, and points of the other rows among their neighbours."""
    order = numpy.random.default_rng(seed).permutation(len(rows))
    chosen = numpy.sort(order[:MAX_TSNE])
    others = numpy.sort(order[MAX_TSNE:])
    points = numpy.zeros((len(rows), AXES))
    points[chosen] = tsne(rows[chosen], seed=seed)
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        distances = -(rows[block] @ rows[chosen].T)
        nearest = numpy.argpartition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        points[block] = numpy.median(points[chosen[nearest]], axis=1)
    return points
