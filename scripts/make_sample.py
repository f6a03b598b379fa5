"""Write the sample data: pairs, triplets, questions, topics, entities and plain texts in English,
and translations.

The sentences are composed from a small stock of words that were written for this project. Train and
dev share people, places, times and topics, but no sentence. assets/README.md says what each file
holds.
"""

import argparse
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from sample_arguments import argument_lines
from sample_entities import entity_lines
from sample_nli import nli_lines
from sample_pairs import pair_lines
from sample_questions import duplicate_lines, question_lines
from sample_texts import text_lines, topic_lines, triplet_lines
from sample_translations import translation_lines

PARTS = ("train", "dev")
PAIRS = {"train": 480, "dev": 160}
Maker = Callable[[random.Random, str, int], Iterable[str]]
# What makes it, and how many entries it has
FILES: dict[str, tuple[Maker, int]] = {
    "nli-train.jsonl": (nli_lines, 360),
    "nli-dev.jsonl": (nli_lines, 120),
    "triplets-train.csv": (triplet_lines, 240),
    "triplets-dev.csv": (triplet_lines, 80),
    "questions-train.tsv": (question_lines, 300),
    "questions-dev.tsv": (question_lines, 120),
    "duplicates-train.tsv": (duplicate_lines, 240),
    "topics-train.tsv": (topic_lines, 240),
    "topics-dev.tsv": (topic_lines, 120),
    "entities-train.iob": (entity_lines, 150),
    "entities-dev.iob": (entity_lines, 50),
    "texts-train.txt": (text_lines, 300),
    "texts-dev.txt": (text_lines, 60),
    "translations-train.tsv": (translation_lines, 240),
    "translations-dev.tsv": (translation_lines, 120),
    "arguments.tsv": (argument_lines, 160),
}


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file, without a line break at the end of .iob: spaCy's converter makes an empty
    document of it.
    """
    text = "\n".join(lines) + "\n" * (path.suffix != ".iob")
    path.write_bytes(text.encode("utf8"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the sample data.")
    parser.add_argument(
        "--output", type=Path, default=Path("assets"), help="the folder to write to"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same files")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    # The graded pairs share one, each other file has its own
    rng = random.Random(args.seed)
    for part in PARTS:
        write_lines(args.output / f"pairs-{part}.csv", pair_lines(rng, part, PAIRS[part]))
    for name, (make, count) in FILES.items():
        part = name.partition(".")[0].rpartition("-")[2]
        write_lines(args.output / name, make(random.Random(f"{args.seed} {name}"), part, count))


if __name__ == "__main__":
    main()
