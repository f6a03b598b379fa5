"""How fast one checkout of the package is beside another one, each in an environment of its own.

Usage: python benchmarks/revisions/speed.py BASE NEW [--env .venv] [--rounds 3]
    [--output FILE.json] [--only NAME ...] [--data FOLDER] [--texts 800]
BASE and NEW are checkouts, whose environments are the folders BASE/ENV and NEW/ENV. Each workload
(workloads.py) runs in a fresh process of BASE and of NEW in turn, in the other order in every
second round, on one thread. Times are of the processor, which other processes disturb less than the
clock. The ratios are NEW / BASE: below 1, NEW is faster or needs less memory.
"""

import argparse
import json
import os
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

WORKLOADS = Path(__file__).parent / "workloads.py"
BASE, NEW = "base", "new"
FIRST_VECTOR = "first_vector"
PROGRAM = 'import spacy; nlp = spacy.blank("en"); nlp.add_pipe("sbert"); nlp("A text.").vector'
SECONDS, MILLISECONDS, MEGABYTES = "s", "ms", "MB"
UNITS = {
    FIRST_VECTOR: SECONDS,
    "encode float32": SECONDS,
    "encode bfloat16": SECONDS,
    "encode int8": SECONDS,
    "nlp.pipe": SECONDS,
    "encode one text": MILLISECONDS,
    "encode one text int8": MILLISECONDS,
    "Doc of one text": MILLISECONDS,
    "train sts": SECONDS,
    "train ranking": SECONDS,
    "memory": MEGABYTES,
}


class Revision:
    """A checkout with its environment.

    folder (Path): the checkout. env (str): the folder of the environment in it. options (list):
        arguments of workloads.py.
    """

    def __init__(self, folder: Path, env: str, options: list[str]):
        self.folder = folder.resolve()
        # Not resolved: the link to the interpreter says which environment it is
        self.python = self.folder / env / "bin" / "python"
        self.options = options
        if not self.python.is_file():
            raise SystemExit(f"There is no environment: {self.python}")

    def commit(self) -> str:
        """Return the commit of the checkout, with "-dirty" after it if files were changed."""
        command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
        return self._output(command).strip()

    def figures(self, workload: str) -> list[float]:
        """Return the figures of a workload, of a fresh process."""
        if workload == FIRST_VECTOR:
            return [self._seconds([str(self.python), "-c", PROGRAM])]
        command = [str(self.python), str(WORKLOADS), workload, *self.options]
        printed = json.loads(self._output(command).splitlines()[-1])
        self._check(Path(printed["package"]))
        return printed["figures"]

    def _seconds(self, command: list[str]) -> float:
        """Return the processor's seconds of a whole process."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._output(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _check(self, package: Path) -> None:
        """Refuse an environment that has the package of another checkout."""
        if not package.resolve().is_relative_to(self.folder):
            raise SystemExit(
                f"{self.python} imports {package}: install the checkout in its environment."
            )

    def _output(self, command: list[str]) -> str:
        """Run a command in the checkout to its end, and return what it prints."""
        # With compiled files beside all modules, as pip leaves them
        inherited = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        }
        settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=inherited | settings,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout


def measure(
    revisions: dict[str, Revision], workload: str, rounds: int
) -> dict[str, list[list[float]]]:
    """Return the figures of each revision, a list for each round, measured in turn."""
    found: dict[str, list[list[float]]] = {name: [] for name in revisions}
    if workload == FIRST_VECTOR:
        # Leaves compiled modules, and files in the disk cache
        for revision in revisions.values():
            revision.figures(workload)
    for number in range(rounds):
        names = list(revisions)
        if number % 2:
            names.reverse()
        for name in names:
            found[name].append(revisions[name].figures(workload))
    return found


def summary(rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the least and the median of all figures, and the figures by rounds."""
    figures = [figure for its in rounds for figure in its]
    return {
        "least": round(min(figures), 4),
        "median": round(median(figures), 4),
        "rounds": [[round(figure, 4) for figure in its] for its in rounds],
    }


def compare(base: dict[str, Any], new: dict[str, Any]) -> dict[str, float]:
    """Return NEW / BASE of the least figures, and of the medians."""
    return {key: round(new[key] / base[key], 4) for key in ("least", "median")}


def row(workload: str, result: dict[str, Any]) -> str:
    """Return the line that is printed of a workload."""
    ratio, base, new = result["ratio"], result[BASE], result[NEW]
    unit = UNITS[workload]
    return (
        f"{workload}: least {ratio['least']:.3f} ({base['least']:.2f} to {new['least']:.2f} {unit})"
        f", median {ratio['median']:.3f} ({base['median']:.2f} to {new['median']:.2f} {unit})"
    )


def save(path: Path, revisions: dict[str, Revision], results: dict[str, Any]) -> None:
    """Write the results as JSON, with the commits."""
    commits = {name: revision.commit() for name, revision in revisions.items()}
    report = {"commits": commits, "units": UNITS, "workloads": results}
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("SPACY_SBERT_DATA")
    parser.add_argument("base", type=Path, help="checkout")
    parser.add_argument("new", type=Path, help="checkout")
    parser.add_argument("--env", default=".venv", help="folder of the environment in a checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file, written after each workload")
    parser.add_argument("--only", nargs="+", choices=UNITS, default=list(UNITS), metavar="NAME")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--texts", type=int, default=800, help="how many are encoded")
    args = parser.parse_args()
    options = ["--data", str(args.data.resolve()), "--texts", str(args.texts)]
    revisions = {
        BASE: Revision(args.base, args.env, options),
        NEW: Revision(args.new, args.env, options),
    }
    results: dict[str, Any] = {}
    for workload in args.only:
        found = measure(revisions, workload, args.rounds)
        result = {name: summary(rounds) for name, rounds in found.items()}
        results[workload] = {**result, "ratio": compare(result[BASE], result[NEW])}
        print(row(workload, results[workload]), flush=True)
        if args.output:
            save(args.output, revisions, results)


if __name__ == "__main__":
    main()
