"""Several processes that encode one text after another, as the workers of a service do.

Usage: python benchmarks/speed/workers.py --output FILE.json [--seconds 5]

Of each number of workers and of threads in each: texts a second of all together, and the
milliseconds of a text, median and 95th percentile, alone and beside a process that keeps a core
busy. The encoder is the default one, the text of 15 wordpieces.
"""

import argparse
import json
import multiprocessing
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch

from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions

TEXT = "A man is playing the guitar in the old house near the river."
WARM_UP = 10
# Workers, and threads in each
SETTINGS = ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2))


def work(threads: int, seconds: float, ready: Barrier, results: "Queue[list[float]]") -> None:
    """Encode for some seconds, and put the milliseconds of each text in the queue."""
    torch.set_num_threads(threads)
    sbert = spacy.blank("en").add_pipe("sbert")
    for _ in range(WARM_UP):
        sbert.encode([TEXT])
    ready.wait()
    end = time.perf_counter() + seconds
    taken = []
    while (start := time.perf_counter()) < end:
        sbert.encode([TEXT])
        taken.append(1000 * (time.perf_counter() - start))
    results.put(taken)


def keep_busy() -> None:
    while True:
        sum(range(10**6))


def measure(n_workers: int, threads: int, seconds: float, *, busy: bool) -> dict[str, Any]:
    """Return the figures of so many workers with so many threads each."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(n_workers)
    results = context.Queue()
    arguments = (threads, seconds, ready, results)
    workers = [context.Process(target=work, args=arguments) for _ in range(n_workers)]
    other = context.Process(target=keep_busy)
    if busy:
        other.start()
    for worker in workers:
        worker.start()
    milliseconds = numpy.concatenate([results.get() for _ in workers])
    for worker in workers:
        worker.join()
    if busy:
        other.kill()
    return {
        "workers": n_workers,
        "threads": threads,
        "busy": busy,
        "texts a second": round(len(milliseconds) / seconds, 1),
        "median": round(float(numpy.median(milliseconds)), 1),
        "95th percentile": round(float(numpy.percentile(milliseconds, 95)), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    measured = []
    for busy in (False, True):
        for n_workers, threads in SETTINGS:
            measured.append(measure(n_workers, threads, given.seconds, busy=busy))
            print(measured[-1], flush=True)
    report = {"measured": measured, "machine": machine(), "versions": versions()}
    given.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
