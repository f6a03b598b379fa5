"""How the speed benchmarks measure: variants in turn, round by round; medians, ratios, and on what
machine.
"""

import argparse
import gc
import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy
import spacy
import torch

from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions

Encode = Callable[[list[str]], numpy.ndarray]
PEERS = ("sentence-transformers", "datasets", "accelerate")
# Instructions that multiply bfloat16, which its speed depends on
FLAGS = (
    "amx_bf16",
    "avx512_bf16",
)


def arguments(description: str | None, rounds: int | None = 5) -> argparse.ArgumentParser:
    """The options that the benchmarks share; rounds: by default, None for a benchmark without."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("SPACY_SBERT_DATA")
    parser.add_argument(
        "--data", type=Path, default=data, required=data is None, help="folder of the data sets"
    )
    parser.add_argument("--output", type=Path, required=True, help="the JSON file")
    parser.add_argument("--gpu-id", type=int, default=-1, help="-1 for the CPU")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of PyTorch")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
    return parser


@dataclass(frozen=True)
class Processor:
    """The seconds that the processor has spent so far: on anything, and on this process; since when
    the clock runs.
    """

    busy: float
    own: float
    clock: float

    @classmethod
    def read(cls) -> "Processor":
        file, times = Path("/proc/stat"), os.times()
        # user, nice, system, and behind idle and iowait: irq, softirq, steal
        ticks = (
            [int(word) for word in file.read_text(encoding="utf8").split()[1:9]]
            if file.is_file()
            else [0] * 8
        )
        busy = (
            (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
            if any(ticks)
            else math.nan
        )
        return cls(busy, sum(times[:4]), times.elapsed)

    def others(self) -> float | None:
        """The part of all cores that other processes have taken since; None where that is not
        known.
        """
        here = Processor.read()
        taken = (here.busy - self.busy - here.own + self.own) / (
            (here.clock - self.clock) * (os.cpu_count() or 1)
        )
        return None if math.isnan(taken) else round(max(taken, 0.0), 3)


def prepare(args: argparse.Namespace) -> Processor:
    """Choose device and threads, before anything is loaded.

    RETURNS (Processor): as it is now, for save.
    """
    torch.set_num_threads(args.threads)
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    return Processor.read()


def now() -> float:
    """Seconds, after all that the GPU has been given is done."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def alternate(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each work in each round: all works once, then all of them again."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(1, rounds + 1):
        for name, work in works.items():
            # What the last one left is not paid for by this one
            gc.collect()
            start = now()
            work()
            seconds[name].append(now() - start)
            print(f"round {number}, {name}: {seconds[name][-1]:.3f} s", flush=True)
    return seconds


def timing(seconds: Sequence[float], items: int) -> dict[str, Any]:
    """The seconds of a variant's rounds in figures.

    items (int): what is done in each of them: sentences, or pairs.
    RETURNS (dict): the seconds, their median and ends, and the items a second.
    """
    return {
        "per_second": round(items / median(seconds), 2),
        "median": round(median(seconds), 5),
        "min": round(min(seconds), 5),
        "max": round(max(seconds), 5),
        "seconds": [round(one, 5) for one in seconds],
        "items": items,
    }


def ratio(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[float, float, float]:
    """How many times as fast one timing is as another: the ratio of medians, the lowest and highest
    of a round.
    """
    in_rounds = [b / a for a, b in zip(ours["seconds"], theirs["seconds"], strict=True)]
    return theirs["median"] / ours["median"], min(in_rounds), max(in_rounds)


def compare(
    makers: Mapping[str, Callable[[], Encode]], texts: list[str], rounds: int, reference: str
) -> tuple[dict[str, Encode], dict[str, Any]]:
    """Time variants on the same texts, after a pass of each over all of them.

    makers: what loads each variant. reference: the variant with whose vectors those of all are
        compared.
    RETURNS (dict, dict): the variants, and of each its timing and how far its vectors agree.
    """
    variants = {name: make() for name, make in makers.items()}
    vectors = {name: encode(texts) for name, encode in variants.items()}
    seconds = alternate({name: partial(encode, texts) for name, encode in variants.items()}, rounds)
    known = vectors.get(reference)
    quality = (
        {} if known is None else {name: agreement(found, known) for name, found in vectors.items()}
    )
    return variants, {
        "timings": {name: timing(found, len(texts)) for name, found in seconds.items()},
        "quality": quality,
    }


def agreement(vectors: numpy.ndarray, reference: numpy.ndarray) -> dict[str, float]:
    """The largest difference of two sets of vectors in any number, and the lowest cosine; both (n,
    width).
    """
    u, v = vectors.astype("float64"), reference.astype("float64")
    cosines = (u * v).sum(1) / (numpy.linalg.norm(u, axis=1) * numpy.linalg.norm(v, axis=1))
    return {"largest_difference": float(abs(u - v).max()), "lowest_cosine": float(cosines.min())}


def environment() -> dict[str, Any]:
    """Device, processor, threads and versions: what the figures hold for."""
    file = Path("/proc/cpuinfo")
    words = set(file.read_text(encoding="utf8").split()) if file.is_file() else set()
    peers = {name: number for name in PEERS if (number := _version(name))}
    here = {
        **machine(),
        "cores": os.cpu_count(),
        "flags": [flag for flag in FLAGS if flag in words],
    }
    return {**here, "system": platform.system(), "versions": {**versions(), **peers}}


def save(
    path: Path, start: Processor, settings: Mapping[str, Any], measured: Mapping[str, Any]
) -> None:
    """Write what was measured as JSON, with its settings, the environment, and what others took of
    the processor.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "settings": dict(settings),
        "environment": environment(),
        "others": start.others(),
        **measured,
    }
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf8")


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
