"""How long SVD and GCCA take to fit once the members' vectors are on disk.

Usage: python benchmarks/meta/fit_time.py [--n 100000] [--widths 384 384 384 384] [--rounds 3]
    [--output FILE.json]
The vectors are made: a signal that all members share, and noise, in float32, memory-mapped as
fit-meta leaves them. The time does not depend on what they say.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy
import torch

from spacy_sbert.files.serialization import versions
from spacy_sbert.meta import GCCA, SVD

BLOCK = 10_000


def made(n: int, widths: list[int], folder: Path) -> list[numpy.ndarray]:
    """Views of n sentences on disk."""
    rng = numpy.random.default_rng(0)
    mixing = [rng.normal(size=(64, width)) for width in widths]

    def block(rows: int) -> list[numpy.ndarray]:
        signal = rng.normal(size=(rows, 64))
        return [
            (signal @ mix + rng.normal(size=(rows, mix.shape[1]))).astype("float32")
            for mix in mixing
        ]

    paths = [folder / f"{i}.f32" for i in range(len(widths))]
    views = [
        numpy.memmap(path, "<f4", "w+", shape=(n, width))
        for path, width in zip(paths, widths, strict=True)
    ]
    for start in range(0, n, BLOCK):
        for view, rows in zip(views, block(min(BLOCK, n - start)), strict=True):
            view[start : start + BLOCK] = rows
    return views


def main() -> None:
    parser = argparse.ArgumentParser(description="The time to fit SVD and GCCA.")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--widths", type=int, nargs="+", default=[384] * 4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    found: dict[str, list[float]] = {"svd": [], "gcca": []}
    with tempfile.TemporaryDirectory() as folder:
        views = made(args.n, args.widths, Path(folder))
        for _ in range(args.rounds):
            for method, kind in (("svd", SVD), ("gcca", GCCA)):
                start = time.perf_counter()
                kind().fit(views)
                found[method].append(round(time.perf_counter() - start, 2))
    for method, seconds in found.items():
        print(f"{method}: {statistics.median(seconds)} s, of {seconds}")
    if args.output:
        settings = {"sentences": args.n, "widths": args.widths, "threads": torch.get_num_threads()}
        args.output.write_text(
            json.dumps({"settings": settings, "versions": versions(), "seconds": found}) + "\n"
        )


if __name__ == "__main__":
    main()
