"""Comparison of the results of several models on the tasks that they share, with paired tests."""

from collections.abc import Iterator, Mapping, Sequence

import numpy

from .results import (
    Json,
    Resampled,
    check_results,
    figure,
    mean_of,
    paired_difference,
    spearman_of,
)

# Normalization and size
VariantKey = tuple[str, str]


def compare(
    results: Sequence[Json],
    *,
    resamples: int = 1000,
    seed: int = 1,
    files: Sequence[str] | None = None,
) -> Json:
    """Put models side by side, and test every other one against the first.

    results (Sequence of dict): two or more, see evaluate_suites and read_results.
    resamples, seed (int): of the paired bootstrap tests, see paired_difference.
    files (Sequence of str): what tells models of one name apart, such as the names of their files;
        by default numbers.
    RETURNS (dict): JSON: format, resamples, seed; models, names and digests; warnings, what differs
        that should not; tasks that all models have, by name: suite, primary, figures of the models,
        and tests, for each model but the first its difference from the first, low, high and p, or
        the reason why there is none; not_shared, which models have the other tasks.
    RAISES (ValueError): if there are fewer than two, or one is not the result of an evaluation, or
        has another format.
    SOURCE: see paired_difference.
    """
    if len(results) < 2:
        raise ValueError(
            f"Cannot compare {len(results)} results of evaluations: expected two or more."
        )
    for number, result in enumerate(results, 1):
        check_results(result, f"Result {number}")
    names = [result["model"]["name"] for result in results]
    files = files or [str(number) for number in range(1, len(results) + 1)]
    names = [
        f"{name} ({file})" if names.count(name) > 1 else name
        for name, file in zip(names, files, strict=True)
    ]
    results = aligned(results)
    # The models that have a task
    having: dict[str, list[str]] = {}
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
        "tasks": {
            task: _task([result["tasks"][task] for result in results], resamples, seed)
            for task in shared
        },
        "not_shared": {task: models for task, models in having.items() if task not in shared},
    }


def aligned(results: Sequence[Json]) -> list[Json]:
    """Return the results with the first variant that all of them have at the front of each task that they share.

    Predictions and intervals are those of a result's own first variant: if another comes to the
    front they are left out, so that nothing is tested across settings.
    """
    copies: list[Json] = [{**result, "tasks": dict(result["tasks"])} for result in results]
    for name in copies[0]["tasks"]:
        common = (
            common_variants(copies, [name])
            if all(name in result["tasks"] for result in copies)
            else []
        )
        for result in copies if common else []:
            task = result["tasks"][name]
            variants = sorted(task["variants"], key=lambda entry: variant_of(entry) != common[0])
            if variants[0] is not task["variants"][0]:
                result["tasks"][name] = {
                    **task,
                    "variants": variants,
                    "intervals": {},
                    "predictions": {},
                }
    return copies


def _task(tasks: Sequence[Json], resamples: int, seed: int) -> Json:
    first, *others = tasks
    tests: list[Mapping[str, float | str]] = []
    for task in others:
        statistics = _statistics(task, first)
        test = (
            None if isinstance(statistics, str) else paired_difference(*statistics, resamples, seed)
        )
        reason = statistics if isinstance(statistics, str) else "undefined for most resamples"
        tests.append(test or {"reason": reason})
    figures = [figure(task["variants"][0]["scores"], first["primary"].split(".")) for task in tasks]
    return {
        "suite": first["suite"],
        "primary": first["primary"],
        "figures": figures,
        "tests": tests,
    }


def _statistics(ours: Json, theirs: Json) -> tuple[Resampled, Resampled, int] | str:
    """Return the statistics of a paired test and the number of examples, or why there is no test."""
    first, second = ours["predictions"], theirs["predictions"]
    # digests, wherever the files are
    if sorted(ours["data"].values()) != sorted(theirs["data"].values()):
        return "the data files differ"
    if variant_of(ours["variants"][0]) != variant_of(theirs["variants"][0]):
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
    statistics = [
        spearman_of(numpy.array(each["predicted"], dtype="float64"), gold)
        for each in (first, second)
    ]
    return statistics[0], statistics[1], len(gold)


def _warnings(results: Sequence[Json], names: Sequence[str]) -> Iterator[str]:
    for part, what in (("settings", "The setting"), ("versions", "The version of")):
        for key in dict.fromkeys(key for result in results for key in result[part]):
            values = [result[part].get(key, "not there") for result in results]
            words = [
                (", ".join(map(str, v)) or "none") if isinstance(v, list) else str(v)
                for v in values
            ]
            if len(set(words)) > 1:
                listed = "; ".join(
                    f"{name}: {value}" for name, value in zip(names, words, strict=True)
                )
                yield f"{what} {key.replace('_', ' ')} differs. {listed}."
    digests = [result["model"]["digest"] for result in results]
    for digest in dict.fromkeys(digest for digest in digests if digests.count(digest) > 1):
        same = " and ".join(name for name, own in zip(names, digests, strict=True) if own == digest)
        yield f"{same} are one and the same model: their digests are equal."


def common_variants(results: Sequence[Json], names: Sequence[str]) -> list[VariantKey]:
    """Return the variants that all models have for all tasks, as the first model orders them."""
    each = [
        [variant_of(entry) for entry in model["tasks"][name]["variants"]]
        for model in results
        for name in names
    ]
    return [variant for variant in each[0] if all(variant in variants for variants in each)]


def variant_of(entry: Json) -> VariantKey:
    """Return normalization and size of an entry of a result's "variants"."""
    return entry["normalization"], entry["size"]
