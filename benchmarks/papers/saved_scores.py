"""Tables of docs/papers.md that are made of scores saved for other tables.

page.py writes them where the page has `<!-- table NAME -->`, NAME a key of TABLES.
"""

import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
from runs import markdown

RESULTS = Path(__file__).parent / "results"
OBJECTIVES = RESULTS.parent.parent / "objectives" / "results" / "objectives.json"
SIMILARITIES = ("cosine", "euclidean", "manhattan")
# Without normalization, and with z-scores
SCALED = ("none", "zscore")
CORRELATIONS = ("pearson", "spearman")
SEEDS = (1, 2, 3)
RESAMPLES = 10_000


def other_similarities() -> str:
    """A row an encoder: Spearman's correlation of each similarity with the gold scores, the mean
    over the sets and STSb dev.
    """
    rows = []
    for name, encoder in _read(RESULTS / "sts" / "scores.json").items():
        tasks = encoder["tasks"]
        row = [name]
        for names in (list(tasks), ["STSb-dev"]):
            for similarity in SIMILARITIES:
                values = [_all_pairs(tasks[task]["scores"][similarity]) for task in names]
                row.append(_percent(statistics.mean(values)))
        rows.append(row)
    header = ["", *(f"{each.capitalize()}, mean" for each in SIMILARITIES)]
    header += [f"{each.capitalize()}, STSb-dev" for each in SIMILARITIES]
    return markdown(header, rows)


def spread() -> str:
    """A row an encoder: both correlations of the cosine, the mean over the STS tasks, as the
    vectors are and with z-scores. The last rows are the range and the standard deviation over
    encoders.
    """
    found = _read(RESULTS / "pitfalls" / "pairs.json")
    columns = {}
    for normalization in SCALED:
        for correlation in CORRELATIONS:
            columns[f"{correlation.capitalize()}, {normalization}"] = [
                _mean_over_tasks(encoder["tasks"], normalization, correlation)
                for encoder in found.values()
            ]
    rows = []
    for i, name in enumerate(found):
        rows.append([name, *(_percent(values[i]) for values in columns.values())])
    ranges = [max(values) - min(values) for values in columns.values()]
    deviations = [statistics.stdev(values) for values in columns.values()]
    rows.append(["range", *map(_percent, ranges)])
    rows.append(["standard deviation", *map(_percent, deviations)])
    return markdown(["", *columns], rows)


def trained_triplets() -> str:
    """Accuracy on Wikipedia sections before and after training, and the difference."""
    runs = _read(OBJECTIVES)
    untrained = runs["triplet-sentence-transformers-0"]
    trained = [runs[f"triplet-spacy-sbert-{seed}"] for seed in SEEDS]
    peers = [runs[f"triplet-sentence-transformers-{seed}"] for seed in SEEDS]
    rows = [["not trained", f"{untrained['accuracy']:.2f}", "-", "-", "-", "-"]]
    for name, each in (("spacy-sbert", trained), ("sentence-transformers", peers)):
        values = [run["accuracy"] for run in each]
        difference, low, high = _difference(each, untrained)
        rows.append(
            [
                f"trained by {name}",
                f"{statistics.mean(values):.2f}",
                f"{statistics.stdev(values):.2f}",
                f"{difference:+.2f}",
                f"{low:+.2f} to {high:+.2f}",
                str(len(each)),
            ]
        )
    header = ["", "accuracy x 100", "standard deviation", "less not trained"]
    return markdown([*header, "95 % interval", "seeds"], rows)


# By name, how a table is made
TABLES: dict[str, Callable[[], str]] = {
    "sts/other-similarities": other_similarities,
    "pitfalls/spread": spread,
    "wikisec/trained": trained_triplets,
}


def _read(file: Path) -> dict[str, Any]:
    """Return saved scores by the name of the encoder or the run."""
    return json.loads(file.read_text(encoding="utf8"))


def _all_pairs(scores: Mapping[str, Any]) -> float:
    return scores["spearman"]["pooled"]


def _mean_over_tasks(tasks: Mapping[str, Any], normalization: str, correlation: str) -> float:
    """Return the mean of a correlation over tasks, of all pairs of a set at once."""
    values = []
    for task in tasks.values():
        for variant in task["variants"]:
            if (variant["normalization"], variant["size"]) == (normalization, "own"):
                values.append(variant["scores"]["cosine"][correlation]["pooled"])
    return statistics.mean(values)


def _difference(
    trained: list[dict[str, Any]], untrained: dict[str, Any]
) -> tuple[float, float, float]:
    """Return the difference of accuracies x 100, and its 95 % interval by a paired bootstrap over
    the test triplets, as benchmarks/objectives/report.py has it.

    The fraction of the seeds that have a triplet right is one observation.
    """
    after = numpy.mean([_right(run) for run in trained], axis=0)
    # (triplets,)
    differences = 100 * (after - _right(untrained))
    n = len(differences)
    drawn = numpy.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    low, high = numpy.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    return float(differences.mean()), float(low), float(high)


def _right(run: dict[str, Any]) -> numpy.ndarray:
    """Return 1 for each test triplet that a run has right, otherwise 0."""
    return numpy.array([int(digit) for digit in run["right"]])


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"
