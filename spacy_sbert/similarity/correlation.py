"""Correlation of predictions with gold values: the one definition that training and evaluation report."""

from collections.abc import Sequence
from typing import cast

import numpy

from .errors import Errors

ROUNDING = {"float32": 1e-6}  # of the largest number, by dtype: cosines of 384 products
DOUBLE_ROUNDING = 1e-12
Numbers = Sequence[object] | numpy.ndarray


def spearman(predicted: Numbers, gold: Numbers) -> float | None:
    """Spearman's rank correlation, equal values sharing the mean of their ranks.

    Pearson's correlation of rank(predicted) and rank(gold)

    predicted, gold (n numbers each): what is compared.
    RETURNS (float): from -1 to 1; None where it is not defined: fewer than two numbers, or all of one side alike,
        up to rounding.
    RAISES (ValueError): if a number is not finite, or the sides differ in length.
    SOURCE: Reimers et al. 2016, Task-Oriented Intrinsic Evaluation of Semantic Textual Similarity, argue for it.
    """
    from scipy import stats  # takes a tenth of the time to a first vector, which needs no scores

    checked = _checked(predicted, gold)
    return float(stats.spearmanr(*checked)[0]) if _is_defined(predicted, gold) else None


def pearson(predicted: Numbers, gold: Numbers) -> float | None:
    """Pearson's correlation.

    sum_i (p_i - mean(p)) (g_i - mean(g)) / (n std(p) std(g))

    predicted, gold (n numbers each): what is compared.
    RETURNS (float): from -1 to 1; None where it is not defined, see spearman.
    RAISES (ValueError): see spearman.
    """
    from scipy import stats

    checked = _checked(predicted, gold)
    return float(stats.pearsonr(*checked)[0]) if _is_defined(predicted, gold) else None


def _checked(predicted: Numbers, gold: Numbers) -> tuple[numpy.ndarray, numpy.ndarray]:
    sides = cast(tuple[numpy.ndarray, numpy.ndarray], (predicted, gold))
    arrays = numpy.asarray(sides[0], dtype="float64"), numpy.asarray(sides[1], dtype="float64")
    if arrays[0].shape != arrays[1].shape or arrays[0].ndim != 1:
        raise ValueError(Errors.UNEQUAL_LENGTHS.format(predicted=arrays[0].shape, gold=arrays[1].shape))
    for name, array in zip(("predicted", "gold"), arrays, strict=True):
        if not numpy.isfinite(array).all():
            place = int(numpy.flatnonzero(~numpy.isfinite(array))[0])
            raise ValueError(Errors.NOT_A_FINITE_NUMBER.format(name=name, given=array[place], place=place))
    return arrays


def _is_defined(predicted: Numbers, gold: Numbers) -> bool:
    return len(gold) > 1 and varies(predicted) and varies(gold)


def varies(values: Numbers) -> bool:
    """Whether numbers differ by more than the rounding of their computation, 1e-6 of the largest in float32, 1e-12 in
    float64."""
    array = numpy.asarray(values)
    return bool(numpy.ptp(array) > ROUNDING.get(array.dtype.name, DOUBLE_ROUNDING) * numpy.abs(array).max())
