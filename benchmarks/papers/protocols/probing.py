"""SentEval's probing tasks, also of X-Probe: their files, read as published, for the classifiers on
the vectors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spacy_sbert.errors import Errors
from spacy_sbert.evaluation.protocols.classification import DEV, TEST, TRAIN, Examples
from spacy_sbert.evaluation.protocols.senteval import SENTEVAL, labelled
from spacy_sbert.evaluation.results import Json
from spacy_sbert.evaluation.task import DataFile, Run, check_official_count
from spacy_sbert.files.delimited import pick, read_delimited
from spacy_sbert.readers.examples import Row

from .classification import evaluate_classifier
from .variants import VariedTask

_SPLITS = {"tr": TRAIN, "va": DEV, "te": TEST}


@dataclass(frozen=True)
class ProbingTask(VariedTask):
    """Accuracy of classifiers that tell a property of sentences from their vectors (Conneau et al.
    2018, section 2).

    file: what SentEval calls the file, and X-Probe the folder. official: examples by split, of
        SentEval's file.
    """

    name: str
    file: str
    official: tuple[int, int, int] = (100_000, 10_000, 10_000)
    suite: str = "probing"
    needs_sklearn = True

    def find(self, root: Path) -> list[Path]:
        place = DataFile((f"{self.file}.txt", self.file), f"{SENTEVAL} (data/probing)")
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
                notes += check_official_count(
                    each.count(split), paths[0], official, any_count=run.settings.any_count
                )
        else:
            rows = [(path.stem, row) for path in paths for row in _x_probe_rows(path)]
            notes.append(
                "Sentences of X-Probe, not of SentEval: cannot be compared with figures published "
                "for SentEval."
            )
        names = _SPLITS
        if "tr" not in {split for split, _ in rows}:
            names = {"va": TRAIN, "te": TEST}
            notes.append(
                "Trained on va, since there is no tr: cannot be compared with published figures."
            )
        return evaluate_classifier(
            Examples.from_rows((names[split], row) for split, row in rows), run, self.name, notes
        )


def _probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read SentEval's layout (Conneau et al. 2018): "split TAB label TAB sentence" a line, all
    splits in one file.
    """
    for line, record in read_delimited(path, delimiter="\t"):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", "sentence"), path, line)
        if split not in _SPLITS:
            known = ", ".join(_SPLITS)
            raise ValueError(
                Errors.UNKNOWN_LABEL.format(path=path, line=line, given=split, expected=known)
            )
        yield split, labelled([record[-1] if len(record) > 3 else sentence], label, (), path, line)


def _x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split in X-Probe's layout (Ravishankar et al. 2019): "sentence TAB label" a line."""
    for line, record in read_delimited(path, delimiter="\t"):
        sentence, label = pick(record, (0, 1), ("sentence", "label"), path, line)
        yield labelled([sentence], label, (), path, line)


TASKS = (
    ProbingTask("SentLen", "sentence_length", (99_996, 9996, 9996)),
    ProbingTask("WC", "word_content"),
    ProbingTask("TreeDepth", "tree_depth"),
    ProbingTask("TopConst", "top_constituents"),
    ProbingTask("BShift", "bigram_shift"),
    ProbingTask("Tense", "past_present"),
    ProbingTask("SubjNum", "subj_number"),
    ProbingTask("ObjNum", "obj_number"),
    ProbingTask("SOMO", "odd_man_out"),
    ProbingTask("CoordInv", "coordination_inversion", (100_002, 10_002, 10_002)),
)
