"""SentEval's transfer and probing tasks: their files, read as published, for the classifiers on the vectors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import Errors
from ...files.tables import by_name, pick, read_delimited
from ...files.text_lines import read_lines
from ...readers.examples import Row, check_members
from ..results import Json
from ..task import DataFile, Run, Task, check_count, filled
from .classification import ALL, DEV, TEST, TRAIN, ClassifierTask, Examples, classify
from .sts import SICK

_SENTENCE = "sentence"
_TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")


def _polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA: a sentence a line, all of one label.

    A blank line is a row with the empty text: CR has some, and its official count of sentences includes them.

    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1; data/downstream/{MR,CR,SUBJ,MPQA}.
    """
    for line, text in read_lines(path):
        yield Row(check_members((text,), (_SENTENCE,), path, line) if text.strip() else ("",), line, label=label)


def _treebank_rows(path: Path, labels: tuple[str, ...]) -> Iterator[Row]:
    """Read the Stanford Sentiment Treebank: "sentence TAB label" a line (SST/binary), or "label SPACE sentence".

    SOURCE: Socher et al. 2013; SentEval's data/downstream/SST.
    """
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield _labelled(sentence, label.strip(), labels, path, line)


def _question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions: "COARSE:fine question" a line, in ISO 8859-1; the label is the coarse one, one of six.

    SOURCE: Li and Roth 2002, Learning Question Classifiers.
    """
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        yield _labelled(question, label.partition(":")[0], _TREC_LABELS, path, line)


def _paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus: tab-separated without quoting, with a header; "1": a paraphrase.

    SOURCE: Dolan et al. 2004; columns Quality, #1 ID, #2 ID, #1 String, #2 String.
    """
    for line, (label, *texts) in by_name(read_delimited(path, delimiter="\t"), _MRPC_COLUMNS, path):
        _check_known(label.strip(), ("0", "1"), path, line)
        yield Row(check_members(texts, _MRPC_COLUMNS[1:], path, line), line, label=label.strip())


def _check_known(value: str, expected: Iterable[str], path: Path, line: int) -> None:
    if value not in expected:
        known = ", ".join(expected)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=value, expected=known))


def _labelled(sentence: str, label: str, labels: tuple[str, ...] | None, path: Path, line: int) -> Row:
    if labels is not None:
        _check_known(label, labels, path, line)
    members = check_members((sentence, label), (_SENTENCE, "label"), path, line)
    return Row(members[:1], line, label=members[1])


_SOURCE = "https://github.com/facebookresearch/SentEval"
_TREEBANK = {"binary": {TRAIN: 67349, DEV: 872, TEST: 1821}, "fine": {TRAIN: 8544, DEV: 1101, TEST: 2210}}
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

    def run(self, run: Run) -> Json:
        rows: dict[str, list[Row]] = {}
        paths: dict[str, list[Path]] = {}
        for file, path in zip(self.files, self.find(run.root), strict=True):
            rows.setdefault(file.split, []).extend(filled(file.read(path), path))
            paths.setdefault(file.split, []).append(path)
        notes: list[str] = []
        for split, official in self.official.items():
            path, *others = paths[split]
            notes += check_count(len(rows[split]), official, path.parent if others else path, run.settings.any_count)
        examples = [(split, row) for split, each in rows.items() for row in each if all(row.members)]
        blank = sum(map(len, rows.values())) - len(examples)
        notes += [_BLANK.format(count=blank)] if blank else []
        return classify(Examples.from_rows(examples, self.positive), run, self.name, notes)


def _file(split: str, name: str, read: Callable[[Path], Iterable[Row]]) -> _File:
    return _File(split, DataFile((name,), _SOURCE), read)


def _polarity(name: str, official: int, **files: str) -> _TransferTask:
    each = [_file(ALL, f"{name}/{file}", partial(_polarity_rows, label=label)) for label, file in files.items()]
    return _TransferTask(name, tuple(each), {ALL: official})


