"""Bootstrap confidence intervals and paired tests."""

from collections.abc import Callable, Mapping, Sequence

import numpy
from scipy import stats

from ..similarity import varies

Resampled = Callable[[numpy.ndarray], numpy.ndarray]  # indices (b, n) -> the statistic of each row, (b,)
_BLOCK = 2**21  # numbers ranked at once
_ENDS = (2.5, 97.5)  # percentiles


def spearman_of(predicted: numpy.ndarray, gold: numpy.ndarray) -> Resampled:
    """Return Spearman's correlation of resamples; NaN where a resample is all alike on one side."""
    if not (varies(predicted) and varies(gold)):
        return lambda indices: numpy.full(len(indices), numpy.nan)
    return lambda indices: _spearman_rows(predicted[indices], gold[indices])


def mean_of(values: numpy.ndarray) -> Resampled:
    """Return the mean of resamples, such as an accuracy of 0 and 1."""
    return lambda indices: values[indices].mean(axis=1)


def resample(statistic: Resampled, n: int, resamples: int, seed: int | Sequence[int]) -> numpy.ndarray:
    """Compute a statistic of resamples of n examples, drawn with replacement.

    statistic (Callable): indices, int (b, n), to the statistic of each resample, float (b,).
    n, resamples (int): examples; resamples. seed (int, or several): the same seed draws the same
    resamples, whatever the statistic.
    RETURNS (float64 (resamples,)).
    """
    rng = numpy.random.default_rng(seed)
    rows = max(1, _BLOCK // n)
    blocks = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return numpy.concatenate([statistic(rng.integers(n, size=(block, n))) for block in blocks])


def interval(drawn: numpy.ndarray) -> list[float] | None:
    """Return the middle 95 % of resampled statistics without undefined ones; None where most are undefined."""
    defined = drawn[numpy.isfinite(drawn)]
    return [float(end) for end in numpy.percentile(defined, _ENDS)] if 2 * len(defined) > len(drawn) else None


def intervals_of(
    statistics: Mapping[str, Resampled], n: int, resamples: int, seed: int
) -> dict[str, list[float] | None]:
    """Return the interval of each statistic of the same n examples by its path; none of them without resamples."""
    if not resamples:
        return {}
    return {path: interval(resample(statistic, n, resamples, seed)) for path, statistic in statistics.items()}


def paired_difference(ours: Resampled, theirs: Resampled, n: int, resamples: int, seed: int) -> dict[str, float] | None:
    """Test the difference of two models' statistics on the same examples.

    ours, theirs (Callable): see resample; both see the same resamples.
    RETURNS (dict): difference, of the whole sample; low and high, the ends of its 95 % interval; p, two-sided: twice
        the smaller fraction of resamples on one side of 0, the sample itself counted too. None where most resamples are
        undefined.
    SOURCE: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13: the percentile interval, inverted.
    """
    drawn = resample(lambda indices: ours(indices) - theirs(indices), n, resamples, seed)
    ends = interval(drawn)
    if ends is None:
        return None
    whole = numpy.arange(n)[None]
    defined = drawn[numpy.isfinite(drawn)]
    tail = (1 + min((defined <= 0).sum(), (defined >= 0).sum())) / (1 + len(defined))
    difference = float((ours(whole) - theirs(whole))[0])
    return {"difference": difference, "low": ends[0], "high": ends[1], "p": float(min(1.0, 2 * tail))}


def _spearman_rows(x: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
    x, y = (stats.rankdata(side, axis=1) for side in (x, y))
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    norms = numpy.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return numpy.divide((x * y).sum(axis=1), norms, out=numpy.full(len(x), numpy.nan), where=norms > 0)
