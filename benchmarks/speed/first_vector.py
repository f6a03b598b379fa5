"""The time to the first vector, ours and sentence-transformers in turn: whole processes, imports
and loading included.

Usage: python benchmarks/speed/first_vector.py --data FOLDER --output FILE.json [--rounds 7]
    [--threads N] [--gpu-id -1]
Each process loads all-MiniLM-L6-v2 and encodes one sentence: ours by `encode`, by a Doc, and from a
saved pipeline; no data set is read. A warm-up round, which is not counted, leaves files in the disk
cache. "processor" are the seconds of all cores, which other processes disturb less.
"""

import os
import resource
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from measure import alternate, arguments, prepare, ratio, save, timing

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.resolve import resolve

SENTENCE = "A man is eating food."
PEER = "peer"
BLANK = 'import spacy; {device}; nlp = spacy.blank("en"); sbert = nlp.add_pipe("sbert"); '
PROGRAMS = {
    "encode": BLANK + "sbert.encode([{sentence!r}])",
    "doc": BLANK + "nlp({sentence!r}).vector",
    "saved": "import spacy; {device}; spacy.load({saved!r})({sentence!r}).vector",
    PEER: "from sentence_transformers import SentenceTransformer; "
    "SentenceTransformer({encoder!r}, device={peer_device!r}).encode([{sentence!r}])",
}


def programs(args: Namespace, saved: Path) -> dict[str, str]:
    """The Python code of each variant; saved (Path): where a pipeline is saved for that."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    nlp.to_disk(saved)
    on_gpu = args.gpu_id >= 0
    given = {
        "sentence": SENTENCE,
        "saved": str(saved),
        "encoder": str(resolve(DEFAULT_NAME)),
        "device": f"spacy.require_gpu({args.gpu_id})" if on_gpu else "pass",
        "peer_device": f"cuda:{args.gpu_id}" if on_gpu else "cpu",
    }
    return {name: program.format(**given) for name, program in PROGRAMS.items()}


def start(program: str, n_threads: int, processor: list[float]) -> None:
    """Run a program to its end, and note the seconds that it had of all cores."""
    others = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # With compiled files beside all modules, as pip leaves them.
    subprocess.run(
        [sys.executable, "-c", program],
        env={**others, "OMP_NUM_THREADS": str(n_threads)},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(args: Namespace, codes: dict[str, str]) -> dict[str, Any]:
    """Of each program the seconds that pass, and those of the processor; and how many times as few
    as the peer's.
    """
    processor: dict[str, list[float]] = {name: [] for name in codes}
    works = {
        name: partial(start, code, args.threads, processor[name]) for name, code in codes.items()
    }
    return {"elapsed": figures(alternate(works, 1 + args.rounds)), "processor": figures(processor)}


def figures(seconds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Timings of each program, and ratios to the peer's, without the first round."""
    timings = {name: timing(found[1:], 1) for name, found in seconds.items()}
    ratios = {name: ratio(found, timings[PEER]) for name, found in timings.items() if name != PEER}
    return {"processes": timings, "ratios": ratios}


def main() -> None:
    args = arguments(__doc__, rounds=7).parse_args()
    begin = prepare(args)
    with TemporaryDirectory() as folder:
        found = measure(args, programs(args, Path(folder) / "nlp"))
    for kind, its in found.items():
        for name, (middle, low, high) in its["ratios"].items():
            print(
                f"{name}, {kind}: {middle:.2f}x as fast as sentence-transformers ({low:.2f} to "
                f"{high:.2f})"
            )
    save(args.output, begin, {"sentence": SENTENCE, "rounds": args.rounds}, found)


if __name__ == "__main__":
    main()
