"""Memory while a million generated pairs stream through spaCy's training batches.

Usage: python benchmarks/streaming_memory.py [NUMBER_OF_PAIRS]
The pairs are read as `spacy train` reads them with max_epochs = -1: by the reader, shuffled through
a buffer, and in batches; no model is trained. Prints the resident memory (MB) at every tenth of
them, and the pairs a second.
"""

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import spacy
from spacy.training.loop import create_train_batches

from spacy_sbert.readers import PairCorpus
from spacy_sbert.training.batchers import batch_by_objective

WORDS = [
    a + b
    for a in ("ka", "lo", "mi", "nu", "re", "sto", "tri", "vel")
    for b in ("ba", "den", "fis", "gol", "ram")
]


def write_pairs(path: Path, n_pairs: int) -> None:
    """Two sentences of 4 to 14 words and a score a line, tab-separated, with a header."""
    rng = random.Random(0)
    with path.open("w", encoding="utf8") as file:
        file.write("first\tsecond\tscore\n")
        for _ in range(n_pairs):
            texts = [" ".join(rng.choices(WORDS, k=rng.randint(4, 14))) for _ in range(2)]
            file.write(f"{texts[0]}\t{texts[1]}\t{rng.random():.3f}\n")


def resident() -> float:
    """Resident memory now, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    n_pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.tsv"
        write_pairs(path, n_pairs)
        print(f"{n_pairs} pairs, {path.stat().st_size / 1e6:.0f} MB")
        columns = {"members": ["first", "second"], "score": "score"}
        corpus = PairCorpus(path, format="table", **columns, shuffle_buffer=10_000, seed=1)
        seen, start = 0, time.perf_counter()
        for epoch, batch in create_train_batches(
            spacy.blank("en"), corpus, batch_by_objective(16), -1
        ):
            if epoch:
                break
            before, seen = seen, seen + len(batch)
            if seen * 10 // n_pairs > before * 10 // n_pairs:
                rate = seen / (time.perf_counter() - start)
                print(f"{seen} pairs: {resident():.0f} MB, {rate:.0f} pairs/s", flush=True)


if __name__ == "__main__":
    main()
