"""Score encoders and baselines on suites of `spacy sbert benchmark`, and write one table of all of
them.

    python benchmarks/papers/suites.py sts sick --encoders training/encoders --output
    benchmarks/papers/results/sts

The figures, the time and the versions of each encoder are saved in scores.json, and not measured
again. An encoder is a pipeline in a folder of its name (encoders.py). Baselines are those of
docs/evaluation.md, with the static vectors of the pipeline `words`.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import paper_tasks  # noqa: F401  it registers them
import spacy
from spacy.util import import_file

from spacy_sbert.evaluation import PipelineSource, Settings, evaluate_suites
from spacy_sbert.evaluation.baselines import make_baseline
from spacy_sbert.evaluation.encoders import VectorSource

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from saved_runs import read_runs as read_runs  # noqa: E402
from saved_runs import run_once  # noqa: E402

BASELINES = ("static", "sif", "power-means", "tf-idf", "random-projection")
NEED_VECTORS = ("static", "sif", "power-means")
# Columns of a table: the path of a figure in a task's scores, and what it is called; those that a
# task has are shown.
FIGURES = {
    "cosine.spearman.mean": "",
    "cosine.spearman.pooled": "all pairs",
    "euclidean.accuracy": "",
    "lr.accuracy": "LR",
    "mlp.accuracy": "MLP",
    "own.sentences_per_second": "as it is",
    "smart.sentences_per_second": "sorted",
    "naive.sentences_per_second": "padded",
    "ridge.spearman": "ridge",
}


def source_of(name: str, encoders: Path, data: Path) -> VectorSource:
    if name not in BASELINES:
        return PipelineSource(spacy.load(encoders / name), name=name)
    nlp = spacy.blank("en")
    if name in NEED_VECTORS:
        nlp = spacy.load(encoders / "words")
    return make_baseline(name, nlp=nlp, counts=data / "corpora" / "enwiki_vocab_min200.txt")


def measured(name: str, args: argparse.Namespace, data: Path) -> dict[str, Any]:
    """The results of an encoder without the predictions of each example."""
    start = time.perf_counter()
    settings = Settings(
        bootstrap=0,
        any_count=args.any_count,
        seeds=tuple(range(1, args.seeds + 1)),
        classifiers=tuple(args.classifiers),
    )
    source = source_of(name, args.encoders, data)
    found = evaluate_suites(
        source, data, args.suites, settings=settings, cache=args.cache and args.cache / name
    )
    if found["failed"]:
        raise SystemExit(f"{name} failed: {found['failed']}")
    tasks = {
        task: {
            "scores": one["variants"][0]["scores"],
            "counts": one["counts"],
            "notes": one["notes"],
        }
        for task, one in found["tasks"].items()
    }
    about = {key: found[key] for key in ("model", "versions", "settings")}
    return {**about, "tasks": tasks, "seconds": round(time.perf_counter() - start)}


def figure(scores: Any, path: str) -> float | None:
    """The figure at a path of keys; None if there is none."""
    for key in path.split("."):
        scores = scores.get(key) if isinstance(scores, dict) else None
    return scores


def table(found: dict[str, dict[str, Any]]) -> str:
    """Markdown: a row an encoder, figures x 100 but for speeds, and the seconds of all that stands
    in a row.
    """
    columns: dict[tuple[str, str], str] = {}
    for results in found.values():
        for task, one in results["tasks"].items():
            paths = [path for path in FIGURES if figure(one["scores"], path) is not None]
            columns |= {(task, path): f"{task} {FIGURES[path]}".strip() for path in paths}
    rows = [
        [
            name,
            *(shown(results["tasks"].get(task), path) for task, path in columns),
            str(results["seconds"]),
        ]
        for name, results in found.items()
    ]
    return markdown(["", *columns.values(), "seconds"], rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text, and whose others are figures."""
    lines = (header, ["---", *["---:"] * (len(header) - 1)], *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(task: dict[str, Any] | None, path: str) -> str:
    value = None
    if task is not None:
        value = figure(task["scores"], path)
    if value is None:
        return "-"
    if path.endswith("per_second"):
        return f"{value:.0f}"
    return f"{100 * value:.2f}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """With the options that say what is measured, and where results go."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoders", type=Path, default=Path("training/encoders"))
    parser.add_argument(
        "--names", nargs="*", help="by default all that are there, and the baselines"
    )
    parser.add_argument("--cache", type=Path, help="a folder for vectors and finished tasks")
    parser.add_argument("--output", type=Path, required=True)
    return parser


def prepared(args: argparse.Namespace) -> tuple[list[str], Path]:
    """The names of what is measured, and the folder of the data.

    The output folder is there then.
    """
    # Their pipelines need them
    for name in ("universal", "sent2vec"):
        import_file(name, HERE / f"{name}.py")
    args.output.mkdir(parents=True, exist_ok=True)
    there = sorted(path.name for path in args.encoders.iterdir() if path.name != "words")
    return args.names or [*there, *BASELINES], Path(os.environ["SPACY_SBERT_DATA"])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("suites", nargs="+")
    options.add_argument("--any-count", action="store_true", help="take samples of data sets")
    options.add_argument("--seeds", type=int, default=3, help="of the MLP")
    options.add_argument("--classifiers", nargs="+", default=["lr", "mlp"])
    args = options.parse_args()
    names, data = prepared(args)
    found = {}
    for name in names:
        found[name] = run_once(
            args.output / "scores.json", name, partial(measured, name, args, data)
        )
        (args.output / "table.md").write_text(table(found), encoding="utf8")


if __name__ == "__main__":
    main()