def _treebank(name: str, folder: str, labels: tuple[str, ...]) -> _TransferTask:
    read, splits = partial(_treebank_rows, labels=labels), _TREEBANK[folder]
    return _TransferTask(name, tuple(_file(split, f"SST/{folder}/sentiment-{split}", read) for split in splits), splits)


_TREC = (_file(TRAIN, "TREC/train_5500.label", _question_rows), _file(TEST, "TREC/TREC_10.label", _question_rows))
_MRPC = tuple(_file(split, f"MRPC/msr_paraphrase_{split}.txt", _paraphrase_rows) for split in (TRAIN, TEST))
_SICK_SPLITS = {"train": TRAIN, "trial": DEV, "test": TEST}
_SICK_E = tuple(_File(ours, SICK.places[theirs], SICK.read) for theirs, ours in _SICK_SPLITS.items())


_PROBING_SOURCE = f"{_SOURCE} (data/probing)"
_SPLITS = {"tr": TRAIN, "va": DEV, "te": TEST}
_NO_TRAIN = "Trained on va, since there is no tr: cannot be compared with published figures."
_X_PROBE = "Sentences of X-Probe, not of SentEval: cannot be compared with figures published for SentEval."


@dataclass(frozen=True)
class _ProbingTask(ClassifierTask):
    """Accuracy of classifiers that are trained to tell a property of sentences from their vectors.

    name: as in the paper. file: what SentEval calls the file, and X-Probe the folder. official: examples by split, of
        SentEval's file.
    SOURCE: Conneau et al. 2018, What you can cram into a single vector, section 2.
    """

    name: str
    file: str
    official: tuple[int, int, int] = (100_000, 10_000, 10_000)
    suite: str = "probing"

    def find(self, root: Path) -> list[Path]:
        place = DataFile((f"{self.file}.txt", self.file), _PROBING_SOURCE)
        path = place.find(root)
        if path.is_file():
            return [path]
        train, *others = (path / f"{split}.txt" for split in _SPLITS)
        for other in others:
            if not other.is_file():
                place.refuse(other, root)
        return [train, *others] if train.is_file() else others

    def run(self, run: Run) -> Json:
        paths = self.find(run.root)
        if paths[0].name == f"{self.file}.txt":
            rows = list(_probing_rows(paths[0]))
            each = [split for split, _ in rows]
            notes = []
            for split, official in zip(_SPLITS, self.official, strict=True):
                notes += check_count(each.count(split), official, paths[0], run.settings.any_count)
        else:
            rows = [(path.stem, row) for path in paths for row in _x_probe_rows(path)]
            notes = [_X_PROBE]
        splits = {split for split, _ in rows}
        for split in ("va", "te"):
            if split not in splits:
                raise ValueError(Errors.NO_PAIRS.format(path=paths[0], expected=f"sentences of the split {split}"))
        names = _SPLITS if "tr" in splits else {"va": TRAIN, "te": TEST}
        notes += [] if "tr" in splits else [_NO_TRAIN]
        return classify(Examples.from_rows((names[split], row) for split, row in rows), run, self.name, notes)


def _probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read SentEval's layout: "split TAB label TAB sentence" a line, all splits, "tr", "va" and "te", in one file.

    SOURCE: Conneau et al. 2018, What you can cram into a single vector; SentEval's data/probing.
    """
    for line, record in read_delimited(path, delimiter="\t"):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", _SENTENCE), path, line)
        _check_known(split, _SPLITS, path, line)
        yield split, _labelled(record[-1] if len(record) > 3 else sentence, label.strip(), None, path, line)


def _x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split in X-Probe's layout: "sentence TAB label" a line.

    SOURCE: Ravishankar et al. 2019, Probing Multilingual Sentence Representations With X-Probe.
    """
    for line, record in read_delimited(path, delimiter="\t"):
        sentence, label = pick(record, (0, 1), (_SENTENCE, "label"), path, line)
        yield _labelled(sentence, label.strip(), None, path, line)


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
