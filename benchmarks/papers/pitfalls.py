"""Measure encoders in several ways, and write what the ways change: after Eger, Rückle and Gurevych
2019.

    python benchmarks/papers/pitfalls.py --encoders training/encoders --output
    benchmarks/papers/results/pitfalls

Each encoder and baseline is measured in PARTS, a file each in the output folder, and not measured
again. The tables:

sizes           Spearman's correlation on STS tasks of principal components and of random
                up-projections
normalizations  the same, and accuracy on transfer tasks, of vectors that are scaled
classifiers     accuracy on transfer tasks of logistic regression and of the MLP, and the ranks by
                each
learned         the cosine beside similarities learned from graded pairs
probing         the rank correlation of transfer and probing tasks over encoders, with intervals
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankings import ranks, transfer_probing
from scipy import stats
from suites import figure, markdown, parser, prepared, read_runs, run_once, source_of

from spacy_sbert.evaluation import Settings, evaluate_suites

NORMALIZATIONS = ("none", "unit", "zscore", "zscore_unit")
SIZES = ("own", "pca-32", "pca-64", "pca-128", "pca-256", "up-1024")
SCALED = ("none", "zscore")
# suites, and settings
PARTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "pairs": (("sts",), {"normalizations": NORMALIZATIONS, "sizes": SIZES, "seeds": (1, 2, 3)}),
    "learned": (("learned",), {"seeds": (1,)}),
    "classes": (
        ("transfer", "probing"),
        {"normalizations": SCALED, "classifiers": ("lr", "mlp"), "seeds": (1,)},
    ),
    "curve": (
        ("transfer",),
        {"sizes": ("pca-32", "pca-64", "pca-128"), "classifiers": ("lr",), "seeds": (1,)},
    ),
}
SIMILARITIES = ("cosine", "learned", "softmax", "svr")
# Results of parts, by encoder
Found = Mapping[str, Mapping[str, Any]]


def measured(name: str, part: str, args: argparse.Namespace, data: Path) -> dict[str, Any]:
    """The results of a part, without the predictions of examples."""
    suites, settings = PARTS[part]
    start = time.perf_counter()
    how = Settings(bootstrap=0, any_count=True, **settings)
    cache = args.cache and args.cache / name
    found = evaluate_suites(
        source_of(name, args.encoders, data), data, suites, settings=how, cache=cache
    )
    if found["failed"]:
        raise SystemExit(f"{name}, {part}: {found['failed']}")
    for task in found["tasks"].values():
        task["predictions"] = {}
        for variant in task["variants"]:
            variant["scores"] = shown(variant["scores"])
            variant.get("deviation", {}).clear()
    return {
        **found,
        "skipped": sorted(found["skipped"]),
        "seconds": round(time.perf_counter() - start),
    }


def shown(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores that a table has: sub-sets are many, and other distances than the cosine's."""
    left_out = ("subsets", "weighted_mean", "manhattan", "euclidean", "dot")
    found = {}
    for name, each in scores.items():
        if name not in left_out:
            found[name] = shown(each) if isinstance(each, dict) else each
    return found


def scores_of(task: Mapping[str, Any], normalization: str, size: str) -> Mapping[str, Any] | None:
    """Those of a variant, if it was measured."""
    for variant in task["variants"]:
        if (variant["normalization"], variant["size"]) == (normalization, size):
            return variant["scores"]
    return None


def mean_over(
    tasks: Iterable[Mapping[str, Any]], path: str, normalization: str = "none", size: str = "own"
) -> Any:
    """The mean of a figure over tasks, None where a task does not have it."""
    values = []
    for task in tasks:
        value = figure(scores_of(task, normalization, size), path)
        if value is None:
            return None
        values.append(value)
    if not values:
        return None
    return sum(values) / len(values)


def of_suite(parts: Mapping[str, Any], part: str, suite: str) -> list[Mapping[str, Any]]:
    """The tasks of a suite in a part, none if it was not measured."""
    return [task for task in tasks_of(parts, part).values() if task["suite"] == suite]


