"""Compares the results of several models on the tasks that they share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

import numpy

from ..render.document import html, markdown, terminal
from .bootstrap import (
    RankChanges,
    Resampled,
    common_variants,
    mean_of,
    paired_difference,
    rank_changes,
    spearman_of,
    transfer_probing,
    variant_key,
)
from .comparison_report import contents, plots
from .results import Figure, Predictions, Results, TaskResult, check_results, figure

FORMAT = "spacy-sbert comparison 1"
CORRELATIONS = (["spearman", "pooled"], ["spearman"])  # what follows the similarity in the path of a figure
Statistics = tuple[Resampled, Resampled, int]  # of two models, and how many examples
Test = Mapping[str, float] | Mapping[str, str]  # see paired_difference; or the reason why there is no test


class Compared(TypedDict):
    """The figures of a task, one for each model, and the tests of all models but the first."""

    suite: str
    primary: str
    figures: list[Figure]
    tests: list[Test]


class Comparison(TypedDict):
    """What compare finds, see there."""

    format: str
    resamples: int
    seed: int
    models: list[dict[str, str]]
    warnings: list[str]
    tasks: dict[str, Compared]
    not_shared: dict[str, list[str]]
    rank_changes: dict[str, RankChanges]
    transfer_probing: Mapping[str, object]


def compare(
    results: Sequence[Results], *, resamples: int = 1000, seed: int = 1, files: Sequence[str] | None = None
) -> Comparison:
    """Put models side by side, and test every other one against the first.

    results (Sequence of dict): two or more, see evaluate_suites and read_results.
    resamples, seed (int): of the paired bootstrap tests, see paired_difference.
    files (Sequence of str): what tells models of one name apart, such as the names of their files; by default numbers.
    RETURNS (dict): JSON: format, resamples, seed; models, their names and digests, in the order given; warnings, what
        differs that should not; tasks, by name, for those that all models have: primary, figures, one for each model,
        and tests, for each model but the first its difference from the first, low, high and p, or the reason why
        there is no test; not_shared, which models have the other tasks; rank_changes and transfer_probing, see there.
    RAISES (ValueError): if there are fewer than two, or one is not the result of an evaluation, or has another format.
    SOURCE: see paired_difference (tests); Eger et al. 2019 (ranks).
    """
    if len(results) < 2:
        raise ValueError(f"Cannot compare {len(results)} results of evaluations: expected two or more.")
    for number, one in enumerate(results, 1):
        check_results(one, f"Result {number}")
    names = _labels(results, files or [str(number) for number in range(1, len(results) + 1)])
    results = aligned(results)
    having: dict[str, list[str]] = {}  # the models that have a task
    for name, one in zip(names, results, strict=True):
        for task in one["tasks"]:
            having.setdefault(task, []).append(name)
    shared = [task for task, models in having.items() if len(models) == len(results)]
    return {
        "format": FORMAT,
        "resamples": resamples,
        "seed": seed,
        "models": [{"name": name, "digest": one["model"]["digest"]} for name, one in zip(names, results, strict=True)],
        "warnings": _warnings(results, names),
        "tasks": {task: _task([one["tasks"][task] for one in results], resamples, seed) for task in shared},
        "not_shared": {task: models for task, models in having.items() if task not in shared},
        "rank_changes": rank_changes(results, shared),
        "transfer_probing": transfer_probing(results, shared),
    }


def compare_markdown(results: Sequence[Results], comparison: Comparison | None = None) -> str:
    """Models side by side, in Markdown.

    results (Sequence of dict): see compare. comparison (dict): what compare made of them, by default it is made.
    RETURNS (str): the same for the same results.
    """
    return markdown(contents(aligned(results), comparison or compare(results)))


def compare_terminal(results: Sequence[Results], comparison: Comparison, width: int) -> str:
    """Models side by side, in plain tables; width (int): the columns of the terminal. See compare_markdown."""
    return terminal(contents(aligned(results), comparison), width)


def compare_html(results: Sequence[Results], comparison: Comparison | None = None) -> str:
    """Models side by side, as a self-contained page with plots; see compare_markdown."""
    comparison = comparison or compare(results)
    return html(contents(aligned(results), comparison), plots(comparison))


def aligned(results: Sequence[Results]) -> Sequence[Results]:
    """The results with the first variant that all of them have at the front of each task that they share.

    Predictions and intervals are those of a result's own first variant: where another comes to the front they are left
    out, so that nothing is tested across settings.
    """
    found: list[Results] = [{**one, "tasks": dict(one["tasks"])} for one in results]
    for name in found[0]["tasks"]:
        tasks = [one["tasks"].get(name) for one in found]
        common = [] if None in tasks else common_variants(found, [name])
        for one in found if common else []:
            task = one["tasks"][name]
            place = [variant_key(entry) for entry in task["variants"]].index(common[0])
            if place:
                front = [task["variants"][place], *task["variants"][:place], *task["variants"][place + 1 :]]
                one["tasks"][name] = {**task, "variants": front, "intervals": {}, "predictions": {}}
    return found


def _task(tasks: Sequence[TaskResult], resamples: int, seed: int) -> Compared:
    first, *others = tasks
    figures = [figure(task["variants"][0]["scores"], first["primary"].split(".")) for task in tasks]
    tests = [_test(task, first, resamples, seed) for task in others]
    return {"suite": first["suite"], "primary": first["primary"], "figures": figures, "tests": tests}


def _test(ours: TaskResult, theirs: TaskResult, resamples: int, seed: int) -> Test:
    found = _statistics(ours, theirs)
    if isinstance(found, str):
        return {"reason": found}
    return paired_difference(*found, resamples, seed) or {"reason": "undefined for most resamples"}


def _statistics(ours: TaskResult, theirs: TaskResult) -> Statistics | str:
    """What a paired test compares, or why there is no test; data sets are identified by digests, not by folders."""
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
    if ours["primary"].split(".")[1:] not in CORRELATIONS:
        return f"there is no paired test for {ours['primary']}"
    gold, *sides = (numpy.array(each, dtype="float64") for each in (one["gold"], one["predicted"], other["predicted"]))
    first, second = (spearman_of(side, gold) for side in sides)
    return first, second, len(gold)


def _correct(predictions: Predictions) -> numpy.ndarray:
    return numpy.frombuffer(predictions["right"].encode("ascii"), dtype="uint8") == ord("1")


def _labels(results: Sequence[Results], files: Sequence[str]) -> list[str]:
    """Names of models; those that several have with what tells them apart."""
    names = [one["model"]["name"] for one in results]
    return [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]


def _warnings(results: Sequence[Results], names: Sequence[str]) -> list[str]:
    found = [*_differences([one["settings"] for one in results], "The setting", names)]
    found += _differences([one["versions"] for one in results], "The version of", names)
    by_digest: dict[str, list[str]] = {}
    for name, one in zip(names, results, strict=True):
        by_digest.setdefault(one["model"]["digest"], []).append(name)
    same = [" and ".join(group) for group in by_digest.values() if len(group) > 1]
    return [*found, *(f"{group} are one and the same model: their digests are equal." for group in same)]


def _differences(each: Sequence[Mapping[str, object]], what: str, names: Sequence[str]) -> Iterator[str]:
    for key in dict.fromkeys(key for one in each for key in one):
        values = [_words(one.get(key, "not there")) for one in each]
        if len(set(values)) > 1:
            said = "; ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
            yield f"{what} {key.replace('_', ' ')} differs. {said}."


def _words(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
