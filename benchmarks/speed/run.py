"""Measure ours and the peers in turn, one benchmark after the other, and write JSON files, plots
and a Markdown table.

Usage: python benchmarks/speed/run.py --data FOLDER [--output FOLDER] [--gpu-id -1] [--quick]
    [--only BENCHMARK ...]
--quick tries every benchmark out on a few sentences; its figures mean nothing, and go to a
temporary folder. The whole takes one to two hours on two cores. Needs sentence-transformers 5.x,
datasets and accelerate.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# For each benchmark its script, its arguments, and those of a quick run.
BENCHMARKS = {
    "sentences": ("encode.py", "", "--n 64 --pairs 32 --rounds 1"),
    "mixed": ("encode.py", "--comparison mixed", "--comparison mixed --n 16 --rounds 1"),
    "shared": ("encode.py", "--comparison shared", "--comparison shared --n 16 --rounds 1"),
    "shared_sentences": (
        "encode.py",
        "--comparison shared_sentences",
        "--comparison shared_sentences --n 64 --rounds 1",
    ),
    "alone": ("encode.py", "--comparison alone", "--comparison alone --n 8 --rounds 1"),
    "train": ("train.py", "--epoch", "--steps 4 --segment 2"),
    "step": ("step.py", "", "--steps 4"),
    "memory": ("memory.py", "", "--n 128 --every 32"),
    "growth": (
        "growth.py",
        "",
        "--rounds 1 --sentences 32 64 --wordpieces 5 50 --budgets 512 2048 --total 500 --n 64",
    ),
    # On a CPU
    "search": ("search.py", "", "--n 500 --searched 2000 --rounds 1"),
    "first_vector": ("first_vector.py", "", "--rounds 1"),
}
# In place of the usual arguments
ON_GPU = {"growth": "--budgets 2048 8192 32768 131072"}


def command(name: str, args: argparse.Namespace) -> list[str]:
    """The command line of a benchmark."""
    script, usual, quick = BENCHMARKS[name]
    given = (
        [str(args.data)]
        if name == "search"
        else ["--data", str(args.data), "--gpu-id", str(args.gpu_id)]
    )
    if args.gpu_id >= 0:
        usual = ON_GPU.get(name, usual)
    options = (quick if args.quick else usual).split()
    return [
        sys.executable,
        str(HERE / script),
        *given,
        "--output",
        str(args.output / f"{name}.json"),
        *options,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("SPACY_SBERT_DATA")
    parser.add_argument(
        "--data", type=Path, default=data, required=data is None, help="folder of the data sets"
    )
    parser.add_argument(
        "--output", type=Path, help="folder of the results, by default results/ beside this file"
    )
    parser.add_argument("--gpu-id", type=int, default=-1, help="-1 for the CPU")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    args = parser.parse_args()
    args.output = args.output or (Path(tempfile.mkdtemp()) if args.quick else HERE / "results")
    args.output.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in args.only:
        print(f"== {name}", flush=True)
        if subprocess.run(command(name, args)).returncode:
            failed.append(name)
    subprocess.run([sys.executable, str(HERE / "report.py"), str(args.output)], check=True)
    if failed:
        raise SystemExit(f"Not measured, see the error above: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
