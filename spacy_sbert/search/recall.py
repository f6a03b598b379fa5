"""How much of what exact search finds another search finds, too."""

import numpy

from .errors import Errors


def recall(found: numpy.ndarray, exact: numpy.ndarray) -> float:
    """Recall@k: the share of the k nearest vectors that are among the k found, the mean over queries.

    mean_i |found_i & exact_i| / k

    found, exact (int64 arrays of shape (queries, k)): rows of vectors, as `nearest` returns them.
    RETURNS (float): from 0 to 1.
    RAISES (ValueError): if the shapes differ, or there is nothing in them.
    SOURCE: Aumüller et al. 2018, ANN-Benchmarks, section 3.
    """
    _check(found, exact)
    common = [len(numpy.intersect1d(ours, theirs)) for ours, theirs in zip(found, exact, strict=True)]
    return float(numpy.mean(common)) / exact.shape[1]


def first_found(found: numpy.ndarray, exact: numpy.ndarray) -> float:
    """The share of queries whose nearest vector is among the k found.

    found, exact (int64 arrays of shape (queries, k)): see recall.
    RETURNS (float): from 0 to 1.
    RAISES (ValueError): if the shapes differ, or there is nothing in them.
    """
    _check(found, exact)
    return float((found == exact[:, :1]).any(axis=1).mean())


def _check(found: numpy.ndarray, exact: numpy.ndarray) -> None:
    if found.shape != exact.shape or found.ndim != 2 or found.size == 0:
        raise ValueError(Errors.SEARCH_RECALL_SHAPES.format(found=found.shape, exact=exact.shape))
