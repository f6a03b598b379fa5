"""Tables of few-shot runs: mean accuracy and its 95 % interval, and the seconds.

python benchmarks/few_shot/report.py trained.jsonl setfit.jsonl

Systems are compared on the seeds that all of them have. The interval of a mean is 1.96 standard
errors; that of a difference is of the differences by seed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from runs import Run, read_runs

# A set, and the texts of each class
Cell = tuple[str, int]
# By cell, system and seed
Found = dict[Cell, dict[str, dict[int, Run]]]


def by_cell(runs: Sequence[Run]) -> Found:
    """Return the runs by cell, system and seed."""
    found: Found = {}
    for run in runs:
        systems = found.setdefault((run["set"], run["per_class"]), {})
        systems.setdefault(run["system"], {})[run["seed"]] = run
    return found


def shared_seeds(systems: dict[str, dict[int, Run]]) -> list[int]:
    """Return the seeds that all systems have."""
    return sorted(set.intersection(*map(set, systems.values())))


def with_interval(values: Sequence[float], sign: str = "") -> str:
    """Return a mean and its 95 % interval; of one value there is none."""
    shown = f"{mean(values):{sign}.1f}"
    if len(values) > 1:
        shown += f" ± {1.96 * stdev(values) / len(values) ** 0.5:.1f}"
    return shown


def of_seeds(runs: dict[int, Run], seeds: Sequence[int], key: str) -> list[float]:
    """Return one figure of the runs of some seeds."""
    return [float(runs[seed][key]) for seed in seeds]


def print_table(found: Found, first: str, second: str) -> None:
    """Print the accuracy of each system, and what the first has over the second."""
    names = sorted({name for systems in found.values() for name in systems})
    print("| data, texts of each class | seeds |", *(f"{name} |" for name in names), "difference |")
    print("|---" * (len(names) + 3) + "|")
    for (name, per_class), systems in found.items():
        seeds = shared_seeds(systems)
        if not seeds:
            continue
        cells = [f"{name}, {per_class}", str(len(seeds))]
        for system in names:
            values = of_seeds(systems[system], seeds, "accuracy") if system in systems else []
            cells.append(with_interval(values) if values else "not run")
        cells.append(difference(systems, seeds, first, second))
        print(f"| {' | '.join(cells)} |")


def difference(
    systems: dict[str, dict[int, Run]], seeds: Sequence[int], first: str, second: str
) -> str:
    """Return by how much the first system is better, seed by seed."""
    if first not in systems or second not in systems:
        return ""
    ours, theirs = (of_seeds(systems[name], seeds, "accuracy") for name in (first, second))
    return with_interval([a - b for a, b in zip(ours, theirs, strict=True)], "+")


def print_seconds(found: Found) -> None:
    """Print the mean seconds of training, and of predicting 1,000 texts."""
    print("| data, texts of each class | system | training | predicting 1,000 texts |")
    print("|---|---|---|---|")
    for (name, per_class), systems in found.items():
        for system, runs in sorted(systems.items()):
            training, predicting = (
                mean(of_seeds(runs, list(runs), key))
                for key in ("train_seconds", "predict_seconds")
            )
            print(f"| {name}, {per_class} | {system} | {training:.1f} | {predicting:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="JSON lines")
    parser.add_argument("--first", default="trained")
    parser.add_argument("--second", default="setfit")
    given = parser.parse_args()
    found = by_cell([run for path in given.files for run in read_runs(path)])
    print_table(found, given.first, given.second)
    print()
    print_seconds(found)


if __name__ == "__main__":
    main()
