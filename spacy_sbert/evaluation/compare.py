"""Comparison of the results of several models on the tasks that they share: tests, ranks, transfer and probing."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy
from scipy import stats

from ..similarity import spearman
from .results import (
    Figure,
    Json,
    Resampled,
    by_suite,
    check_results,
    figure,
    mean,
    mean_of,
    paired_difference,
    spearman_of,
)

_Variant = tuple[str, str]  # normalization and size


def compare(
    results: Sequence[Json], *, resamples: int = 1000, seed: int = 1, files: Sequence[str] | None = None
) -> Json:
    """Put models side by side, and test every other one against the first.

    results (Sequence of dict): two or more, see evaluate_suites and read_results.
    resamples, seed (int): of the paired bootstrap tests, see paired_difference.
    files (Sequence of str): what tells models of one name apart, such as the names of their files; by default numbers.
    RETURNS (dict): JSON: format, resamples, seed; models, names and digests; warnings, what differs that should not;
        tasks that all models have, by name: suite, primary, figures of the models, and tests, for each model but the
        first its difference from the first, low, high and p, or the reason why there is none; not_shared, which models
        have the other tasks; rank_changes between variants, classifiers, and cosine and learned similarity;
        transfer_probing, see there.
    RAISES (ValueError): if there are fewer than two, or one is not the result of an evaluation, or has another format.
    SOURCE: see paired_difference (tests); Eger et al. 2019 (ranks).
    """
    if len(results) < 2:
        raise ValueError(f"Cannot compare {len(results)} results of evaluations: expected two or more.")
    for number, result in enumerate(results, 1):
        check_results(result, f"Result {number}")
    names = [result["model"]["name"] for result in results]
    files = files or [str(number) for number in range(1, len(results) + 1)]
    names = [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]
    results = aligned(results)
    having: dict[str, list[str]] = {}  # the models that have a task
    for name, result in zip(names, results, strict=True):
        for task in result["tasks"]:
            having.setdefault(task, []).append(name)
    shared = [task for task, models in having.items() if len(models) == len(results)]
    models = zip(names, (result["model"]["digest"] for result in results), strict=True)
    return {
        "format": "spacy-sbert comparison 1",
        "resamples": resamples,
        "seed": seed,
        "models": [{"name": name, "digest": digest} for name, digest in models],
        "warnings": list(_warnings(results, names)),
        "tasks": {task: _task([result["tasks"][task] for result in results], resamples, seed) for task in shared},
        "not_shared": {task: models for task, models in having.items() if task not in shared},
        "rank_changes": _rank_changes(results, shared),
        "transfer_probing": transfer_probing(results, shared),
    }


def aligned(results: Sequence[Json]) -> list[Json]:
    """Return the results with the first variant that all of them have at the front of each task that they share.

    Predictions and intervals are those of a result's own first variant: if another comes to the front they are left
    out, so that nothing is tested across settings.
    """
    copies: list[Json] = [{**result, "tasks": dict(result["tasks"])} for result in results]
    for name in copies[0]["tasks"]:
        common = _common_variants(copies, [name]) if all(name in result["tasks"] for result in copies) else []
        for result in copies if common else []:
            task = result["tasks"][name]
            variants = sorted(task["variants"], key=lambda entry: _variant(entry) != common[0])
            if variants[0] is not task["variants"][0]:
                result["tasks"][name] = {**task, "variants": variants, "intervals": {}, "predictions": {}}
    return copies


def _task(tasks: Sequence[Json], resamples: int, seed: int) -> Json:
    first, *others = tasks
    tests: list[Mapping[str, float | str]] = []
    for task in others:
        statistics = _statistics(task, first)
        test = None if isinstance(statistics, str) else paired_difference(*statistics, resamples, seed)
        reason = statistics if isinstance(statistics, str) else "undefined for most resamples"
        tests.append(test or {"reason": reason})
    figures = [figure(task["variants"][0]["scores"], first["primary"].split(".")) for task in tasks]
    return {"suite": first["suite"], "primary": first["primary"], "figures": figures, "tests": tests}


def _statistics(ours: Json, theirs: Json) -> tuple[Resampled, Resampled, int] | str:
    """Return the statistics of a paired test and the number of examples, or why there is no test."""
    first, second = ours["predictions"], theirs["predictions"]
    if sorted(ours["data"].values()) != sorted(theirs["data"].values()):  # digests, wherever the files are
        return "the data files differ"
    if _variant(ours["variants"][0]) != _variant(theirs["variants"][0]):
        return "the normalisation or the size of the first variant differs"
    if ours["primary"] != theirs["primary"]:
        return "the figures that stand for the task differ"
    if first.get("right") and second.get("right"):
        rights = [numpy.array(list(each["right"])) == "1" for each in (first, second)]
        if len(rights[0]) != len(rights[1]):
            return "the numbers of examples differ"
        return mean_of(rights[0]), mean_of(rights[1]), len(rights[0])
    if not first.get("predicted") or not second.get("predicted"):
        return "no predictions were kept"
    if first["gold"] != second["gold"]:
        return "the gold scores, or their order, differ"
    if ours["primary"].split(".")[1:] not in (["spearman", "pooled"], ["spearman"]):
        return f"there is no paired test for {ours['primary']}"
    gold = numpy.array(first["gold"], dtype="float64")
    statistics = [spearman_of(numpy.array(each["predicted"], dtype="float64"), gold) for each in (first, second)]
    return statistics[0], statistics[1], len(gold)


def _warnings(results: Sequence[Json], names: Sequence[str]) -> Iterator[str]:
    for part, what in (("settings", "The setting"), ("versions", "The version of")):
        for key in dict.fromkeys(key for result in results for key in result[part]):
            values = [result[part].get(key, "not there") for result in results]
            words = [(", ".join(map(str, v)) or "none") if isinstance(v, list) else str(v) for v in values]
            if len(set(words)) > 1:
                listed = "; ".join(f"{name}: {value}" for name, value in zip(names, words, strict=True))
                yield f"{what} {key.replace('_', ' ')} differs. {listed}."
    digests = [result["model"]["digest"] for result in results]
    for digest in dict.fromkeys(digest for digest in digests if digests.count(digest) > 1):
        same = " and ".join(name for name, own in zip(names, digests, strict=True) if own == digest)
        yield f"{same} are one and the same model: their digests are equal."


_MIN_MODELS = 5
_OTHERS = ("SST-5", "SICK-E")  # of the suite, but not of the seven transfer tasks of Reimers and Gurevych 2019
_METHOD = "95 % interval by Fisher's z, its variance 1.06 / (models - 3); undefined for a correlation of 1 or -1"
_PAIRS = {"classifiers": ("lr", "mlp"), "similarities": ("cosine", "learned")}
RANK_KINDS = {
    "variants": "normalisation and size",
    "classifiers": "logistic regression and MLP",
    "similarities": "cosine and learned similarity",
}


def _rank_changes(results: Sequence[Json], shared: Sequence[str]) -> dict[str, Json]:
    """Find out how models change ranks between variants, classifiers, and cosine and learned similarity.

    Beside each shared task, the mean of a suite's tasks is ranked. For each of RANK_KINDS: compared, how many pairs of
    rankings; changes, those that differ: task, from, to, before and after, the ranks of the models.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3.
    """
    by_kind: dict[str, Json] = {kind: {"compared": 0, "changes": []} for kind in RANK_KINDS}

    def note(kind: str, task: str, names: tuple[str, str], before: list[Figure], after: list[Figure]) -> None:
        old, new = ranks(before), ranks(after)
        if old is not None and new is not None:
            by_kind[kind]["compared"] += 1
            if old != new:
                change = {"task": task, "from": names[0], "to": names[1], "before": old, "after": new}
                by_kind[kind]["changes"].append(change)

    suites = by_suite({name: results[0]["tasks"][name] for name in shared})
    means = {f"mean of {suite}": list(names) for suite, names in suites.items() if len(names) > 1}
    for task, tasks in ({name: [name] for name in shared} | means).items():
        first, *others = _common_variants(results, tasks) or [("", "")]
        for variant in others:
            figures = [_figures(results, tasks, each) for each in (first, variant)]
            note("variants", task, (", ".join(first), ", ".join(variant)), *figures)
        for kind, pair in _PAIRS.items():
            note(kind, task, pair, *(_figures(results, tasks, beside=name) for name in pair))
    return by_kind


def ranks(values: Sequence[Figure]) -> list[int] | None:
    """Return the ranks of figures, the highest first, equal ones sharing the best; None if one is missing."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        return None
    return [int(rank) for rank in stats.rankdata([-value for value in numbers], method="min")]


