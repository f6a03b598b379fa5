"""SentEval's transfer and probing tasks: their files, read as published, for the classifiers on the vectors."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import Errors
from ...files.tables import by_name, pick, read_delimited
from ...files.text_lines import read_lines
from ...readers.datasets import sick_rows
from ...readers.examples import Row, check_members
from ..results import Json
from ..task import DataFile, Run, Task, check_count
from .classification import ALL, DEV, TEST, TRAIN, Examples, classify
from .sts import SICK

_MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")


def _labelled(texts: Sequence[str], label: str, known: Collection[str], path: Path, line: int) -> Row:
    """Return a sentence or a pair with its label; known: the labels that may be, none for any."""
    label = label.strip()
    if known and label not in known:
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=label, expected=", ".join(known)))
    members = check_members(texts, ("sentence",) if len(texts) == 1 else _MRPC_COLUMNS[1:], path, line)
    return Row(members, line, label=check_members([label], ["label"], path, line)[0])


def _polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA (Conneau and Kiela 2018, section 3.1): a sentence a line, all of one label.

    A blank line is a row with the empty text: CR has some, and its official count of sentences includes them.
    """
    for line, text in read_lines(path):
        yield _labelled([text], label, (), path, line) if text.strip() else Row(("",), line, label=label)


def _treebank_rows(path: Path, labels: str) -> Iterator[Row]:
    """Read the Stanford Sentiment Treebank (Socher et al. 2013): "sentence TAB label" or "label SPACE sentence"."""
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield _labelled([sentence], label, tuple(labels), path, line)


def _question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions (Li and Roth 2002): "COARSE:fine question" a line, in ISO 8859-1."""
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        labels = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
        yield _labelled([question], label.partition(":")[0], labels, path, line)


def _paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus (Dolan et al. 2004): tab-separated, no quoting, with a header."""
    for line, (label, *texts) in by_name(read_delimited(path, delimiter="\t"), _MRPC_COLUMNS, path):
        yield _labelled(texts, label, ("0", "1"), path, line)


_SOURCE = "https://github.com/facebookresearch/SentEval"


_File = tuple[str, DataFile, Callable[[Path], Iterable[Row]]]  # a split, its place, and how it is read


@dataclass(frozen=True)
class _TransferTask(Task):
    """Accuracy of classifiers that are trained on vectors, as SentEval trains them.

    files: all files of all splits. official: examples by split, blank lines included. positive: see Examples.
    """

    name: str
    files: tuple[_File, ...]
    official: Mapping[str, int]
    positive: str | None = None
    suite: str = "transfer"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        return [place.find(root) for _, place, _ in self.files]

    def run(self, run: Run) -> Json:
        rows: dict[str, list[Row]] = {}
        where: dict[str, Path] = {}
        for split, place, read in self.files:
            path = place.find(run.root)
            where[split] = path.parent if split in where else path
            rows.setdefault(split, []).extend(read(path))
        notes: list[str] = []
        for split, official in self.official.items():
            notes += check_count(len(rows[split]), where[split], official, any_count=run.settings.any_count)
        examples = [(split, row) for split, each in rows.items() for row in each if all(row.members)]
        if blank := sum(map(len, rows.values())) - len(examples):
            notes.append(f"{blank} blank lines are left out; the official number of sentences includes them.")
        return classify(Examples.from_rows(examples, self.positive), run, self.name, notes)


def _file(split: str, name: str, read: Callable[[Path], Iterable[Row]]) -> _File:
    return split, DataFile((name,), _SOURCE), read


def _polarity(name: str, official: int, **files: str) -> _TransferTask:
    each = [_file(ALL, f"{name}/{file}", partial(_polarity_rows, label=label)) for label, file in files.items()]
    return _TransferTask(name, tuple(each), {ALL: official})


def _treebank(name: str, folder: str, labels: str, splits: Mapping[str, int]) -> _TransferTask:
    read = partial(_treebank_rows, labels=labels)
    return _TransferTask(name, tuple(_file(split, f"SST/{folder}/sentiment-{split}", read) for split in splits), splits)


_TREC = (_file(TRAIN, "TREC/train_5500.label", _question_rows), _file(TEST, "TREC/TREC_10.label", _question_rows))
_MRPC = tuple(_file(split, f"MRPC/msr_paraphrase_{split}.txt", _paraphrase_rows) for split in (TRAIN, TEST))
_SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
_SICK_E = tuple((ours, SICK[theirs].place, sick_rows) for theirs, ours in _SICK_SPLITS.items())


