"""SentEval's transfer tasks: what a classifier learns from the vectors of sentences and of pairs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy

from ..readers.rows import Row
from .classification import DEPENDS_ON, Examples, classify
from .classifiers import ALL, DEV, TEST, TRAIN
from .datasets import Place, check_count, filled
from .results import Measured
from .senteval import paraphrase_rows, polarity_rows, question_rows, treebank_rows
from .sick import SICK
from .task import Run, Task

SOURCE = "https://github.com/facebookresearch/SentEval"
TREEBANK = {"binary": {TRAIN: 67349, DEV: 872, TEST: 1821}, "fine": {TRAIN: 8544, DEV: 1101, TEST: 2210}}
SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
BLANK = "{count} blank lines are left out; the official number of sentences includes them."


@dataclass(frozen=True)
class File:
    """One file of a data set: its split, where it lies, and how it is read."""

    split: str
    place: Place
    read: Callable[[Path], Iterable[Row]]


@dataclass(frozen=True)
class TransferTask:
    """Accuracy of classifiers that are trained on vectors, as SentEval trains them.

    files: all files of all splits. official: examples by split, blank lines included. positive: see Examples.
    """

    name: str
    files: tuple[File, ...]
    official: Mapping[str, int]
    positive: str | None = None
    suite: str = "transfer"
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        return [file.place.find(root) for file in self.files]

    def run(self, run: Run) -> Measured:
        rows: dict[str, list[Row]] = {}
        for file in self.files:
            path = file.place.find(run.root)
            rows.setdefault(file.split, []).extend(filled(file.read(path), path))
        notes: list[str] = []
        for split, official in self.official.items():
            paths = [file.place.find(run.root) for file in self.files if file.split == split]
            path = paths[0] if len(paths) == 1 else paths[0].parent
            notes += check_count(len(rows[split]), official, path, run.settings.any_count)
        found = [(split, row) for split, each in rows.items() for row in each if all(row.members)]
        blank = sum(map(len, rows.values())) - len(found)
        notes += [BLANK.format(count=blank)] if blank else []
        return classify(as_examples(found, self.positive), run, self.name, notes)


def as_examples(rows: Iterable[tuple[str, Row]], positive: str | None = None) -> Examples:
    """Rows with the split of each as what is classified."""
    splits, found = zip(*rows, strict=True)
    labels = numpy.array([row.label for row in found])
    return Examples(tuple(row.members for row in found), labels, splits, positive)


def _place(file: str) -> Place:
    return Place((file,), SOURCE)


def _polarity(name: str, official: int, **files: str) -> TransferTask:
    readers = {file: partial(polarity_rows, label=label) for label, file in files.items()}
    each = tuple(File(ALL, _place(f"{name}/{file}"), read) for file, read in readers.items())
    return TransferTask(name, each, {ALL: official})


def _treebank(name: str, folder: str, labels: tuple[str, ...]) -> TransferTask:
    read, splits = partial(treebank_rows, labels=labels), TREEBANK[folder]
    files = tuple(File(split, _place(f"SST/{folder}/sentiment-{split}"), read) for split in splits)
    return TransferTask(name, files, splits)


TREC = (
    File(TRAIN, _place("TREC/train_5500.label"), question_rows),
    File(TEST, _place("TREC/TREC_10.label"), question_rows),
)
MRPC = tuple(File(split, _place(f"MRPC/msr_paraphrase_{split}.txt"), paraphrase_rows) for split in (TRAIN, TEST))
SICK_E = tuple(File(ours, SICK.places[theirs], SICK.read) for theirs, ours in SICK_SPLITS.items())
TASKS: tuple[Task, ...] = (
    _polarity("MR", 10_662, positive="rt-polarity.pos", negative="rt-polarity.neg"),
    _polarity("CR", 3775, positive="custrev.pos", negative="custrev.neg"),
    _polarity("SUBJ", 10_000, subjective="subj.subjective", objective="subj.objective"),
    _polarity("MPQA", 10_606, positive="mpqa.pos", negative="mpqa.neg"),
    _treebank("SST-2", "binary", ("0", "1")),
    _treebank("SST-5", "fine", ("0", "1", "2", "3", "4")),
    TransferTask("TREC", TREC, {TRAIN: 5452, TEST: 500}),
    TransferTask("MRPC", MRPC, {TRAIN: 4076, TEST: 1725}, positive="1"),
    TransferTask("SICK-E", SICK_E, {ours: SICK.counts[theirs] for theirs, ours in SICK_SPLITS.items()}),
)
