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
    shown,
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
    files = files or [str(number) for number in range(1, len(results) + 1)]
    names = _distinct_names(results, files)
    results = aligned(results)
    models = [
        {"name": name, "digest": result["model"]["digest"]}
        for name, result in zip(names, results, strict=True)
    ]
    models_of_task = _models_of_task(results, names)
    shared: Json = {}
    not_shared: Json = {}
    for task, having in models_of_task.items():
        if len(having) == len(results):
            shared[task] = _task([result["tasks"][task] for result in results], resamples, seed)
        else:
            not_shared[task] = having
    return {
        "format": "spacy-sbert comparison 1",
        "resamples": resamples,
        "seed": seed,
        "models": models,
        "warnings": [*_different_facts(results, names), *_equal_models(models)],
        "tasks": shared,
        "not_shared": not_shared,
    }


def _models_of_task(results: Sequence[Json], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the models that have each task."""
    models: dict[str, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for task in result["tasks"]:
            models.setdefault(task, []).append(name)
    return models


def _distinct_names(results: Sequence[Json], files: Sequence[str]) -> list[str]:
    """Return the names of the models, with its file behind a name that several have."""
    names = [result["model"]["name"] for result in results]
    return [
        f"{name} ({file})" if names.count(name) > 1 else name
        for name, file in zip(names, files, strict=True)
    ]


def aligned(results: Sequence[Json]) -> list[Json]:
    """Return the results with a variant that all of them have at the front of each shared task.

    It is the first that all have. Predictions and intervals are those of a result's own first
    variant: if another comes to the front they are left out, so that nothing is tested across
    settings.
    """
    copies: list[Json] = [{**result, "tasks": dict(result["tasks"])} for result in results]
    for name in copies[0]["tasks"]:
        common: list[VariantKey] = []
        if all(name in result["tasks"] for result in copies):
            common = common_variants(copies, [name])
        if common:
            for result in copies:
                result["tasks"][name] = _with_first(result["tasks"][name], common[0])
    return copies


def _with_first(task: Json, variant: VariantKey) -> Json:
    """Return a task with a variant at the front."""
    if variant_of(task["variants"][0]) == variant:
        return task
    variants = sorted(task["variants"], key=lambda entry: variant_of(entry) != variant)
    return {**task, "variants": variants, "intervals": {}, "predictions": {}}


def _task(tasks: Sequence[Json], resamples: int, seed: int) -> Json:
    first, *others = tasks
    tests = [_test(task, first, resamples, seed) for task in others]
    figures = [figure(task["variants"][0]["scores"], first["primary"].split(".")) for task in tasks]
    return {
        "suite": first["suite"],
        "primary": first["primary"],
        "figures": figures,
        "tests": tests,
    }


def _test(
    ours: Json, theirs: Json, resamples: int, seed: int
) -> Mapping[str, float] | Mapping[str, str]:
    """Return a paired test of two results of a task, or the reason why there is none."""
    reason = _untested(ours, theirs)
    if reason is not None:
        return {"reason": reason}
    first = ours["predictions"]
    n = len(first.get("right") or first["gold"])
    test = paired_difference(
        _statistic(first), _statistic(theirs["predictions"]), n, resamples, seed
    )
    return test or {"reason": "undefined for most resamples"}


def _untested(ours: Json, theirs: Json) -> str | None:
    """Return why there is no paired test; None if there is one."""
    # By digests, wherever the files are
    if sorted(ours["data"].values()) != sorted(theirs["data"].values()):
        return "the data files differ"
    if variant_of(ours["variants"][0]) != variant_of(theirs["variants"][0]):
        return "the normalisation or the size of the first variant differs"
    if ours["primary"] != theirs["primary"]:
        return "the figures that stand for the task differ"
    first = ours["predictions"]
    second = theirs["predictions"]
    # Of classes, and not of scores
    if first.get("right") and second.get("right"):
        if len(first["right"]) != len(second["right"]):
            return "the numbers of examples differ"
        return None
    if not first.get("predicted") or not second.get("predicted"):
        return "no predictions were kept"
    if first["gold"] != second["gold"]:
        return "the gold scores, or their order, differ"
    if ours["primary"].split(".")[1:] not in (["spearman", "pooled"], ["spearman"]):
        return f"there is no paired test for {ours['primary']}"
    return None


def _statistic(predictions: Json) -> Resampled:
    """Return the statistic of predictions, right or wrong, or scores."""
    if predictions.get("right"):
        return mean_of(numpy.array(list(predictions["right"])) == "1")
    gold = numpy.array(predictions["gold"], dtype="float64")
    return spearman_of(numpy.array(predictions["predicted"], dtype="float64"), gold)


def _different_facts(results: Sequence[Json], names: Sequence[str]) -> Iterator[str]:
    """Yield which settings and versions differ."""
    for part, what in (("settings", "The setting"), ("versions", "The version of")):
        for key in dict.fromkeys(key for result in results for key in result[part]):
            values = [shown(result[part].get(key, "not there")) for result in results]
            if len(set(values)) > 1:
                each = zip(names, values, strict=True)
                listed = "; ".join(f"{name}: {value}" for name, value in each)
                yield f"{what} {key.replace('_', ' ')} differs. {listed}."


def _equal_models(models: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield which models are one."""
    names: dict[str, list[str]] = {}
    for model in models:
        names.setdefault(model["digest"], []).append(model["name"])
    for equal in names.values():
        if len(equal) > 1:
            listed = " and ".join(equal)
            yield f"{listed} are one and the same model: their digests are equal."


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