def transfer_probing(results: Sequence[Json], shared: Sequence[str]) -> Json:
    """Correlate how models do on probing tasks with how they do on transfer tasks.

    Spearman's rank correlation over models: each of the seven transfer tasks, and their mean, with each probing task,
    and theirs. Its 95 % interval is tanh(artanh(rho) -+ 1.96 sqrt(1.06 / (n - 3))), n models.

    results (Sequence of dict): of the models. shared (Sequence of str): tasks that all have.
    RETURNS (dict): models, how many; correlations, by transfer task and probing task, None if not defined; intervals,
        in the same shape, None too for 1 and -1, of which the formula would be sure; interval, how they are made;
        left_out, tasks of the suite that are not among the seven. Or reason, why there are none.
    SOURCE: Eger et al. 2019, Pitfalls in the Evaluation of Sentence Embeddings, section 3; Fieller, Hartley and Pearson
        1957, Tests for rank correlation coefficients I.
    """
    suites, n = by_suite({name: results[0]["tasks"][name] for name in shared}), len(results)
    if n < _MIN_MODELS:
        return {"reason": f"needs at least {_MIN_MODELS} models"}
    names = [name for name in suites.get("transfer", ()) if name not in _OTHERS]
    if not names or "probing" not in suites:
        return {"reason": "needs transfer and probing tasks that all models share"}
    transfer, probing = _columns(results, names), _columns(results, list(suites["probing"]))
    correlations: dict[str, dict[str, float | None]] = {row: {} for row in transfer}
    intervals: dict[str, dict[str, list[float] | None]] = {row: {} for row in transfer}
    for row, ours in transfer.items():
        for column, theirs in probing.items():
            are_numbers = all(isinstance(value, int | float) for value in (*ours, *theirs))
            correlations[row][column] = rho = spearman(ours, theirs) if are_numbers else None
            intervals[row][column] = _fisher_interval(rho, n)
    left_out = [name for name in suites["transfer"] if name in _OTHERS]
    found = {"correlations": correlations, "intervals": intervals, "interval": _METHOD}
    return {"models": n, **found, "left_out": left_out}


