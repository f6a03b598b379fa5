"""The plots of a report, and the numbers they show."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

import numpy

from ...render.plots import Bar, Box, Plot, bars, boxes, curves, scatter
from ..results import by_suite, figure
from ..variants import OWN, parse_size
from .cells import Results, count, first, interval_text, percent
from .paper import CLASSIFIERS, COSINE, subsets

MOST = 1500  # points of a scatter plot
SEED = 0
BINS = 5
FEW = 8  # distinct gold scores that have a box each
PERCENTILES = (5, 25, 50, 75, 95)


def figures(results: Results) -> Iterator[Plot]:
    """The plots of a report.

    results (dict): see evaluate_suites.
    """
    for name, task in results["tasks"].items():
        if task["predictions"].get("predicted"):
            yield _scatter(name, task)
            yield _boxes(name, task)
            if subsets(task):
                yield _subset_bars(name, task)
    for suite, tasks in by_suite(results["tasks"]).items():
        if any(set(CLASSIFIERS) & set(first(task)["scores"]) for task in tasks.values()):
            yield from _classifier_bars(suite, tasks)
    for name, task in results["tasks"].items():
        yield from _curve(name, task)


def _scatter(name: str, task: Results) -> Plot:
    gold, predicted = task["predictions"]["gold"], task["predictions"]["predicted"]
    chosen = sorted(random.Random(SEED).sample(range(len(gold)), min(MOST, len(gold))))
    path, similarity = task["primary"], _similarity(task)
    found = percent(figure(first(task)["scores"], path.split(".")))
    title = f"{name}: {similarity} against gold score, Spearman x 100: {found}"
    description = f"{len(chosen)} of {len(gold)} pairs"
    if len(chosen) < len(gold):
        description += f", drawn at random with seed {SEED}"
    description += f"; 95 % interval of the correlation, of all of them: {interval_text(task, path)}"
    description += ", points of the first seed" if "deviation" in first(task) else ""
    x, y = ([side[place] for place in chosen] for side in (gold, predicted))
    return scatter(x, y, ("gold score", similarity), title, description)


def _boxes(name: str, task: Results) -> Plot:
    gold, predicted = (numpy.array(task["predictions"][key], dtype="float64") for key in ("gold", "predicted"))
    groups = [
        Box(words, int(at.sum()), numpy.percentile(predicted[at], PERCENTILES).tolist())
        for words, at in _bins(gold)
        if at.any()
    ]
    similarity = _similarity(task)
    title = f"{name}: {similarity} by gold score"
    description = "Boxes hold the middle half around the median, whiskers the middle 90 %; n: pairs"
    return boxes(groups, ("gold score", similarity), title, description)


def _similarity(task: Results) -> str:
    return f"{task['primary'].split('.')[0]} similarity"


def _bins(gold: numpy.ndarray) -> Iterator[tuple[str, numpy.ndarray]]:
    """Groups by gold score: one for each score if there are few, else of equal width."""
    distinct = numpy.unique(gold)
    if len(distinct) <= FEW:
        yield from ((f"{value:g}", gold == value) for value in distinct)
        return
    edges = numpy.linspace(distinct[0], distinct[-1], BINS + 1)
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        last = place == BINS - 1
        yield f"{low:.3g} to {high:.3g}", (gold >= low) & ((gold <= high) if last else (gold < high))


def _subset_bars(name: str, task: Results) -> Plot:
    paths: list[tuple[str, tuple[str, ...]]] = [(subset, ("subsets", subset)) for subset in subsets(task)]
    paths += [("all pairs pooled", ("pooled",)), ("mean", ("mean",))]
    rows = [bar for words, path in paths for bar in _bars(words, task, (COSINE, "spearman", *path))]
    title = f"{name}: Spearman's correlation of every sub-set"
    description = f"Cosine similarity, x 100, with 95 % intervals; {count(task)} pairs"
    return bars(rows, "Spearman x 100", title, description)


def _bars(words: str, task: Results, path: Sequence[str]) -> list[Bar]:
    """A bar for a figure, or none if it was not measured."""
    value = figure(first(task)["scores"], path)
    return [] if isinstance(value, str) else [Bar(words, value, task["intervals"].get(".".join(path)))]


def _classifier_bars(suite: str, tasks: Mapping[str, Results]) -> Iterator[Plot]:
    for classifier, words in CLASSIFIERS.items():
        rows = [bar for name, task in tasks.items() for bar in _bars(name, task, (classifier, "accuracy"))]
        if rows:
            description = "x 100, with 95 % intervals where they were taken"
            yield bars(rows, "Accuracy x 100", f"{suite}: accuracy of {words}", description)


def _curve(name: str, task: Results) -> Iterator[Plot]:
    """Score against size. Results do not say how wide vectors are at their own size, so those are drawn as levels."""
    lines: dict[str, list[tuple[float, float]]] = {}
    levels: dict[str, float] = {}
    for entry in task["variants"]:
        value = figure(entry["scores"], task["primary"].split("."))
        kind, width = parse_size(entry["size"])
        if value is None or isinstance(value, str):
            continue
        if kind == OWN:
            levels[f"own size, {entry['normalization']}"] = 100 * value
        else:
            lines.setdefault(f"{kind}, {entry['normalization']}", []).append((width, 100 * value))
    if sum(map(len, lines.values())) > 1:
        ordered = {words: sorted(points) for words, points in lines.items()}
        title = f"{name}: score against size"
        description = f"{task['primary']} x 100; pca: principal components, up: random up-projection"
        yield curves(ordered, levels, ("size of the vectors", "score x 100"), title, description)
