"""Similarities that are learned from vectors as they are, and from z-scores: after Eger, Rückle and
Gurevych 2019, Figure 2.

    python benchmarks/papers/learned_normalization.py --encoders training/encoders --output
    benchmarks/papers/results/pitfalls

Each encoder and baseline is scored on the data sets with a training split (protocols/
learned_similarity.py), with both normalizations, and not scored again. Intervals of differences are
of a paired bootstrap over the test pairs, 10,000 resamples with seed 1. Writes
learned-normalized.json and learned-normalized.md.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy
from pitfalls import percent
from protocols.learned_similarity import TASKS
from suites import markdown, parser, prepared, run_once, source_of

from spacy_sbert.evaluation import Settings
from spacy_sbert.evaluation.encoders import VectorStore
from spacy_sbert.evaluation.results import paired_difference, spearman_of
from spacy_sbert.evaluation.task import Run
from spacy_sbert.files.serialization import versions

NORMALIZATIONS = ("none", "zscore")
SIMILARITIES = ("cosine", "learned", "softmax")
SEED = 1
RESAMPLES = 10_000


def measured(name: str, args: argparse.Namespace, data: Path) -> dict[str, Any]:
    """Return correlations by task, similarity and normalization, and the differences of ridge
    regression's.
    """
    start = time.perf_counter()
    source = source_of(name, args.encoders, data)
    store = VectorStore(source, None, _no_bar)
    tasks = {}
    for task in TASKS:
        results = {}
        for normalization in NORMALIZATIONS:
            settings = Settings(
                normalizations=(normalization,), seeds=(SEED,), bootstrap=0, any_count=True
            )
            results[normalization] = task.run(Run(data, store, settings, _no_bar, source))
        tasks[task.name] = {
            "splits": results["none"]["splits"],
            "counts": results["none"]["counts"],
            "scores": {name: _scores(one) for name, one in results.items()},
            "learned.spearman, zscore less none": _difference(results["zscore"], results["none"]),
        }
    seconds = round(time.perf_counter() - start)
    return {"tasks": tasks, "versions": versions(), "seconds": seconds}


def _no_bar(items: Sequence[Any], name: str) -> Sequence[Any]:
    return items


def _scores(result: Mapping[str, Any]) -> dict[str, Any]:
    scores = result["variants"][0]["scores"]
    return {name: scores[name] for name in SIMILARITIES}


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the difference of Spearman's correlation on the same pairs, and its interval."""
    gold = numpy.array(one["predictions"]["gold"])
    ours, theirs = (
        spearman_of(numpy.array(each["predictions"]["predicted"]), gold) for each in (one, other)
    )
    return paired_difference(ours, theirs, len(gold), RESAMPLES, SEED)


def table(found: Mapping[str, Any]) -> str:
    """Return a table of each task: a row an encoder, then the range over them and the deviation."""
    return "\n".join(_of_task(found, task.name) for task in TASKS)


def _of_task(found: Mapping[str, Any], task: str) -> str:
    columns = {
        f"{similarity}, {normalization}": [
            one["tasks"][task]["scores"][normalization][similarity]["spearman"]
            for one in found.values()
        ]
        for similarity in SIMILARITIES
        for normalization in NORMALIZATIONS
    }
    rows = []
    for i, (name, one) in enumerate(found.items()):
        difference = one["tasks"][task]["learned.spearman, zscore less none"]
        cell = "-"
        if difference is not None:
            figures = {key: 100 * value for key, value in difference.items()}
            cell = "{difference:+.2f} ({low:+.2f} to {high:+.2f})".format(**figures)
        rows.append([name, *(percent(values[i]) for values in columns.values()), cell])
    if len(rows) > 1:
        spread = {
            "range": [max(values) - min(values) for values in columns.values()],
            "standard deviation": [statistics.stdev(values) for values in columns.values()],
        }
        for name, values in spread.items():
            rows.append([name, *map(percent, values), "-"])
    return markdown([task, *columns, "learned, zscore less none"], rows)


def main() -> None:
    args = parser(__doc__).parse_args()
    names, data = prepared(args)
    found = {}
    for name in names:
        work = partial(measured, name, args, data)
        found[name] = run_once(args.output / "learned-normalized.json", name, work)
    (args.output / "learned-normalized.md").write_text(table(found), encoding="utf8")


if __name__ == "__main__":
    main()