def _fisher_interval(correlation: float | None, n: int) -> list[float] | None:
    if correlation is None or abs(correlation) > 1 - 1e-9:  # 1 up to rounding
        return None
    z, half = math.atanh(correlation), stats.norm.ppf(0.975) * math.sqrt(1.06 / (n - 3))
    return [math.tanh(z - half), math.tanh(z + half)]


def _columns(results: Sequence[Json], names: list[str]) -> dict[str, list[Figure]]:
    groups = {name: [name] for name in names} | ({"mean": names} if len(names) > 1 else {})
    return {name: _figures(results, group) for name, group in groups.items()}


def _common_variants(results: Sequence[Json], names: Sequence[str]) -> list[_Variant]:
    """Return the variants that all models have for all tasks, as the first model orders them."""
    each = [[_variant(entry) for entry in model["tasks"][name]["variants"]] for model in results for name in names]
    return [variant for variant in each[0] if all(variant in variants for variants in each)]


def _variant(entry: Json) -> _Variant:
    return entry["normalization"], entry["size"]


def _figures(
    results: Sequence[Json], names: Sequence[str], variant: _Variant | None = None, beside: str | None = None
) -> list[Figure]:
    """Return the primary figure of each model, the mean if tasks are several.

    variant: by default a model's first. beside (str): another classifier or similarity than the primary figure's.
    """

    def primary(task: Json) -> Figure:
        entry = next(entry for entry in task["variants"] if variant in (None, _variant(entry)))
        first, *rest = task["primary"].split(".")
        return figure(entry["scores"], [beside or first, *rest])

    return [mean(primary(model["tasks"][name]) for name in names) for model in results]
