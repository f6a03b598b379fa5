"""SentEval's transfer tasks: their files, read as published."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import Errors
from ...files.delimited import by_name, read_tabs
from ...files.text_lines import read_lines
from ...readers.examples import Row, check_members
from ..results import Measured
from ..task import DataFile, Run, Task, check_count, filled
from .classification import ClassifierTask, as_examples, classify
from .classifiers import ALL, DEV, TEST, TRAIN
from .sts import SICK

SENTENCE = "sentence"
_TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")


def _polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA: a sentence a line, all of one label.

    YIELDS (Row): one member and the label. A blank line is a row with the empty text: CR has some, and its official
        count of sentences includes them.
    RAISES (ValueError): for a line that is not UTF-8.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1; data/downstream/{MR,CR,SUBJ,MPQA}.
    """
    for line, text in read_lines(path):
        yield Row(check_members((text,), (SENTENCE,), path, line) if text.strip() else ("",), line, label=label)


def _treebank_rows(path: Path, labels: tuple[str, ...]) -> Iterator[Row]:
    """Read a split of the Stanford Sentiment Treebank.

    path (Path): "sentence TAB label" a line, as SST/binary has it, or "label SPACE sentence", as SST/fine has it.
    labels (tuple of str): those of the task, such as ("0", "1").
    YIELDS (Row): one member and the label.
    RAISES (ValueError): for a missing or an unknown label, or an empty sentence.
    SOURCE: Socher et al. 2013; SentEval's data/downstream/SST.
    """
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield labelled(sentence, label.strip(), labels, path, line)


def _question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions: "COARSE:fine question" a line, in ISO 8859-1.

    YIELDS (Row): one member and the coarse label, one of six.
    RAISES (ValueError): for a missing or an unknown label, or an empty question.
    SOURCE: Li and Roth 2002, Learning Question Classifiers.
    """
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        yield labelled(question, label.partition(":")[0], _TREC_LABELS, path, line)


def _paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus: tab-separated without quoting, with a header.

    YIELDS (Row): two members and the label, "1" for a paraphrase and "0" for none.
    RAISES (ValueError): for a missing column, an unknown label or an empty sentence.
    SOURCE: Dolan et al. 2004; columns Quality, #1 ID, #2 ID, #1 String, #2 String.
    """
    for line, (label, *texts) in by_name(read_tabs(path), _MRPC_COLUMNS, path):
        check_known(label.strip(), ("0", "1"), path, line)
        yield Row(check_members(texts, _MRPC_COLUMNS[1:], path, line), line, label=label.strip())


def check_known(value: str, expected: tuple[str, ...], path: Path, line: int) -> None:
    """Refuse a value that is not expected. RAISES (ValueError): naming file, line and the values."""
    if value not in expected:
        known = ", ".join(expected)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=value, expected=known))


def labelled(sentence: str, label: str, labels: tuple[str, ...] | None, path: Path, line: int) -> Row:
    """Return a row of a sentence and its label. RAISES (ValueError): for an unknown label, or an empty text."""
    if labels is not None:
        check_known(label, labels, path, line)
    members = check_members((sentence, label), (SENTENCE, "label"), path, line)
    return Row(members[:1], line, label=members[1])


_SOURCE = "https://github.com/facebookresearch/SentEval"
_TREEBANK = {"binary": {TRAIN: 67349, DEV: 872, TEST: 1821}, "fine": {TRAIN: 8544, DEV: 1101, TEST: 2210}}
_SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
_BLANK = "{count} blank lines are left out; the official number of sentences includes them."


@dataclass(frozen=True)
class _File:
    """A file of a data set: its split, where it lies, and how it is read."""

    split: str
    place: DataFile
    read: Callable[[Path], Iterable[Row]]


@dataclass(frozen=True)
class _TransferTask(ClassifierTask):
    """Accuracy of classifiers that are trained on vectors, as SentEval trains them.

    files: all files of all splits. official: examples by split, blank lines included. positive: see Examples.
    """

    name: str
    files: tuple[_File, ...]
    official: Mapping[str, int]
    positive: str | None = None
    suite: str = "transfer"

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
        examples = [(split, row) for split, each in rows.items() for row in each if all(row.members)]
        blank = sum(map(len, rows.values())) - len(examples)
        notes += [_BLANK.format(count=blank)] if blank else []
        return classify(as_examples(examples, self.positive), run, self.name, notes)


def _place(file: str) -> DataFile:
    return DataFile((file,), _SOURCE)


def _polarity(name: str, official: int, **files: str) -> _TransferTask:
    readers = {file: partial(_polarity_rows, label=label) for label, file in files.items()}
    each = tuple(_File(ALL, _place(f"{name}/{file}"), read) for file, read in readers.items())
    return _TransferTask(name, each, {ALL: official})


def _treebank(name: str, folder: str, labels: tuple[str, ...]) -> _TransferTask:
    read, splits = partial(_treebank_rows, labels=labels), _TREEBANK[folder]
    files = tuple(_File(split, _place(f"SST/{folder}/sentiment-{split}"), read) for split in splits)
    return _TransferTask(name, files, splits)


_TREC = (
    _File(TRAIN, _place("TREC/train_5500.label"), _question_rows),
    _File(TEST, _place("TREC/TREC_10.label"), _question_rows),
)
_MRPC = tuple(_File(split, _place(f"MRPC/msr_paraphrase_{split}.txt"), _paraphrase_rows) for split in (TRAIN, TEST))
_SICK_E = tuple(_File(ours, SICK.places[theirs], SICK.read) for theirs, ours in _SICK_SPLITS.items())
TASKS: tuple[Task, ...] = (
    _polarity("MR", 10_662, positive="rt-polarity.pos", negative="rt-polarity.neg"),
    _polarity("CR", 3775, positive="custrev.pos", negative="custrev.neg"),
    _polarity("SUBJ", 10_000, subjective="subj.subjective", objective="subj.objective"),
    _polarity("MPQA", 10_606, positive="mpqa.pos", negative="mpqa.neg"),
    _treebank("SST-2", "binary", ("0", "1")),
    _treebank("SST-5", "fine", ("0", "1", "2", "3", "4")),
    _TransferTask("TREC", _TREC, {TRAIN: 5452, TEST: 500}),
    _TransferTask("MRPC", _MRPC, {TRAIN: 4076, TEST: 1725}, positive="1"),
    _TransferTask("SICK-E", _SICK_E, {ours: SICK.counts[theirs] for theirs, ours in _SICK_SPLITS.items()}),
)
