"""precision = "int8" against float32 and bfloat16: how near its vectors are, what they score, and
how quick they are.

Usage: python benchmarks/speed/int8.py --data FOLDER [--name ENCODER] [--n 4000] [--rounds 5]
    [--without-sts]
On a CPU with AMX, ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 has it work without, as int8 does.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import spacy
from texts import dev_pairs, dev_spearman, sts_sentences

from spacy_sbert import SentenceBert

PRECISIONS = ("float32", "bfloat16", "int8")
# Sentences
CALIBRATED_ON = 400
Pairs = tuple[list[str], list[str], list[float]]


def parts_of(data: Path, year: int) -> Iterator[Pairs]:
    """The parts of the STS test set of a year: pairs with a gold score."""
    folder = data / "sts" / f"STS{year}-en-test"
    for gold in sorted(folder.glob("STS.gs.*.txt")):
        if gold.name == "STS.gs.ALL.txt":
            continue
        texts = (
            (folder / gold.name.replace(".gs.", ".input.")).read_text(encoding="utf8").splitlines()
        )
        rows = zip(texts, gold.read_text(encoding="utf8").splitlines(), strict=True)
        scored = [(text.split("\t"), float(score)) for text, score in rows if score.strip()]
        yield (
            [text[0] for text, _ in scored],
            [text[1] for text, _ in scored],
            [score for _, score in scored],
        )


def score(pipe: SentenceBert, pairs: Pairs) -> float:
    return dev_spearman(pipe.encode(pairs[0]), pipe.encode(pairs[1]), pairs[2])


def seconds(pipes: dict[str, SentenceBert], texts: list[str], rounds: int) -> dict[str, float]:
    """Medians of rounds in turns."""
    taken: dict[str, list[float]] = {name: [] for name in pipes}
    for _ in range(rounds):
        for name, pipe in pipes.items():
            start = time.perf_counter()
            pipe.encode(texts)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def make_pipe(name: str, precision: str) -> SentenceBert:
    return spacy.blank("en").add_pipe(
        "sbert", config={"model": {"name": name, "precision": precision}}
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("SPACY_SBERT_DATA")
    parser.add_argument(
        "--data", type=Path, default=data, required=data is None, help="folder of the data sets"
    )
    parser.add_argument(
        "--name", default="sentence-transformers/all-MiniLM-L6-v2", help="of the encoder"
    )
    parser.add_argument(
        "--n", type=int, default=4000, help="sentences that vectors are compared on"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-sts", action="store_true")
    args = parser.parse_args()
    sentences = sts_sentences(args.data)
    known, texts = sentences[:CALIBRATED_ON], sentences[CALIBRATED_ON : CALIBRATED_ON + args.n]
    pipes = {precision: make_pipe(args.name, precision) for precision in PRECISIONS}
    pipes["int8"].calibrate(known)
    years = [] if args.without_sts else [list(parts_of(args.data, year)) for year in (12, 14, 15)]
    exact = pipes["float32"].encode(texts)
    taken = seconds(pipes, texts, args.rounds)
    for name, pipe in pipes.items():
        vectors = pipe.encode(texts)
        lengths = numpy.linalg.norm(exact, axis=1) * numpy.linalg.norm(vectors, axis=1)
        cosines = (exact * vectors).sum(1) / lengths
        scores = [score(pipe, dev_pairs(args.data))]
        scores += [statistics.mean(score(pipe, part) for part in parts) for parts in years]
        cells = [
            f"{cosines.mean():.4f}, {cosines.min():.4f}",
            *(f"{score:.2f}" for score in scores),
        ]
        print(f"| {name} | {' | '.join(cells)} | {len(texts) / taken[name]:.0f} |", flush=True)
    print(
        f"int8 to bfloat16: {taken['bfloat16'] / taken['int8']:.2f}, to float32: "
        f"{taken['float32'] / taken['int8']:.2f}"
    )
    print(repr(pipes["int8"]))


if __name__ == "__main__":
    main()