def tasks_of(parts: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """The tasks of a part, none if it was not measured."""
    if part not in parts:
        return {}
    return parts[part]["tasks"]


def sizes(found: Found) -> str:
    """A row an encoder: the mean over STS tasks, and over transfer tasks where they were measured
    at that size.
    """
    transfer = [size for size in SIZES if accuracy_is_shown(size)]
    rows = []
    for name, parts in found.items():
        pairs = of_suite(parts, "pairs", "sts")
        row = [mean_over(pairs, "cosine.spearman.pooled", size=size) for size in SIZES]
        row += [accuracy(parts, size) for size in transfer]
        rows.append([name, *map(percent, row)])
    header = ["", *(f"STS, {size}" for size in SIZES), *(f"transfer, {size}" for size in transfer)]
    return markdown(header, rows)


def accuracy_is_shown(size: str) -> bool:
    return size == "own" or size in PARTS["curve"][1]["sizes"]


def accuracy(parts: Mapping[str, Any], size: str) -> float | None:
    part = "classes" if size == "own" else "curve"
    return mean_over(of_suite(parts, part, "transfer"), "lr.accuracy", size=size)


def normalizations(found: Found) -> str:
    rows = []
    for name, parts in found.items():
        pairs = of_suite(parts, "pairs", "sts")
        classes = of_suite(parts, "classes", "transfer")
        row = [mean_over(pairs, "cosine.spearman.pooled", each) for each in NORMALIZATIONS]
        row += [
            mean_over(classes, f"{kind}.accuracy", each)
            for kind in ("lr", "mlp")
            for each in SCALED
        ]
        rows.append([name, *map(percent, row)])
    transfer = [f"transfer, {kind}, {each}" for kind in ("LR", "MLP") for each in SCALED]
    return markdown(["", *(f"STS, {each}" for each in NORMALIZATIONS), *transfer], rows)


def classifiers(found: Found) -> str:
    """A table each of transfer and probing tasks: accuracies and ranks. Below, their rank
    correlation, and how many have another rank.
    """
    names = [name for name, parts in found.items() if "classes" in parts]
    if not names:
        return ""
    suites, _ = PARTS["classes"]
    return "\n".join(of_classifiers(found, names, suite) for suite in suites)


def of_classifiers(found: Found, names: Sequence[str], suite: str) -> str:
    tasks = tasks_of(found[names[0]], "classes")
    header = [""]
    rows = [[name] for name in names]
    notes = []
    for task in (task for task in tasks if tasks[task]["suite"] == suite):
        scores = [tasks_of(found[name], "classes")[task]["variants"][0]["scores"] for name in names]
        accuracies = {}
        places = {}
        for kind in ("lr", "mlp"):
            accuracies[kind] = [figure(of_model, f"{kind}.accuracy") for of_model in scores]
            places[kind] = ranks(accuracies[kind]) or []
            header.append(f"{task} {kind.upper()}")
            for row, value, place in zip(rows, accuracies[kind], places[kind], strict=True):
                row.append(f"{percent(value)} ({place})")
        rho = stats.spearmanr(accuracies["lr"], accuracies["mlp"]).statistic
        moved = sum(one != other for one, other in zip(places["lr"], places["mlp"], strict=True))
        notes.append(f"{task} {100 * rho:.1f}, {moved} of {len(names)} with another rank")
    said = f"\nRank correlation of both classifiers over encoders x 100: {'; '.join(notes)}.\n"
    return markdown(header, rows) + said


def learned(found: Found) -> str:
    rows = []
    for name, parts in found.items():
        for task, one in tasks_of(parts, "learned").items():
            scores = one["variants"][0]["scores"]
            for kind in SIMILARITIES:
                if kind in scores:
                    pearson = correlation(scores, f"{kind}.pearson")
                    spearman = correlation(scores, f"{kind}.spearman")
                    error = figure(scores, f"{kind}.mse")
                    error_text = "-" if error is None else f"{error:.3f}"
                    rows.append([name, task, kind, percent(pearson), percent(spearman), error_text])
    return markdown(
        ["", "task", "similarity", "Pearson x 100", "Spearman x 100", "squared error"], rows
    )


def correlation(scores: Mapping[str, Any], path: str) -> float | None:
    """Of sets that have sub-sets, folds or topics, their mean."""
    found: Any = figure(scores, path)
    if isinstance(found, dict):
        return found["mean"]
    return found


def probing(found: Found) -> str:
    """Rows are transfer tasks, columns probing tasks."""
    results: list[Any] = [parts["classes"] for parts in found.values() if "classes" in parts]
    if not results:
        return ""
    first = results[0]["tasks"]
    shared = [name for name in first if all(name in one["tasks"] for one in results)]
    table: Any = transfer_probing(results, shared)
    if "reason" in table:
        return f"{table['reason']}\n"
    columns = list(next(iter(table["correlations"].values())))
    rows = []
    for transfer, correlations in table["correlations"].items():
        cells = []
        for column, value in correlations.items():
            text = percent(value)
            ends = table["intervals"][transfer][column]
            if ends:
                text += f" ({percent(ends[0])} to {percent(ends[1])})"
            cells.append(text)
        rows.append([transfer, *cells])
    return markdown(["", *columns], rows) + f"\n{table['models']} encoders; {table['interval']}.\n"


TABLES = {made.__name__: made for made in (sizes, normalizations, classifiers, learned, probing)}


def percent(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}"


def saved(folder: Path, names: Sequence[str]) -> Found:
    """All that there is."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for part in PARTS:
        runs = read_runs(folder / f"{part}.json")
        for name in names:
            if name in runs:
                found[name][part] = runs[name]
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = options.parse_args()
    names, data = prepared(args)
    for part in args.parts:
        for name in names:
            run_once(args.output / f"{part}.json", name, partial(measured, name, part, args, data))
        found = saved(args.output, names)
        for title, table in TABLES.items():
            (args.output / f"{title}.md").write_text(table(found), encoding="utf8")


if __name__ == "__main__":
    main()
