"""Similarity, correlation and principal components: one definition for all of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy
from numpy.typing import ArrayLike
from thinc.types import Floats2d, Ints2d
from thinc.util import get_array_module, is_cupy_array

from .arrays import as_array, as_rows, checked, numpy_defaults, numpy_state
from .errors import Errors

# Float (n, width), NumPy or CuPy
RowsT = TypeVar("RowsT", numpy.ndarray, Floats2d)
# Float (n,), of the kind of the rows
PerRow = Any


@numpy_defaults
def cosine(u: RowsT, v: RowsT) -> PerRow:
    """Cosine similarity of paired rows.

    cos(u, v) = (u / ||u||) . (v / ||v||), and 0 where u or v is the zero vector.

    u, v (float arrays of shape (n, width), NumPy or CuPy): the paired vectors.
    RETURNS (float array of shape (n,), of the same dtype and device): the similarities, from -1 to
        1 up to rounding.
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    u, v = _paired(u, v)
    return (unit_length(u) * unit_length(v)).sum(axis=1)


@numpy_defaults
def euclidean(u: RowsT, v: RowsT) -> PerRow:
    """Euclidean distance of paired rows: ||u - v|| = sqrt(sum_k (u_k - v_k)^2).

    u, v, and what is returned: see cosine.
    """
    u, v = _paired(u, v)
    return lengths(u - v)


@numpy_defaults
def manhattan(u: RowsT, v: RowsT) -> PerRow:
    """Manhattan distance of paired rows: sum_k |u_k - v_k|.

    u, v, and what is returned: see cosine.
    """
    u, v = _paired(u, v)
    return abs(u - v).sum(axis=1)


def _paired(u: RowsT, v: RowsT) -> tuple[Any, Any]:
    """Return two float arrays of rows to compare; those of NumPy and CuPy as they are.

    RAISES: see as_rows.
    """
    left = _floats(u, "u")
    right = _floats(v, "v")
    are_rows = left.ndim == 2 and right.ndim == 2 and left.shape[1] == right.shape[1]
    # A single row is compared with all
    are_paired = are_rows and (len(left) == len(right) or 1 in (len(left), len(right)))
    if not are_paired:
        raise ValueError(
            f"Cannot compare rows of shapes {left.shape} and {right.shape}: expected two (n, "
            "width)."
        )
    return left, right


def _floats(vectors: Any, name: str) -> Any:
    """Return vectors as floats.

    Differences of bytes and bools would wrap around, or not be defined.
    """
    if (type(vectors) is numpy.ndarray and vectors.dtype.kind == "f") or is_cupy_array(vectors):
        return vectors
    rows = as_rows(vectors, name)
    if rows.dtype.kind != "f":
        return rows.astype("float64")
    return rows


@numpy_defaults
def lengths(rows: RowsT) -> PerRow:
    """Return ||x||, the Euclidean length, float (n,), of each row of a float array (n, width)."""
    _, norms, exponents = scaled_norms(rows)
    return get_array_module(rows).ldexp(norms, exponents)[:, 0]


@numpy_defaults
def unit_length(rows: RowsT) -> RowsT:
    """Scale each row to length 1: x / ||x||; a zero vector stays zero.

    rows (float array of shape (n, width), NumPy or CuPy): the vectors.
    RETURNS (float array of shape (n, width), of the same dtype and device): of length 1 or 0.
    """
    scaled, norms, _ = scaled_norms(rows)
    # 0 / 1 of a zero vector
    return scaled / (norms + (norms == 0))


# Squares that overflow or underflow are computed again
@numpy_state(over="ignore", under="ignore")
def scaled_norms(rows: RowsT) -> tuple[RowsT, RowsT, Ints2d]:
    """Scale very long or short rows by a power of two, so that their squares can be summed.

    x_r = 2^e_r y_r

    rows (float array of shape (n, width), NumPy or CuPy): x, the vectors.
    RETURNS (float (n, width), float (n, 1), int32 (n, 1)): y, its norms ||y_r||, and e, which is 0
        except for rows whose sum of squares overflows, or has lost digits to underflow.
    """
    xp = get_array_module(rows)
    kind = numpy.dtype(rows.dtype).kind
    if kind not in "biuf":
        raise TypeError(
            f"Cannot scale an array of dtype {rows.dtype}: expected real numbers, shape (n, width)."
        )
    scaled = xp.asarray(rows, dtype=None if kind == "f" else "float64")
    squares = (scaled * scaled).sum(axis=1, keepdims=True)
    exponents = xp.zeros(squares.shape, dtype="int32")
    number = numpy.finfo(scaled.dtype)
    odd = ~((squares >= number.tiny / number.eps) & (squares <= number.max))
    if scaled.size and (xp is not numpy or odd.any()):
        # On a GPU all rows are chosen: which are odd is not waited for
        chosen = numpy.flatnonzero(odd) if xp is numpy else slice(len(odd))
        largest = abs(scaled[chosen]).max(axis=1, keepdims=True)
        exponents[chosen] = xp.frexp(largest)[1] * odd[chosen]
        shrunk = xp.ldexp(scaled[chosen], -exponents[chosen])
        scaled = scaled.copy()
        scaled[chosen] = shrunk
        squares[chosen] = (shrunk * shrunk).sum(axis=1, keepdims=True)
    return scaled, xp.sqrt(squares), exponents


