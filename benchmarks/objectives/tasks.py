"""The comparisons with sentence-transformers: their data, and how a trained encoder is measured.

Both sides train on the rows that `training_rows` yields and are measured by `measure`, so that
nothing but the training differs. Data: the folder that SPACY_SBERT_DATA names.

"classification" compares what each library gives as it is. There the heads learn at different
speeds: transformers' Trainer zeroes the gradients of the model, and not those of a loss, so that
    sentence-transformers updates its classifier
with the sum of all gradients so far; and configs/nli.cfg has a learn_rate_factor.
"classification_equal_head" compares the libraries with the classifier's gradient zeroed after each
step, and with the encoder's learning rate for the head.
"""

import csv
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

sys.path.append(str(Path(__file__).parent.parent))

from quora import labelled_pairs
from saved_runs import read_runs as read_runs
from saved_runs import run_once as run_once

RESULTS = Path(__file__).parent / "results" / "objectives.json"
LABELS = ["contradiction", "entailment", "neutral"]
Encode = Callable[[list[str]], numpy.ndarray]
Classify = Callable[[numpy.ndarray, numpy.ndarray], list[str]]


@dataclass(frozen=True)
class Task:
    """One comparison: what both sides are given.

    rows: how many training examples, from the beginning of the file.
    normalize: whether the encoder's last module scales vectors to unit length.
    """

    rows: int
    batch_size: int
    normalize: bool
    learning_rate: float = 2e-5
    warmup: float = 0.1


TASKS = {
    "regression": Task(rows=5749, batch_size=16, normalize=True),
    "classification": Task(rows=10_000, batch_size=16, normalize=False),
    "classification_equal_head": Task(rows=10_000, batch_size=16, normalize=False),
    "triplet": Task(rows=3000, batch_size=16, normalize=False),
    "ranking": Task(rows=10_000, batch_size=64, normalize=True),
}


def data_folder() -> Path:
    return Path(os.environ["SPACY_SBERT_DATA"])


def training_rows(task: str) -> list[tuple[Any, ...]]:
    """Members, and behind them the gold value where there is one."""
    folder = data_folder()
    rows: Iterator[tuple[Any, ...]]
    if task == "regression":
        rows = sts_rows(folder / "sts/STSBenchmark/sts-train.csv")
    elif task.startswith("classification"):
        rows = nli_rows(folder / "nli/snli_sample_train.jsonl")
    elif task == "triplet":
        rows = triplet_rows(folder / "wikisec/train.csv")
    else:
        with gzip.open(folder / "quora/paraphrase_train.tsv.gz", "rt", encoding="utf8") as file:
            return [tuple(line.rstrip("\n").split("\t")) for line in islice(file, TASKS[task].rows)]
    return list(islice(rows, TASKS[task].rows))


def measure(task: str, encode: Encode, classify: Classify | None = None) -> dict[str, Any]:
    """The figures of one trained encoder, x 100; every text is encoded once."""
    folder, encode = data_folder(), _once(encode)
    if task == "triplet":
        a, p, n = (
            encode(list(texts))
            for texts in zip(*triplet_rows(folder / "wikisec/test.csv"), strict=True)
        )
        right = numpy.linalg.norm(a - p, axis=1) < numpy.linalg.norm(a - n, axis=1)
        return {
            "accuracy": 100 * float(right.mean()),
            "right": "".join("01"[int(r)] for r in right),
        }
    if task == "ranking":
        rows = labelled_pairs(folder / "quora")
        u, v = (encode([row[i] for row in rows]) for i in (1, 2))
        return {
            "ap": 100 * float(average_precision_score([int(row[0]) for row in rows], _cosine(u, v)))
        }
    found: dict[str, Any] = {"sts_spearman": sts_spearman(encode)}
    if task.startswith("classification"):
        assert classify is not None
        first, second, labels = zip(*nli_rows(folder / "nli/snli_dev.jsonl"), strict=True)
        given = classify(encode(list(first)), encode(list(second)))
        found["accuracy"] = 100 * float(
            numpy.mean([a == b for a, b in zip(given, labels, strict=True)])
        )
    return found


def sts_spearman(encode: Encode) -> float:
    first, second, gold = zip(
        *sts_rows(data_folder() / "sts/STSBenchmark/sts-dev.csv"), strict=True
    )
    return 100 * float(spearmanr(_cosine(encode(list(first)), encode(list(second))), gold)[0])


def sts_rows(path: Path) -> Iterator[tuple[str, str, float]]:
    for line in path.read_text(encoding="utf8").splitlines():
        columns = line.split("\t")
        yield columns[5].strip(), columns[6].strip(), float(columns[4]) / 5


def nli_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    for line in path.read_text(encoding="utf8").splitlines():
        row = json.loads(line)
        if row["gold_label"] != "-":
            yield row["sentence1"].strip(), row["sentence2"].strip(), row["gold_label"]


def triplet_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    with path.open(encoding="utf8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["Sentence1"].strip(), row["Sentence2"].strip(), row["Sentence3"].strip()


def _once(encode: Encode) -> Encode:
    def encode_unique(texts: list[str]) -> numpy.ndarray:
        unique = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        return encode(list(unique))[[unique[text] for text in texts]]

    return encode_unique


def _cosine(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    return (u * v).sum(1) / (numpy.linalg.norm(u, axis=1) * numpy.linalg.norm(v, axis=1))
