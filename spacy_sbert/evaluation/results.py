"""Results of evaluations, which are JSON: files, figures, bootstrap intervals and paired tests."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy
from scipy import stats

from ..files.atomic import check_input
from ..files.checksum import KEY, verify_json
from ..similarity import varies
from ..validation import short_repr

FORMAT = "spacy-sbert evaluation 1"
_PARTS = ("model", "versions", "settings", "tasks", "skipped", "failed")
# A score that was not measured; one that is not defined is None
ABSENT: Literal["-"] = "-"
# The mean squared error, the only score that is not a share
MSE = "mse"
Figure = float | Literal["-"] | None
# Results, see evaluate_suites; the result of a task, see Task.run; scores, nested, of a variant
Json = dict[str, Any]


def read_results(path: str | Path) -> Json:
    """Read the results of an evaluation that were saved as JSON.

    path (str or Path): the file.
    RETURNS (dict): see evaluate_suites.
    RAISES (ValueError): if it is not such a file; the message names it. (OSError): if it cannot be
        read.
    """
    path = Path(path)
    check_input(path)
    try:
        results = json.loads(path.read_text(encoding="utf8"))
        # Written by hand, results have no checksum
        if isinstance(results, dict) and KEY in results:
            results = verify_json(results)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be read as results of an evaluation: {error}. Give a file that "
            "`benchmark --output` saved."
        ) from error
    check_results(results, str(path))
    return results


def check_results(results: object, name: str) -> None:
    """Raise a ValueError if something is not the result of an evaluation.

    name (str): of it, for the message.
    """
    given = results.get("format") if isinstance(results, Mapping) else results
    if given != FORMAT:
        raise ValueError(
            f"{name} has the format {short_repr(given)}, expected '{FORMAT}': it is no result of "
            "`benchmark --output`, or of another version of this package. Run benchmark again."
        )
    missing = [key for key in _PARTS if key not in cast(Json, results)]
    if missing:
        raise ValueError(
            f"{name} is not the result of an evaluation: it has no {', '.join(missing)}. Evaluate "
            "again."
        )


def figure(scores: Mapping[str, Any], path: Sequence[str]) -> Figure:
    """Return the figure at a path of keys, such as ("cosine", "spearman", "pooled").

    ABSENT if there is none.
    """
    value: Any = scores
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return ABSENT if isinstance(value, Mapping) else value


def shown(value: object) -> str:
    """Return a setting or a version as reports show it."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def by_suite(tasks: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Return tasks by suite, and by name within it, in their order."""
    suites: dict[str, dict[str, Json]] = {}
    for name, task in tasks.items():
        suites.setdefault(str(task["suite"]), {})[name] = task
    return suites


def mean(values: Iterable[Figure]) -> Figure:
    """Return the mean of figures; ABSENT if one is, None if one is not defined."""
    values = list(values)
    if ABSENT in values or not values:
        return ABSENT
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        return None
    return sum(numbers) / len(numbers)


# Indices (b, n) -> the statistic of each row, (b,)
Resampled = Callable[[numpy.ndarray], numpy.ndarray]
# How many numbers are ranked at once
_BLOCK = 2**21
# Percentiles that an interval is between
_ENDS = (2.5, 97.5)


def spearman_of(predicted: numpy.ndarray, gold: numpy.ndarray) -> Resampled:
    """Return Spearman's correlation of resamples; NaN if a resample is constant on one side."""
    if not (varies(predicted) and varies(gold)):
        return lambda indices: numpy.full(len(indices), numpy.nan)

    def statistic(indices: numpy.ndarray) -> numpy.ndarray:
        x = _centered_ranks(predicted[indices])
        y = _centered_ranks(gold[indices])
        norms = numpy.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
        correlations = numpy.full(len(x), numpy.nan)
        return numpy.divide((x * y).sum(axis=1), norms, out=correlations, where=norms > 0)

    return statistic


def _centered_ranks(rows: numpy.ndarray) -> numpy.ndarray:
    ranks = stats.rankdata(rows, axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)


def mean_of(values: numpy.ndarray) -> Resampled:
    """Return the mean of resamples, such as an accuracy of 0 and 1."""
    return lambda indices: values[indices].mean(axis=1)


def resample(
    statistic: Resampled, n: int, resamples: int, seed: int | Sequence[int]
) -> numpy.ndarray:
    """Compute a statistic of resamples of n examples, drawn with replacement, float64 (resamples,).

    statistic (Callable): indices, int (b, n), to the statistic of each resample, float (b,).
    seed (int, or several): the same seed draws the same resamples, whatever the statistic.
    """
    rng = numpy.random.default_rng(seed)
    rows = max(1, _BLOCK // n)
    blocks = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return numpy.concatenate([statistic(rng.integers(n, size=(block, n))) for block in blocks])


def interval(drawn: numpy.ndarray) -> list[float] | None:
    """Return the middle 95 % of resampled statistics without undefined ones.

    None if most are undefined.
    """
    defined = drawn[numpy.isfinite(drawn)]
    if 2 * len(defined) <= len(drawn):
        return None
    return [float(end) for end in numpy.percentile(defined, _ENDS)]


def paired_difference(
    ours: Resampled, theirs: Resampled, n: int, resamples: int, seed: int
) -> dict[str, float] | None:
    """Test the difference of two models' statistics on the same examples.

    ours, theirs (Callable): see resample; both see the same resamples.
    RETURNS (dict): difference, of the whole sample; low and high, the ends of its 95 % interval; p,
        two-sided: twice the smaller fraction of resamples on one side of 0, the sample itself
        counted too. None if most resamples are undefined.
    SOURCE: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13: the percentile
        interval, inverted.
    """
    drawn = resample(lambda indices: ours(indices) - theirs(indices), n, resamples, seed)
    ends = interval(drawn)
    if ends is None:
        return None
    whole = numpy.arange(n)[None]
    defined = drawn[numpy.isfinite(drawn)]
    tail = (1 + min((defined <= 0).sum(), (defined >= 0).sum())) / (1 + len(defined))
    difference = float((ours(whole) - theirs(whole))[0])
    return {
        "difference": difference,
        "low": ends[0],
        "high": ends[1],
        "p": float(min(1.0, 2 * tail)),
    }
