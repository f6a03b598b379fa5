"""Runs of a benchmark over sets, numbers of texts and seeds, one JSON line each.

A run that the file has is not made again. As in draws.py, nothing but the standard library is
imported.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from draws import SETS, Draw, draw_texts, read_rows

Run = dict[str, Any]
# What tells runs apart
KEYS = ("system", "set", "per_class", "seed")


class Trained(NamedTuple):
    """A trained classifier: returns the labels of texts."""

    predict: Callable[[Sequence[str]], Sequence[str]]
    details: Run


# Trains on a draw, with a seed
Train = Callable[[Draw, int], Trained]


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that every system has."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--per-class", default="8,16,64")
    parser.add_argument("--seeds", default="0-9", help="the first and the last one")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, appended to")
    return parser


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a file, none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def run_all(given: argparse.Namespace, system: str, train: Train, packages: Sequence[str]) -> None:
    """Make the runs that the output does not have, and append each as it ends.

    given: what make_parser parsed. packages: those whose versions are noted.
    """
    versions = {package: version(package) for package in packages}
    made = {tuple(run[key] for key in KEYS) for run in read_runs(given.output)}
    for name in given.sets.split(","):
        rows = read_rows(given.data, name)
        for per_class in map(int, given.per_class.split(",")):
            for seed in _seeds(given.seeds):
                place = (system, name, per_class, seed)
                if place in made:
                    continue
                run = dict(zip(KEYS, place, strict=True))
                run |= measure(draw_texts(rows, per_class, seed), seed, train)
                _append(given.output, run | {"versions": versions})


def measure(draw: Draw, seed: int, train: Train) -> Run:
    """Return the accuracy in percent, and the seconds of training and of predicting 1,000 texts."""
    texts, gold = zip(*draw.test, strict=True)
    start = time.perf_counter()
    trained = train(draw, seed)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    found = trained.predict(texts)
    predicting = time.perf_counter() - start
    n_right = sum(label == right for label, right in zip(found, gold, strict=True))
    return {
        "accuracy": 100 * n_right / len(gold),
        "train_seconds": round(seconds, 2),
        "predict_seconds": round(1000 * predicting / len(gold), 3),
        "tested": len(gold),
        **trained.details,
    }


def _seeds(given: str) -> Iterator[int]:
    first, _, last = given.partition("-")
    yield from range(int(first), int(last or first) + 1)


def _append(path: Path, run: Run) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf8") as file:
        file.write(json.dumps(run) + "\n")
    shown = {key: value for key, value in run.items() if key != "versions"}
    print(json.dumps(shown), flush=True)
