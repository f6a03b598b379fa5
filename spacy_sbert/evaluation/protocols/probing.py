"""SentEval's probing tasks: which properties of a sentence a classifier finds in its vector."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import Errors
from ...files.delimited import pick, read_tabs
from ...readers.examples import Row
from ..results import Measured
from ..task import DataFile, Run, Task, check_count
from .classification import ClassifierTask, as_examples, classify
from .classifiers import DEV, TEST, TRAIN
from .transfer import SENTENCE, check_known, labelled

_SOURCE = "https://github.com/facebookresearch/SentEval (data/probing)"
_SPLITS = {"tr": TRAIN, "va": DEV, "te": TEST}
_OFFICIAL = {"tr": 100_000, "va": 10_000, "te": 10_000}
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
    official: Mapping[str, int]
    suite: str = "probing"

    @property
    def place(self) -> DataFile:
        """Return the file, or the folder."""
        return DataFile((f"{self.file}.txt", self.file), _SOURCE)

    def find(self, root: Path) -> list[Path]:
        path = self.place.find(root)
        if path.is_file():
            return [path]
        train, *others = (path / f"{split}.txt" for split in _SPLITS)
        for other in others:
            if not other.is_file():
                self.place.refuse(other, root)
        return [train, *others] if train.is_file() else others

    def run(self, run: Run) -> Measured:
        paths = self.find(run.root)
        if paths[0].name == f"{self.file}.txt":
            rows = list(_probing_rows(paths[0]))
            counts = Counter(split for split, _ in rows)
            notes = []
            for split, official in self.official.items():
                notes += check_count(counts[split], official, paths[0], run.settings.any_count)
        else:
            rows = [(path.stem, row) for path in paths for row in _x_probe_rows(path)]
            notes = [_X_PROBE]
        splits = {split for split, _ in rows}
        for split in ("va", "te"):
            if split not in splits:
                raise ValueError(Errors.NO_PAIRS.format(path=paths[0], expected=f"sentences of the split {split}"))
        names = _SPLITS if "tr" in splits else {"va": TRAIN, "te": TEST}
        notes += [] if "tr" in splits else [_NO_TRAIN]
        return classify(as_examples((names[split], row) for split, row in rows), run, self.name, notes)


def _probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read a probing task in SentEval's layout: "split TAB label TAB sentence" a line, all splits in one file.

    YIELDS (str, Row): the split, "tr", "va" or "te", and a row with one member and a label.
    RAISES (ValueError): for an unknown split, a missing label or an empty sentence.
    SOURCE: Conneau et al. 2018, What you can cram into a single vector; SentEval's data/probing.
    """
    for line, record in read_tabs(path):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", SENTENCE), path, line)
        check_known(split, tuple(_SPLITS), path, line)
        yield split, labelled(record[-1] if len(record) > 3 else sentence, label.strip(), None, path, line)


def _x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split of a probing task in X-Probe's layout: "sentence TAB label" a line.

    YIELDS (Row): one member and a label.
    RAISES (ValueError): for a missing label or an empty sentence.
    SOURCE: Ravishankar et al. 2019, Probing Multilingual Sentence Representations With X-Probe.
    """
    for line, record in read_tabs(path):
        sentence, label = pick(record, (0, 1), (SENTENCE, "label"), path, line)
        yield labelled(sentence, label.strip(), None, path, line)


TASKS: tuple[Task, ...] = (
    _ProbingTask("SentLen", "sentence_length", {"tr": 99_996, "va": 9996, "te": 9996}),
    _ProbingTask("WC", "word_content", _OFFICIAL),
    _ProbingTask("TreeDepth", "tree_depth", _OFFICIAL),
    _ProbingTask("TopConst", "top_constituents", _OFFICIAL),
    _ProbingTask("BShift", "bigram_shift", _OFFICIAL),
    _ProbingTask("Tense", "past_present", _OFFICIAL),
    _ProbingTask("SubjNum", "subj_number", _OFFICIAL),
    _ProbingTask("ObjNum", "obj_number", _OFFICIAL),
    _ProbingTask("SOMO", "odd_man_out", _OFFICIAL),
    _ProbingTask("CoordInv", "coordination_inversion", {"tr": 100_002, "va": 10_002, "te": 10_002}),
)