def check_count(given: int, most: int, what: str, name: str = "k") -> None:
    """Raise ValueError if `given` is not a whole number from 1 to `most`."""
    is_whole = isinstance(given, int | numpy.integer) and not isinstance(given, bool)
    if not is_whole or not 1 <= given <= most:
        raise ValueError(
            f"Cannot find {given} {what}: expected a whole number, at least 1 and at most {most}, "
            f"as {name}. Ask for fewer, or give more vectors."
        )


_EPSILON = numpy.finfo("float64").eps


class _PrincipalComponents(NamedTuple):
    """The directions in which rows vary, the one of most variance first.

    axes: float64 (k, width), orthonormal; their signs are arbitrary, see flip_signs. variances:
        float64 (k,), along each axis, over n - 1. rank: how many of the variances are more than
            rounding.
    """

    axes: numpy.ndarray
    variances: numpy.ndarray
    rank: int


@numpy_defaults
def principal_components(rows: numpy.ndarray) -> tuple[numpy.ndarray, _PrincipalComponents]:
    """Return the principal components of rows.

    X - mean = U S V', axes = V', variances = S^2 / (n - 1)

    rows (float (n, width)): X, at least one row.
    RETURNS (float64 (width,), _PrincipalComponents): the mean, and min(n, width) components.
    """
    mean = rows.mean(axis=0, dtype="float64")
    deviations, axes = numpy.linalg.svd(rows - mean, full_matrices=False)[1:]
    rounding = max(rows.shape) * _EPSILON * numpy.linalg.norm(rows.astype("float64", copy=False))
    variances = deviations**2 / max(len(rows) - 1, 1)
    return mean, _PrincipalComponents(axes, variances, int((deviations > rounding).sum()))


@numpy_defaults
def components_of_covariance(covariance: numpy.ndarray) -> _PrincipalComponents:
    """Return the principal components of rows from their covariance.

    Its size does not grow with n.

    covariance = V diag(variances) V', axes = V'

    covariance (float64 (width, width)): (X - mean)' (X - mean) / (n - 1).
    RETURNS (_PrincipalComponents): as many as the width.
    """
    from scipy import linalg  # noqa: PLC0415 (a first vector needs no components)

    variances, vectors = linalg.eigh(covariance)
    rounding = len(covariance) * _EPSILON * variances[-1]
    return _PrincipalComponents(vectors.T[::-1], variances[::-1], int((variances > rounding).sum()))


def flip_signs(axes: numpy.ndarray) -> numpy.ndarray:
    """Flip the axes whose number of largest absolute value, the first of equal ones, is negative.

    axes (float (k, width)). RETURNS (float (k, width)): a copy.
    """
    largest = axes[numpy.arange(len(axes)), abs(axes).argmax(axis=1)]
    return axes * numpy.sign(largest)[:, None]


Numbers = Sequence[object] | numpy.ndarray


def spearman(predicted: Numbers, gold: Numbers) -> float | None:
    """Spearman's rank correlation, equal values sharing the mean of their ranks.

    Pearson's correlation of rank(predicted) and rank(gold)

    predicted, gold (n numbers each): what is compared.
    RETURNS (float): from -1 to 1; None where it is not defined: fewer than two numbers, or all of
        one side alike, up to rounding, see varies.
    RAISES (ValueError): if a number is not finite, or the sides differ in length.
    SOURCE: Reimers et al. 2016, Task-Oriented Intrinsic Evaluation of Semantic Textual Similarity,
        argue for it.

    Example:
        spearman([0.1, 0.5, 0.9], [1, 3, 5])  # 1.0

    """
    return _correlation("spearmanr", predicted, gold)


def pearson(predicted: Numbers, gold: Numbers) -> float | None:
    """Pearson's correlation.

    sum_i (p_i - mean(p)) (g_i - mean(g)) / (n std(p) std(g))

    predicted, gold (n numbers each): what is compared.
    RETURNS (float): from -1 to 1; None where it is not defined, see spearman.
    RAISES (ValueError): see spearman.
    """
    return _correlation("pearsonr", predicted, gold)


@numpy_defaults
def _correlation(name: str, predicted: Numbers, gold: Numbers) -> float | None:
    from scipy import stats  # noqa: PLC0415 (a tenth of the time to a first vector, which needs no scores)

    x = _float64(predicted, "predicted")
    y = _float64(gold, "gold")
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"Cannot correlate arrays of shapes {x.shape} and {y.shape}: expected two of shape "
            "(n,)."
        )
    _check_finite(x, "predicted")
    _check_finite(y, "gold")
    if len(x) < 2 or not varies(x) or not varies(y):
        return None
    correlate = getattr(stats, name)
    return float(correlate(x, y)[0])


