"""k-means clusters of a collection."""

from typing import TYPE_CHECKING, Annotated

import numpy
from numpy.typing import ArrayLike
from pydantic import Field

from ..errors.checks import Seed, validated
from ..similarity import unit_length
from ..similarity.rows import check_count, checked
from .clustering import by_appearance
from .errors import Errors

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

MOST_BEGINNINGS = 10_000  # each takes as long as the first


def import_kmeans() -> "type[KMeans]":
    """Return scikit-learn's k-means. RAISES (ImportError): if scikit-learn is not installed."""
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise ImportError(Errors.SEARCH_NO_SKLEARN) from error
    return KMeans


@validated
def kmeans_clusters(
    vectors: ArrayLike, *, n_clusters: int, seed: Seed = 0, n_init: Annotated[int, Field(ge=1, le=MOST_BEGINNINGS)] = 10
) -> numpy.ndarray:
    """Clusters whose vectors, made of length 1, are as near to their mean as k-means can bring them.

    minimise sum_i ||v_i / ||v_i|| - m_c(i)||^2, where m_c is the mean of cluster c

    vectors (float array of shape (n, width), NumPy or CuPy): the collection, a vector a row.
    n_clusters (int): how many clusters, from 1 to n; of equal vectors scikit-learn finds fewer, and warns.
    seed (int): of the means to begin with. n_init (int): how many beginnings are tried, of which the best is kept.
    RETURNS (int64 array of shape (n,)): the cluster of each vector, numbered from 0 in the order of appearance.
    RAISES (ValueError): if the array is of another shape or holds a number that is not finite, or a count
        is out of range; (ImportError): if scikit-learn is not installed.
    SOURCE: Lloyd 1982; Arthur and Vassilvitskii 2007, k-means++, for the beginnings.
    """
    rows = unit_length(checked(vectors, "vectors"))
    check_count(n_clusters, len(rows), f"clusters of {len(rows)} vectors", "n_clusters")
    kmeans = import_kmeans()
    return by_appearance(kmeans(n_clusters, n_init=n_init, random_state=seed).fit(rows).labels_)