_SPLITS = {"tr": TRAIN, "va": DEV, "te": TEST}


@dataclass(frozen=True)
class _ProbingTask(Task):
    """Accuracy of classifiers that tell a property of sentences from their vectors (Conneau et al. 2018, section 2).

    file: what SentEval calls the file, and X-Probe the folder. official: examples by split, of SentEval's file.
    """

    name: str
    file: str
    official: tuple[int, int, int] = (100_000, 10_000, 10_000)
    suite: str = "probing"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        place = DataFile((f"{self.file}.txt", self.file), f"{_SOURCE} (data/probing)")
        path = place.find(root)
        if path.is_file():
            return [path]
        paths = [path / f"{split}.txt" for split in _SPLITS]
        for missing in (path for path in paths[1:] if not path.is_file()):
            place.refuse(missing, root)
        return [path for path in paths if path.is_file()]

    def run(self, run: Run) -> Json:
        paths = self.find(run.root)
        notes: list[str] = []
        if paths[0].name == f"{self.file}.txt":
            rows = list(_probing_rows(paths[0]))
            each = [split for split, _ in rows]
            for split, official in zip(_SPLITS, self.official, strict=True):
                notes += check_count(each.count(split), paths[0], official, any_count=run.settings.any_count)
        else:
            rows = [(path.stem, row) for path in paths for row in _x_probe_rows(path)]
            notes.append(
                "Sentences of X-Probe, not of SentEval: cannot be compared with figures published for SentEval."
            )
        names = _SPLITS
        if "tr" not in {split for split, _ in rows}:
            names = {"va": TRAIN, "te": TEST}
            notes.append("Trained on va, since there is no tr: cannot be compared with published figures.")
        return classify(Examples.from_rows((names[split], row) for split, row in rows), run, self.name, notes)


def _probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read SentEval's layout (Conneau et al. 2018): "split TAB label TAB sentence" a line, all splits in one file."""
    for line, record in read_delimited(path, delimiter="\t"):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", "sentence"), path, line)
        if split not in _SPLITS:
            known = ", ".join(_SPLITS)
            raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=split, expected=known))
        yield split, _labelled([record[-1] if len(record) > 3 else sentence], label, (), path, line)


def _x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split in X-Probe's layout (Ravishankar et al. 2019): "sentence TAB label" a line."""
    for line, record in read_delimited(path, delimiter="\t"):
        sentence, label = pick(record, (0, 1), ("sentence", "label"), path, line)
        yield _labelled([sentence], label, (), path, line)


TASKS: tuple[Task, ...] = (
    _polarity("MR", 10_662, positive="rt-polarity.pos", negative="rt-polarity.neg"),
    _polarity("CR", 3775, positive="custrev.pos", negative="custrev.neg"),
    _polarity("SUBJ", 10_000, subjective="subj.subjective", objective="subj.objective"),
    _polarity("MPQA", 10_606, positive="mpqa.pos", negative="mpqa.neg"),
    _treebank("SST-2", "binary", "01", {TRAIN: 67349, DEV: 872, TEST: 1821}),
    _treebank("SST-5", "fine", "01234", {TRAIN: 8544, DEV: 1101, TEST: 2210}),
    _TransferTask("TREC", _TREC, {TRAIN: 5452, TEST: 500}),
    _TransferTask("MRPC", _MRPC, {TRAIN: 4076, TEST: 1725}, positive="1"),
    _TransferTask("SICK-E", _SICK_E, {ours: SICK[theirs].official for theirs, ours in _SICK_SPLITS.items()}),
    _ProbingTask("SentLen", "sentence_length", (99_996, 9996, 9996)),
    _ProbingTask("WC", "word_content"),
    _ProbingTask("TreeDepth", "tree_depth"),
    _ProbingTask("TopConst", "top_constituents"),
    _ProbingTask("BShift", "bigram_shift"),
    _ProbingTask("Tense", "past_present"),
    _ProbingTask("SubjNum", "subj_number"),
    _ProbingTask("ObjNum", "obj_number"),
    _ProbingTask("SOMO", "odd_man_out"),
    _ProbingTask("CoordInv", "coordination_inversion", (100_002, 10_002, 10_002)),
)
