"""Duplicate questions of Quora, as several benchmarks read them."""

import gzip
from pathlib import Path


def duplicate_pairs(folder: Path, n: int) -> list[tuple[str, str]]:
    """Return the first n pairs of two different questions, without repeats, to train on."""
    pairs: dict[tuple[str, str], None] = {}
    with gzip.open(folder / "paraphrase_train.tsv.gz", "rt", encoding="utf8") as file:
        for line in file:
            first, second = (text.strip() for text in line.rstrip("\n").split("\t")[:2])
            if first and second and first != second:
                pairs[first, second] = None
            if len(pairs) == n:
                break
    return list(pairs)


def labelled_pairs(folder: Path) -> list[list[str]]:
    """Return label ("1" for duplicates), first and second question of each pair to score."""
    # A few bytes are not UTF-8
    with (folder / "qqp_dev.tsv").open(encoding="utf8", errors="replace", newline="\n") as file:
        return [line.rstrip("\n").split("\t")[:3] for line in file]
