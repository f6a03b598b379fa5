"""Draws of a few labelled texts of each class, and the texts on which they are tested.

Every benchmark of this folder takes them from here, in whichever environment it runs: nothing but
the standard library is imported.
"""

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SETS = ("CR", "MR", "SST-2", "TREC", "BANKING77")
N_TEST = 2000
# Of SST-2, whose phrases are 67,349
N_LEARN = 20_000
# The stem of the two files of each set
_POLARITY = {"CR": "custrev", "MR": "rt-polarity"}
_LABELS = {"pos": "positive", "neg": "negative"}

# Texts with their labels
Rows = list[tuple[str, str]]


class Draw(NamedTuple):
    """Texts to learn from, and texts to test on."""

    learn: Rows
    test: Rows


def read_rows(data: Path, name: str, most: int = N_LEARN) -> tuple[Rows, Rows]:
    """Return the texts with labels to draw from, and those of a test set, if there is one.

    most (int): texts to draw from.
    RAISES (ValueError): if the set is not one of SETS.
    """
    if name not in SETS:
        raise ValueError(f"Unknown data set '{name}': expected {', '.join(SETS)}.")
    test: Rows = []
    if name == "BANKING77":
        learn = _read_intents(data / "intents" / "banking77_train.csv")
    elif name == "TREC":
        learn = _read_questions(data / "senteval" / "TREC" / "train_5500.label")
        test = _read_questions(data / "senteval" / "TREC" / "TREC_10.label")
    elif name == "SST-2":
        folder = data / "senteval" / "SST" / "binary"
        learn = _read_phrases(folder / "sentiment-train")
        test = _read_phrases(folder / "sentiment-test")
    else:
        learn = _read_polarity(data / "senteval" / name, _POLARITY[name])
    return learn[:most], test


def _read_intents(path: Path) -> Rows:
    with path.open(encoding="utf8", newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    return [row for row in rows if all(row)]


def _read_lines(path: Path, encoding: str = "utf8") -> list[str]:
    """Return the lines that are not blank; other separators of lines than newlines are text."""
    with path.open(encoding=encoding, newline="\n") as file:
        return [line.strip() for line in file if line.strip()]


def _read_questions(path: Path) -> Rows:
    """Read TREC: "COARSE:fine question" a line."""
    split = [line.split(" ", 1) for line in _read_lines(path, "latin-1")]
    return [(question.strip(), label.split(":")[0]) for label, question in split]


def _read_phrases(path: Path) -> Rows:
    """Read SST-2: "phrase TAB label" a line."""
    split = [line.rsplit("\t", 1) for line in _read_lines(path)]
    return [(phrase.strip(), label) for phrase, label in split]


def _read_polarity(folder: Path, stem: str) -> Rows:
    """Read MR or CR: a file of each label, with a text a line."""
    return [
        (text, label)
        for suffix, label in _LABELS.items()
        for text in _read_lines(folder / f"{stem}.{suffix}")
    ]


def write_table(rows: Rows, path: Path) -> None:
    """Write texts and their labels as a table with a header."""
    with path.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(rows)


def draw(labels: Sequence[str], per_class: int, seed: int) -> tuple[list[int], list[int]]:
    """Return the places of `per_class` texts of each label, and of some of the others."""
    drawn = random.Random(seed)
    order = drawn.sample(range(len(labels)), len(labels))
    seen: dict[str, int] = {}
    learn: list[int] = []
    rest: list[int] = []
    for place in order:
        label = labels[place]
        seen[label] = seen.get(label, 0) + 1
        if seen[label] <= per_class:
            learn.append(place)
        else:
            rest.append(place)
    return learn, rest[:N_TEST]


def draw_texts(rows: tuple[Rows, Rows], per_class: int, seed: int) -> Draw:
    """Return the texts that a seed draws, and those to test on: of the test set, if there is one.

    rows: what read_rows returned.
    """
    learn, test = rows
    drawn, rest = draw([label for _, label in learn], per_class, seed)
    return Draw([learn[place] for place in drawn], test or [learn[place] for place in rest])