def _check_finite(numbers: numpy.ndarray, side: str) -> None:
    finite = numpy.isfinite(numbers)
    if not finite.all():
        place = int(finite.argmin())
        raise ValueError(
            f"Cannot correlate: {side} value {place} is {numbers[place]}. Expected finite "
            "numbers: look for texts whose vectors are not finite."
        )


def varies(values: Numbers) -> bool:
    """Return whether numbers differ by more than rounding.

    That is 1e-6 of the largest in float32, and 1e-12 in float64.

    values (at least one number): numbers that float32 holds exactly were computed in float32,
        whatever holds them now: a list or a float64 array of float32 cosines is rounded as they
        are. Whole numbers are exact.
    """
    numbers = _float64(values, "values")
    low = float(numbers.min())
    high = float(numbers.max())
    largest = max(-low, high)
    # Cosines of 384 products
    if high - low > 1e-6 * largest:
        return True
    return high - low > 1e-12 * largest and not _are_single(numbers)


# Numbers beyond float32 become infinite, and so are none of it
@numpy_state(over="ignore")
def _are_single(numbers: numpy.ndarray) -> bool:
    """Return whether float32 holds numbers exactly, and they are no whole ones."""
    is_single = numpy.array_equal(numbers, numbers.astype("float32"))
    return is_single and not numpy.array_equal(numbers, numpy.rint(numbers))


def _float64(values: Numbers, name: str) -> numpy.ndarray:
    return as_array(values, name, "numbers of shape (n,)").astype("float64", copy=False)


@numpy_defaults
def cos_sim(u: ArrayLike, v: ArrayLike) -> numpy.ndarray:
    """Return the cosine of each vector of u and each of v.

    `spacy_sbert.search.exact` finds the best of many.

    cos(u_i, v_j) = (u_i / ||u_i||) . (v_j / ||v_j||), and 0 where one is the zero vector.

    u, v (float arrays or CPU tensors of shape (n, width) and (m, width)): a single vector is one
        row.
    RETURNS (float32 (n, m)). RAISES (ValueError): for other shapes, or numbers that are not finite.

    Example:
        cos_sim([[3.0, 4.0]], [[4.0, 3.0], [0.0, 0.0]])  # [[0.96, 0.0]]

    """
    rows, others = _checked_rows(u, v)
    return unit_length(rows) @ unit_length(others).T


def pairwise_cos_sim(u: ArrayLike, v: ArrayLike) -> numpy.ndarray:
    """Return the cosine of each vector of u and the one of v in the same row, see cos_sim.

    RETURNS (float32 (n,)). RAISES (ValueError): also if u and v have different numbers of rows.
    """
    rows, others = _checked_rows(u, v)
    if len(rows) != len(others):
        raise ValueError(
            f"Cannot compare {len(rows)} vectors with {len(others)} pairwise: expected as many of "
            "both. similarity compares each with each."
        )
    return cosine(rows, others)


def max_sim(query: ArrayLike, docs: Sequence[ArrayLike]) -> numpy.ndarray:
    """Return how well the tokens of each text match those of a query: MaxSim, late interaction.

    max_sim(q, d) = sum_i max_j cos(q_i, d_j)

    A vector of zeros has no direction: a token of the query adds 0, one of a text is left out. A
    text that has no others scores 0.

    query (float array of shape (tokens, width)): the vectors of its tokens.
    docs (Sequence): those of each text, of shape (tokens, width) each.
    RETURNS (float32 (docs,)): up to the number of the query's tokens. RAISES (ValueError): if an
        array is of another shape or width, has no row, or a number is not finite.
    SOURCE: Khattab and Zaharia 2020, ColBERT, section 3.3.

    Example:
        max_sim([[1.0, 0.0], [0.0, 1.0]], [[[2.0, 0.0]], [[1.0, 1.0]]])  # [1.0, 1.4142135]

    """
    rows = checked(query, "query")
    scores = numpy.zeros(len(docs), dtype="float32")
    for number, doc in enumerate(docs):
        tokens = checked(doc, f"docs[{number}]")
        tokens = tokens[tokens.any(axis=1)]
        if len(tokens):
            scores[number] = cos_sim(rows, tokens).max(axis=1).sum()
    return scores


def check_widths(ours: int, theirs: int) -> None:
    """Raise ValueError if two widths of vectors differ."""
    if ours != theirs:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=ours, theirs=theirs))


def _checked_rows(u: ArrayLike, v: ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]:
    rows = _rows_of(u, "u")
    others = _rows_of(v, "v")
    check_widths(rows.shape[1], others.shape[1])
    return rows, others


def _rows_of(side: ArrayLike, name: str) -> numpy.ndarray:
    array = as_array(side, name, "vectors, a float array of shape (n, width)")
    if array.ndim == 1:
        array = array[None]
    return checked(array, name)
