"""The texts of the speed benchmarks: sentences of the STS benchmark, texts of given lengths, and
questions.
"""

import gzip
import random
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, islice
from pathlib import Path

import numpy
from transformers import AutoTokenizer

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.resolve import resolve
from spacy_sbert.readers.datasets import read_sts
from spacy_sbert.similarity import spearman

SEED = 0
# Wordpieces of texts of mixed lengths, without special tokens
SHORTEST, LONGEST = 5, 250


def sts_file(data: Path, split: str) -> Path:
    """A file of the STS benchmark."""
    return data / "sts" / "STSBenchmark" / f"sts-{split}.csv"


def sts_sentences(data: Path) -> list[str]:
    """The sentences of the STS benchmark, train and dev, in an order drawn at random."""
    rows = chain.from_iterable(read_sts(sts_file(data, split)) for split in ("train", "dev"))
    sentences = [sentence for row in rows for sentence in row[:2]]
    random.Random(SEED).shuffle(sentences)
    return sentences


def mixed_texts(data: Path, n: int) -> list[str]:
    """Texts of 5 to 250 wordpieces, each length as likely as any other."""
    rng = random.Random(SEED)
    return texts_of([rng.randint(SHORTEST, LONGEST) for _ in range(n)], sts_sentences(data))


def texts_of(lengths: Sequence[int], sentences: Sequence[str]) -> list[str]:
    """A text for each length in wordpieces: sentences joined, the last one cut."""
    tokenizer = AutoTokenizer.from_pretrained(resolve(DEFAULT_NAME))
    source = cycle(sentences)

    def text_of(length: int) -> str:
        ends: list[int] = []
        text = ""
        while len(ends) < length:
            text = f"{text} {next(source)}".lstrip()
            found = tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
            )
            ends = [end for _, end in found["offset_mapping"]]
        return text[: ends[length - 1]]

    return [text_of(length) for length in lengths]


def questions(data: Path, n: int) -> list[str]:
    """The first n questions of Quora's duplicates, more than half of them different."""

    def read() -> Iterator[str]:
        with gzip.open(
            data / "quora" / "paraphrase_train.tsv.gz", "rt", encoding="utf8", newline="\n"
        ) as file:
            for line in file:
                yield from line.rstrip("\n").split("\t")

    found = list(islice(read(), n))
    if len(found) < n:
        raise SystemExit(f"There are {len(found)} questions, expected {n}: ask for fewer.")
    return found


def dev_pairs(data: Path, n: int | None = None) -> tuple[list[str], list[str], list[float]]:
    """The pairs of STS benchmark dev, or the first n: first sentences, second sentences, scores."""
    first, second, gold = zip(*islice(read_sts(sts_file(data, "dev")), n), strict=True)
    return list(first), list(second), list(gold)


def dev_spearman(u: numpy.ndarray, v: numpy.ndarray, gold: Sequence[float]) -> float:
    """Spearman's correlation x 100 of the cosines of paired vectors, (n, width) each, with their
    scores.
    """
    cosines = (u * v).sum(1) / (numpy.linalg.norm(u, axis=1) * numpy.linalg.norm(v, axis=1))
    found = spearman(cosines, gold)
    return float("nan") if found is None else 100 * found
