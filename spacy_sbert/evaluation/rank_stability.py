"""Rank stability: how models change ranks between ways to measure, and whether transfer follows probing."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import stats

from ..similarity import spearman
from .results import Entry, Figure, Results, TaskResult, by_suite, figure, mean

_MIN_MODELS = 5
_OTHERS = ("SST-5", "SICK-E")  # of the suite, but not of the seven transfer tasks of Reimers and Gurevych 2019
_NORMAL = 1.959963984540054  # 97.5 % of a normal distribution lie below
_FIELLER = 1.06  # times the variance of Fisher's z, for ranks
_ROUNDING = 1e-9
_METHOD = "95 % interval by Fisher's z, its variance 1.06 / (models - 3); undefined for a correlation of 1 or -1"
_PAIRS = {"classifiers": ("lr", "mlp"), "similarities": ("cosine", "learned")}
RANK_KINDS = {
    "variants": "normalisation and size",
    "classifiers": "logistic regression and MLP",
    "similarities": "cosine and learned similarity",
}


def rank_changes(results: Sequence[Results], shared: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Find out how models change ranks between variants, classifiers, and cosine and learned similarity.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have; beside each of them, the
        mean of a suite's tasks is ranked too.
    RETURNS (dict): for each of RANK_KINDS: compared, how many pairs of rankings; changes, those that differ: task,
        from, to, before and after, the ranks of the models from 1, equal figures sharing the best.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    by_kind: dict[str, dict[str, Any]] = {kind: {"compared": 0, "changes": []} for kind in RANK_KINDS}

    def compare(kind: str, task: str, names: tuple[str, str], before: list[Figure], after: list[Figure]) -> None:
        old, new = ranks(before), ranks(after)
        if old is not None and new is not None:
            by_kind[kind]["compared"] += 1
            if old != new:
                change = {"task": task, "from": names[0], "to": names[1], "before": old, "after": new}
                by_kind[kind]["changes"].append(change)

    means = {f"mean of {suite}": names for suite, names in _suites(results, shared).items() if len(names) > 1}
    for task, tasks in ({name: [name] for name in shared} | means).items():
        first, *others = common_variants(results, tasks) or [("", "")]
        for key in others:
            names = ", ".join(first), ", ".join(key)
            compare("variants", task, names, *(_figures(results, tasks, variant) for variant in (first, key)))
        for kind, pair in _PAIRS.items():
            compare(kind, task, pair, *(_figures(results, tasks, beside=name) for name in pair))
    return by_kind


def ranks(values: Sequence[Figure]) -> list[int] | None:
    """Return the ranks of figures, the highest first, equal ones sharing the best; None where one is missing."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        return None
    return [int(rank) for rank in stats.rankdata([-value for value in numbers], method="min")]


def transfer_probing(results: Sequence[Results], shared: Sequence[str]) -> Mapping[str, Any]:
    """Correlate how models do on probing tasks with how they do on transfer tasks.

    Spearman's rank correlation over models: each of the seven transfer tasks, and their mean, with each probing task,
    and theirs.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have.
    RETURNS (dict): models, how many; correlations, by transfer task and probing task, None where not defined;
        intervals, in the same shape, see _fisher_interval; interval, how they are made; left_out, tasks of the suite
        that are not among the seven. Or reason, why there are none.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    suites = _suites(results, shared)
    if len(results) < _MIN_MODELS:
        return {"reason": f"needs at least {_MIN_MODELS} models"}
    names = [name for name in suites.get("transfer", ()) if name not in _OTHERS]
    if not names or "probing" not in suites:
        return {"reason": "needs transfer and probing tasks that all models share"}
    transfer, probing = _columns(results, names), _columns(results, suites["probing"])
    correlations = {
        row: {column: _correlate(ours, theirs) for column, theirs in probing.items()} for row, ours in transfer.items()
    }
    n = len(results)
    return {
        "models": n,
        "correlations": correlations,
        "intervals": {
            row: {column: _fisher_interval(value, n) for column, value in values.items()}
            for row, values in correlations.items()
        },
        "interval": _METHOD,
        "left_out": [name for name in suites["transfer"] if name in _OTHERS],
    }


def _fisher_interval(correlation: float | None, n: int) -> list[float] | None:
    """Return the 95 % interval of a rank correlation: tanh(artanh(rho) -+ 1.96 sqrt(1.06 / (n - 3))).

    correlation (float): Spearman's. n (int): of how many, 4 or more.
    RETURNS (list of float): its ends; None where the correlation is not defined, or is 1 or -1, of which the formula
        would be sure.
    SOURCE: Fieller, Hartley and Pearson 1957, Tests for rank correlation coefficients I.
    """
    if correlation is None or abs(correlation) > 1 - _ROUNDING:
        return None
    z, half = math.atanh(correlation), _NORMAL * math.sqrt(_FIELLER / (n - 3))
    return [math.tanh(z - half), math.tanh(z + half)]


def _columns(results: Sequence[Results], names: list[str]) -> dict[str, list[Figure]]:
    groups = {name: [name] for name in names} | ({"mean": names} if len(names) > 1 else {})
    return {name: _figures(results, group) for name, group in groups.items()}


def _correlate(ours: Sequence[Figure], theirs: Sequence[Figure]) -> float | None:
    are_numbers = all(isinstance(value, int | float) for value in (*ours, *theirs))
    return spearman(ours, theirs) if are_numbers else None


def _suites(results: Sequence[Results], shared: Sequence[str]) -> dict[str, list[str]]:
    suites = by_suite({name: results[0]["tasks"][name] for name in shared})
    return {suite: list(tasks) for suite, tasks in suites.items()}


def common_variants(results: Sequence[Results], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the variants that all models have for all tasks, as the first model orders them."""
    each = [[variant_key(entry) for entry in one["tasks"][name]["variants"]] for one in results for name in names]
    return [key for key in each[0] if all(key in keys for keys in each)]


def variant_key(entry: Entry) -> tuple[str, str]:
    """Return what tells one variant from another: normalisation and size."""
    return entry["normalization"], entry["size"]


def _figures(
    results: Sequence[Results], names: Sequence[str], key: tuple[str, str] | None = None, beside: str | None = None
) -> list[Figure]:
    """Return the primary figure of each model, the mean where tasks are several.

    key: of the variant, by default a model's first. beside (str): another classifier or similarity than the primary
        figure's.
    """

    def one(task: TaskResult) -> Figure:
        entry = next(entry for entry in task["variants"] if key in (None, variant_key(entry)))
        first, *rest = task["primary"].split(".")
        return figure(entry["scores"], [beside or first, *rest])

    return [mean(one(model["tasks"][name]) for name in names) for model in results]
