"""Train ranking on one process and on two with the same whole batch, and save what each reaches.

Usage: python ranks.py [--ranks 1 2] [--seeds 1 2 3] [--precision bfloat16]
MultipleNegativesRanking on the first 10,000 duplicates of Quora, one epoch of batches of 64, as the
task "ranking" of tasks.py; two ranks have 32 examples of each batch. Results that are there are
kept; the table is written again.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import spacy
import srsly
from ours import ROOT
from tasks import TASKS, measure, run_once, training_rows

from spacy_sbert.files.serialization import versions

RESULTS = Path(__file__).parent / "results"


def run(ranks: int, seed: int, precision: str) -> dict[str, Any]:
    settings = TASKS["ranking"]
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder) / "train.jsonl", Path(folder) / "training"
        srsly.write_jsonl(
            data, [{"text0": first, "text1": second} for first, second in training_rows("ranking")]
        )
        options: dict[str, Any] = {
            "training.seed": seed,
            "system.seed": seed,
            "training.batcher.size": settings.batch_size,
            "training.optimizer.learn_rate.initial_rate": settings.learning_rate,
            "training.optimizer.learn_rate.warmup": settings.warmup,
            "training.max_epochs": 1,
            # What counts is measured afterwards
            "training.eval_frequency": 1_000_000,
            "components.transformer.model.precision": precision,
            "components.sbert.model.normalize": settings.normalize,
            "corpora.dev.limit": 32,
        }
        for corpus in ("train", "dev"):
            options |= {f"corpora.{corpus}.path": str(data), f"corpora.{corpus}.format": "table"}
            options[f"corpora.{corpus}.members"] = json.dumps(["text0", "text1"])
        launcher = [
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(ranks),
            "-m",
        ]
        command = [
            sys.executable,
            *launcher,
            "spacy",
            "sbert",
            "train",
            str(ROOT / "configs" / "ranking.cfg"),
        ]
        command += ["--output", str(output)]
        command += [
            f"--{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in options.items()
        ]
        start = time.time()
        subprocess.run(command, check=True, cwd=ROOT)
        seconds = time.time() - start
        nlp = spacy.load(output / "model-last")

        def encode(texts: list[str]) -> numpy.ndarray:
            return nlp.get_pipe("sbert").encode(texts)

        found = measure("ranking", encode, lambda u, v: [])
    return {**found, "seconds": round(seconds), "precision": precision, "versions": versions()}


def table(results: dict[tuple[int, int], dict[str, Any]]) -> str:
    """Markdown: a row for each number of ranks."""
    lines = [
        "| ranks x examples | average precision x 100, mean | each seed | standard deviation |",
        "|---|---|---|---|",
    ]
    for ranks in sorted({ranks for ranks, _ in results}):
        each = [one["ap"] for (own, _), one in sorted(results.items()) if own == ranks]
        spread = f"{statistics.stdev(each):.2f}" if len(each) > 1 else "-"
        said = ", ".join(f"{one:.2f}" for one in each)
        lines.append(
            f"| {ranks} x {TASKS['ranking'].batch_size // ranks} | {statistics.mean(each):.2f} | "
            f"{said} | {spread} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--precision", default="bfloat16", help="of training")
    args = parser.parse_args()
    results = {}
    for seed in args.seeds:
        for ranks in args.ranks:
            make = partial(run, ranks, seed, args.precision)
            results[ranks, seed] = run_once(RESULTS / "ranks.json", f"{ranks}-{seed}", make)
            (RESULTS / "ranks.md").write_text(table(results), encoding="utf8")
    print(table(results))


if __name__ == "__main__":
    main()
