"""SentEval's transfer tasks: their files, read as published, for a classifier on the vectors."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...files.delimited import by_name, read_delimited
from ...files.text_lines import read_lines
from ...readers.datasets import check_known, sick_rows
from ...readers.examples import Row, check_members
from ..results import Json
from ..task import DataFile, Run, Task, check_official_count
from .classification import ALL, DEV, TEST, TRAIN, Examples, evaluate_classifier
from .sts import SICK

_MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")


def labelled(
    texts: Sequence[str], label: str, known: Collection[str], path: Path, line: int
) -> Row:
    """Return a sentence or a pair with its label; known: the labels that may be, none for any."""
    label = label.strip()
    if known:
        check_known(label, known, path, line)
    names: Sequence[str] = ("sentence",)
    if len(texts) == 2:
        names = _MRPC_COLUMNS[1:]
    members = check_members(texts, names, path, line)
    (label,) = check_members([label], ["label"], path, line)
    return Row(members, line, label=label)


def _polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA (Conneau and Kiela 2018): a sentence a line, all of one label.

    A blank line is a row with the empty text: CR has some, and its official count of sentences
    includes them.
    """
    for line, text in read_lines(path):
        if text.strip():
            yield labelled([text], label, (), path, line)
        else:
            yield Row(("",), line, label=label)


def _treebank_rows(path: Path, labels: str) -> Iterator[Row]:
    """Read the Stanford Sentiment Treebank (Socher et al. 2013).

    Lines are "sentence TAB label" or "label SPACE sentence".
    """
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield labelled([sentence], label, tuple(labels), path, line)


def _question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions (Li and Roth 2002): "COARSE:fine question" a line, in ISO 8859-1."""
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        labels = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
        yield labelled([question], label.partition(":")[0], labels, path, line)


def _paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus (Dolan et al. 2004).

    It is tab-separated with a header, without quoting.
    """
    for line, (label, *texts) in by_name(read_delimited(path, delimiter="\t"), _MRPC_COLUMNS, path):
        yield labelled(texts, label, ("0", "1"), path, line)


SENTEVAL = "https://github.com/facebookresearch/SentEval"
# A split, its place, and how it is read
_File = tuple[str, DataFile, Callable[[Path], Iterable[Row]]]


@dataclass(frozen=True)
class TransferTask(Task):
    """Accuracy of logistic regression that is trained on vectors, as SentEval trains it.

    files (tuple): all files of all splits. official (dict): how many examples each split has, with
        blank lines. positive (str): see Examples.
    """

    name: str
    files: tuple[_File, ...]
    official: Mapping[str, int]
    positive: str | None = None
    suite: str = "transfer"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        return [place.find(root) for _, place, _ in self.files]

    def examples(self, run: Run) -> tuple[Examples, list[str]]:
        """Return the examples, and notes on them."""
        rows: dict[str, list[Row]] = {}
        where: dict[str, Path] = {}
        for split, place, read in self.files:
            path = place.find(run.root)
            where[split] = path.parent if split in where else path
            rows.setdefault(split, []).extend(read(path))
        notes: list[str] = []
        examples: list[tuple[str, Row]] = []
        n_blank = 0
        any_count = run.settings.any_count
        for split, each in rows.items():
            official = self.official[split]
            notes += check_official_count(len(each), where[split], official, any_count=any_count)
            filled = [(split, row) for row in each if all(row.members)]
            n_blank += len(each) - len(filled)
            examples += filled
        if n_blank:
            notes.append(
                f"{n_blank} blank lines are left out; the official number of sentences includes "
                "them."
            )
        return Examples.from_rows(examples, self.positive), notes

    def run(self, run: Run) -> Json:
        examples, notes = self.examples(run)
        return evaluate_classifier(examples, run, self.name, notes)


def _file(split: str, name: str, read: Callable[[Path], Iterable[Row]]) -> _File:
    return split, DataFile((name,), SENTEVAL), read


def _polarity(name: str, official: int, **files: str) -> TransferTask:
    each: list[_File] = []
    for label, file in files.items():
        each.append(_file(ALL, f"{name}/{file}", partial(_polarity_rows, label=label)))
    return TransferTask(name, tuple(each), {ALL: official})


def _treebank(name: str, folder: str, labels: str, splits: Mapping[str, int]) -> TransferTask:
    read = partial(_treebank_rows, labels=labels)
    files = [_file(split, f"SST/{folder}/sentiment-{split}", read) for split in splits]
    return TransferTask(name, tuple(files), splits)


_TREC = (
    _file(TRAIN, "TREC/train_5500.label", _question_rows),
    _file(TEST, "TREC/TREC_10.label", _question_rows),
)
_MRPC = tuple(
    _file(split, f"MRPC/msr_paraphrase_{split}.txt", _paraphrase_rows) for split in (TRAIN, TEST)
)
_SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
_SICK_E = tuple((ours, SICK[theirs].place, sick_rows) for theirs, ours in _SICK_SPLITS.items())


TASKS: tuple[TransferTask, ...] = (
    _polarity("MR", 10_662, positive="rt-polarity.pos", negative="rt-polarity.neg"),
    _polarity("CR", 3775, positive="custrev.pos", negative="custrev.neg"),
    _polarity("SUBJ", 10_000, subjective="subj.subjective", objective="subj.objective"),
    _polarity("MPQA", 10_606, positive="mpqa.pos", negative="mpqa.neg"),
    _treebank("SST-2", "binary", "01", {TRAIN: 67349, DEV: 872, TEST: 1821}),
    _treebank("SST-5", "fine", "01234", {TRAIN: 8544, DEV: 1101, TEST: 2210}),
    TransferTask("TREC", _TREC, {TRAIN: 5452, TEST: 500}),
    TransferTask("MRPC", _MRPC, {TRAIN: 4076, TEST: 1725}, positive="1"),
    TransferTask(
        "SICK-E", _SICK_E, {ours: SICK[theirs].official for theirs, ours in _SICK_SPLITS.items()}
    ),
)
