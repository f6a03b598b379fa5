"""Bootstrap confidence intervals and rank stability."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypedDict

import numpy
from scipy import stats

from ..similarity import spearman, varies
from .results import Entry, Figure, Results, TaskResult, by_suite, figure, mean

Resampled = Callable[[numpy.ndarray], numpy.ndarray]  # indices (b, n) -> the statistic of each row, (b,)
BLOCK = 2**21  # numbers ranked at once
ENDS = (2.5, 97.5)  # percentiles


def spearman_of(predicted: numpy.ndarray, gold: numpy.ndarray) -> Resampled:
    """Spearman's correlation of resamples; NaN where a resample is all alike on one side."""
    if not (varies(predicted) and varies(gold)):
        return lambda indices: numpy.full(len(indices), numpy.nan)
    return lambda indices: _spearman_rows(predicted[indices], gold[indices])


def mean_of(values: numpy.ndarray) -> Resampled:
    """The mean of resamples, such as an accuracy of 0 and 1."""
    return lambda indices: values[indices].mean(axis=1)


def resample(statistic: Resampled, n: int, resamples: int, seed: int | Sequence[int]) -> numpy.ndarray:
    """A statistic of resamples of n examples, drawn with replacement.

    statistic (Callable): indices, int (b, n), to the statistic of each resample, float (b,).
    n, resamples (int): examples; resamples. seed (int, or several): the same seed draws the same
    resamples, whatever the statistic.
    RETURNS (float64 (resamples,)).
    """
    rng = numpy.random.default_rng(seed)
    rows = max(1, BLOCK // n)
    blocks = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return numpy.concatenate([statistic(rng.integers(n, size=(block, n))) for block in blocks])


def interval(drawn: numpy.ndarray) -> list[float] | None:
    """The middle 95 % of resampled statistics, undefined ones left out; None where most of them are undefined."""
    defined = drawn[numpy.isfinite(drawn)]
    return [float(end) for end in numpy.percentile(defined, ENDS)] if 2 * len(defined) > len(drawn) else None


def intervals_of(
    statistics: Mapping[str, Resampled], n: int, resamples: int, seed: int
) -> dict[str, list[float] | None]:
    """The interval of each statistic of the same n examples by its path; none of them without resamples."""
    drawn = {path: resample(one, n, resamples, seed) for path, one in statistics.items()} if resamples else {}
    return {path: interval(values) for path, values in drawn.items()}


def paired_difference(ours: Resampled, theirs: Resampled, n: int, resamples: int, seed: int) -> dict[str, float] | None:
    """The difference of two models' statistics on the same examples.

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


Key = tuple[str, str]  # of a variant: normalisation, size
MIN_MODELS = 5
MEAN = "mean"
OTHERS = ("SST-5", "SICK-E")  # of the suite, but not of the seven transfer tasks of Reimers and Gurevych 2019
NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below
FIELLER = 1.06  # times the variance of Fisher's z, for ranks
ROUNDING = 1e-9
HOW = "95 % interval by Fisher's z, its variance 1.06 / (models - 3); undefined for a correlation of 1 or -1"


class RankChanges(TypedDict):
    """How many pairs of rankings were compared, and those that differ."""

    compared: int
    changes: list[dict[str, str | list[int]]]


class Rankings(NamedTuple):
    """The figures of models on a task, measured in one way and in another."""

    task: str
    one: str
    other: str
    before: list[Figure]
    after: list[Figure]


def rank_changes(results: Sequence[Results], shared: Sequence[str]) -> dict[str, RankChanges]:
    """How models change ranks between variants of the input, classifiers, and cosine and learned similarity.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have; beside each of them, the
        mean of a suite's tasks is ranked too.
    RETURNS (dict): for "variants", "classifiers" and "similarities": compared, how many pairs of rankings; changes,
        those that differ: task, from, to, before and after, the ranks of the models from 1, equal figures sharing the
        best.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    found: dict[str, list[Rankings]] = {"variants": [], "classifiers": [], "similarities": []}
    for name, tasks in _groups(results, shared).items():
        keys = common_variants(results, tasks)
        for key in keys[1:]:
            both = [_figures(results, tasks, one, _primary) for one in (keys[0], key)]
            found["variants"].append(Rankings(name, ", ".join(keys[0]), ", ".join(key), *both))
        for kind, names in (("classifiers", ("lr", "mlp")), ("similarities", ("cosine", "learned"))):
            both = [_figures(results, tasks, None, partial(_beside, name=one)) for one in names]
            found[kind].append(Rankings(name, *names, *both))
    return {kind: _changes(pairs) for kind, pairs in found.items()}


def ranks(values: Sequence[Figure]) -> list[int] | None:
    """The ranks of figures, the highest first, equal ones sharing the best; None where one is not there."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        return None
    return [int(rank) for rank in stats.rankdata([-value for value in numbers], method="min")]


def transfer_probing(results: Sequence[Results], shared: Sequence[str]) -> Mapping[str, object]:
    """Whether models that do well on probing tasks do well on transfer tasks.

    Spearman's rank correlation over models: each of the seven transfer tasks, and their mean, with each probing task,
    and theirs.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have.
    RETURNS (dict): models, how many; correlations, by transfer task and probing task, None where not defined;
        intervals, in the same shape, see fisher_interval; interval, how they are made; left_out, tasks of the suite
        that are not among the seven. Or reason, why there are none.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    suites = _suites(results, shared)
    if len(results) < MIN_MODELS:
        return {"reason": f"needs at least {MIN_MODELS} models"}
    left_out = [name for name in suites.get("transfer", ()) if name in OTHERS]
    names = [name for name in suites.get("transfer", ()) if name not in OTHERS]
    if not names or "probing" not in suites:
        return {"reason": "needs transfer and probing tasks that all models share"}
    transfer, probing = _columns(results, names), _columns(results, suites["probing"])
    correlations = {
        one: {other: _correlate(ours, theirs) for other, theirs in probing.items()} for one, ours in transfer.items()
    }
    n = len(results)
    intervals = {
        one: {other: fisher_interval(value, n) for other, value in row.items()} for one, row in correlations.items()
    }
    return {"models": n, "correlations": correlations, "intervals": intervals, "interval": HOW, "left_out": left_out}


def fisher_interval(correlation: float | None, n: int) -> list[float] | None:
    """The 95 % interval of a rank correlation: tanh(artanh(rho) -+ 1.96 sqrt(1.06 / (n - 3))).

    correlation (float): Spearman's. n (int): of how many, 4 or more.
    RETURNS (list of float): its ends; None where the correlation is not defined, or is 1 or -1, of which the formula
        would be sure.
    SOURCE: Fieller, Hartley and Pearson 1957, Tests for rank correlation coefficients I.
    """
    if correlation is None or abs(correlation) > 1 - ROUNDING:
        return None
    z, half = math.atanh(correlation), NORMAL * math.sqrt(FIELLER / (n - 3))
    return [math.tanh(z - half), math.tanh(z + half)]


def _columns(results: Sequence[Results], names: list[str]) -> dict[str, list[Figure]]:
    groups = {name: [name] for name in names} | ({MEAN: names} if len(names) > 1 else {})
    return {name: _figures(results, group, None, _primary) for name, group in groups.items()}


def _correlate(ours: Sequence[Figure], theirs: Sequence[Figure]) -> float | None:
    there = all(isinstance(value, int | float) for value in (*ours, *theirs))
    return spearman(ours, theirs) if there else None


def _groups(results: Sequence[Results], shared: Sequence[str]) -> dict[str, list[str]]:
    means = {f"mean of {suite}": names for suite, names in _suites(results, shared).items() if len(names) > 1}
    return {name: [name] for name in shared} | means


def _suites(results: Sequence[Results], shared: Sequence[str]) -> dict[str, list[str]]:
    suites = by_suite({name: results[0]["tasks"][name] for name in shared})
    return {suite: list(tasks) for suite, tasks in suites.items()}


def common_variants(results: Sequence[Results], names: Sequence[str]) -> list[Key]:
    """The variants that all models have for all tasks, as the first model orders them."""
    each = [[variant_key(entry) for entry in one["tasks"][name]["variants"]] for one in results for name in names]
    return [key for key in each[0] if all(key in keys for keys in each)]


def _figures(
    results: Sequence[Results], names: Sequence[str], key: Key | None, path: Callable[[TaskResult], Sequence[str]]
) -> list[Figure]:
    """A figure of each model, the mean where tasks are several; key: of the variant, by default a model's first."""
    found = []
    for one in results:
        tasks = [one["tasks"][name] for name in names]
        entries = [next(entry for entry in task["variants"] if key in (None, variant_key(entry))) for task in tasks]
        found.append(mean(figure(entry["scores"], path(task)) for entry, task in zip(entries, tasks, strict=True)))
    return found


def variant_key(entry: Entry) -> Key:
    """What tells one variant from another."""
    return entry["normalization"], entry["size"]


def _primary(task: TaskResult) -> list[str]:
    return task["primary"].split(".")


def _beside(task: TaskResult, name: str) -> list[str]:
    """The path of the figure that stands for a task, but of this classifier or similarity."""
    return [name, *_primary(task)[1:]]


def _changes(pairs: Sequence[Rankings]) -> RankChanges:
    found: RankChanges = {"compared": 0, "changes": []}
    for pair in pairs:
        before, after = ranks(pair.before), ranks(pair.after)
        if before is not None and after is not None:
            found["compared"] += 1
            if before != after:
                names = {"task": pair.task, "from": pair.one, "to": pair.other}
                found["changes"].append({**names, "before": before, "after": after})
    return found
