"""Comparison of the results of several models on the tasks that they share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from ..render.document import html, markdown, terminal
from .bootstrap import Resampled, mean_of, paired_difference, spearman_of
from .comparison_report import contents, plots
from .rank_stability import common_variants, rank_changes, transfer_probing, variant_key
from .results import Predictions, Results, TaskResult, check_results, figure

_FORMAT = "spacy-sbert comparison 1"
_CORRELATIONS = (["spearman", "pooled"], ["spearman"])  # what follows the similarity in the path of a figure


def compare(
    results: Sequence[Results], *, resamples: int = 1000, seed: int = 1, files: Sequence[str] | None = None
) -> dict[str, Any]:
    """Put models side by side, and test every other one against the first.

    results (Sequence of dict): two or more, see evaluate_suites and read_results.
    resamples, seed (int): of the paired bootstrap tests, see paired_difference.
    files (Sequence of str): what tells models of one name apart, such as the names of their files; by default numbers.
    RETURNS (dict): JSON: format, resamples, seed; models, their names and digests, in the order given; warnings, what
        differs that should not; tasks, by name, for those that all models have: suite, primary, figures, one for each
        model, and tests, for each model but the first its difference from the first, low, high and p, or the reason why
        there is no test; not_shared, which models have the other tasks; rank_changes and transfer_probing, see there.
    RAISES (ValueError): if there are fewer than two, or one is not the result of an evaluation, or has another format.
    SOURCE: see paired_difference (tests); Eger et al. 2019 (ranks).
    """
    if len(results) < 2:
        raise ValueError(f"Cannot compare {len(results)} results of evaluations: expected two or more.")
    for number, one in enumerate(results, 1):
        check_results(one, f"Result {number}")
    names = _labels(results, files or [str(number) for number in range(1, len(results) + 1)])
    results = _aligned(results)
    having: dict[str, list[str]] = {}  # the models that have a task
    for name, one in zip(names, results, strict=True):
        for task in one["tasks"]:
            having.setdefault(task, []).append(name)
    shared = [task for task, models in having.items() if len(models) == len(results)]
    return {
        "format": _FORMAT,
        "resamples": resamples,
        "seed": seed,
        "models": [{"name": name, "digest": one["model"]["digest"]} for name, one in zip(names, results, strict=True)],
        "warnings": _warnings(results, names),
        "tasks": {task: _task([one["tasks"][task] for one in results], resamples, seed) for task in shared},
        "not_shared": {task: models for task, models in having.items() if task not in shared},
        "rank_changes": rank_changes(results, shared),
        "transfer_probing": transfer_probing(results, shared),
    }


def compare_markdown(results: Sequence[Results], comparison: Mapping[str, Any] | None = None) -> str:
    """Report on models side by side, in Markdown.

    results (Sequence of dict): see compare. comparison (dict): what compare made of them, by default it is made.
    RETURNS (str): the same for the same results.
    """
    return markdown(contents(_aligned(results), comparison or compare(results)))


def compare_terminal(results: Sequence[Results], comparison: Mapping[str, Any], width: int) -> str:
    """Report on models in plain tables; width (int): the columns of the terminal. See compare_markdown."""
    return terminal(contents(_aligned(results), comparison), width)


def compare_html(results: Sequence[Results], comparison: Mapping[str, Any] | None = None) -> str:
    """Report on models side by side, as a self-contained page with plots; see compare_markdown."""
    comparison = comparison or compare(results)
    return html(contents(_aligned(results), comparison), plots(comparison))


def _aligned(results: Sequence[Results]) -> list[Results]:
    """Return the results with the first variant that all of them have at the front of each task that they share.

    Predictions and intervals are those of a result's own first variant: where another comes to the front they are left
    out, so that nothing is tested across settings.
    """
    copies: list[Results] = [{**one, "tasks": dict(one["tasks"])} for one in results]
    for name in copies[0]["tasks"]:
        common = common_variants(copies, [name]) if all(name in one["tasks"] for one in copies) else []
        for one in copies if common else []:
            task = one["tasks"][name]
            place = [variant_key(entry) for entry in task["variants"]].index(common[0])
            if place:
                front = [task["variants"][place], *task["variants"][:place], *task["variants"][place + 1 :]]
                one["tasks"][name] = {**task, "variants": front, "intervals": {}, "predictions": {}}
    return copies


def _task(tasks: Sequence[TaskResult], resamples: int, seed: int) -> dict[str, Any]:
    first, *others = tasks
    figures = [figure(task["variants"][0]["scores"], first["primary"].split(".")) for task in tasks]
    tests = [_test(task, first, resamples, seed) for task in others]
    return {"suite": first["suite"], "primary": first["primary"], "figures": figures, "tests": tests}


def _test(ours: TaskResult, theirs: TaskResult, resamples: int, seed: int) -> Mapping[str, float | str]:
    """Return what paired_difference gives, or the reason why there is no test."""
    statistics = _statistics(ours, theirs)
    if isinstance(statistics, str):
        return {"reason": statistics}
    return paired_difference(*statistics, resamples, seed) or {"reason": "undefined for most resamples"}


def _statistics(ours: TaskResult, theirs: TaskResult) -> tuple[Resampled, Resampled, int] | str:
    """Return the statistics of a paired test and the number of examples, or why there is no test.

    Data sets are identified by digests, not by folders.
    """
    if sorted(ours["data"].values()) != sorted(theirs["data"].values()):
        return "the data files differ"
    if variant_key(ours["variants"][0]) != variant_key(theirs["variants"][0]):
        return "the normalisation or the size of the first variant differs"
    if ours["primary"] != theirs["primary"]:
        return "the figures that stand for the task differ"
    one, other = ours["predictions"], theirs["predictions"]
    if "right" in one and "right" in other:
        if len(one["right"]) != len(other["right"]) or not one["right"]:
            return "the numbers of examples differ" if one["right"] or other["right"] else "no predictions were kept"
        return mean_of(_correct(one)), mean_of(_correct(other)), len(one["right"])
    if "predicted" not in one or "predicted" not in other or not one["predicted"]:
        return "no predictions were kept"
    if one["gold"] != other["gold"]:
        return "the gold scores, or their order, differ"
    if ours["primary"].split(".")[1:] not in _CORRELATIONS:
        return f"there is no paired test for {ours['primary']}"
    gold, *sides = (numpy.array(each, dtype="float64") for each in (one["gold"], one["predicted"], other["predicted"]))
    first, second = (spearman_of(side, gold) for side in sides)
    return first, second, len(gold)


def _correct(predictions: Predictions) -> numpy.ndarray:
    return numpy.frombuffer(predictions["right"].encode("ascii"), dtype="uint8") == ord("1")


def _labels(results: Sequence[Results], files: Sequence[str]) -> list[str]:
    """Return names of models; those that several have with what tells them apart."""
    names = [one["model"]["name"] for one in results]
    return [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]


def _warnings(results: Sequence[Results], names: Sequence[str]) -> list[str]:
    warnings = [*_differences([one["settings"] for one in results], "The setting", names)]
    warnings += _differences([one["versions"] for one in results], "The version of", names)
    by_digest: dict[str, list[str]] = {}
    for name, one in zip(names, results, strict=True):
        by_digest.setdefault(one["model"]["digest"], []).append(name)
    same = [" and ".join(group) for group in by_digest.values() if len(group) > 1]
    return [*warnings, *(f"{group} are one and the same model: their digests are equal." for group in same)]


def _differences(each: Sequence[Mapping[str, object]], what: str, names: Sequence[str]) -> Iterator[str]:
    for key in dict.fromkeys(key for one in each for key in one):
        values = [one.get(key, "not there") for one in each]
        words = [(", ".join(map(str, v)) or "none") if isinstance(v, list) else str(v) for v in values]
        if len(set(words)) > 1:
            listed = "; ".join(f"{name}: {value}" for name, value in zip(names, words, strict=True))
            yield f"{what} {key.replace('_', ' ')} differs. {listed}."
