"""SentEval's probing tasks: which properties of a sentence a classifier finds in its vector."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import Errors
from ..results import Measured
from ..task import DataFile, Run, Task, check_count
from .classifiers import DEV, TEST, TRAIN
from .transfer import DEPENDS_ON, as_examples, classify, probing_rows, x_probe_rows

SOURCE = "https://github.com/facebookresearch/SentEval (data/probing)"
SPLITS = {"tr": TRAIN, "va": DEV, "te": TEST}
OFFICIAL = {"tr": 100_000, "va": 10_000, "te": 10_000}
NO_TRAIN = "Trained on va, since there is no tr: cannot be compared with published figures."
X_PROBE = "Sentences of X-Probe, not of SentEval: cannot be compared with figures published for SentEval."


@dataclass(frozen=True)
class ProbingTask:
    """Accuracy of classifiers that are trained to tell a property of sentences from their vectors.

    name: as in the paper. file: what SentEval calls the file, and X-Probe the folder. official: examples by split, of
        SentEval's file.
    SOURCE: Conneau et al. 2018, What you can cram into a single vector, section 2.
    """

    name: str
    file: str
    official: Mapping[str, int]
    suite: str = "probing"
    depends_on: tuple[str, ...] = DEPENDS_ON

    @property
    def place(self) -> DataFile:
        return DataFile((f"{self.file}.txt", self.file), SOURCE)

    def find(self, root: Path) -> list[Path]:
        path = self.place.find(root)
        if path.is_file():
            return [path]
        train, *others = (path / f"{split}.txt" for split in SPLITS)
        for other in others:
            if not other.is_file():
                self.place.refuse(other, root)
        return [train, *others] if train.is_file() else others

    def run(self, run: Run) -> Measured:
        paths = self.find(run.root)
        if paths[0].name == f"{self.file}.txt":
            rows = list(probing_rows(paths[0]))
            counts = Counter(split for split, _ in rows)
            notes = []
            for split, official in self.official.items():
                notes += check_count(counts[split], official, paths[0], run.settings.any_count)
        else:
            rows = [(path.stem, row) for path in paths for row in x_probe_rows(path)]
            notes = [X_PROBE]
        there = {split for split, _ in rows}
        for split in ("va", "te"):
            if split not in there:
                raise ValueError(Errors.NO_PAIRS.format(path=paths[0], expected=f"sentences of the split {split}"))
        names = SPLITS if "tr" in there else {"va": TRAIN, "te": TEST}
        notes += [] if "tr" in there else [NO_TRAIN]
        return classify(as_examples((names[split], row) for split, row in rows), run, self.name, notes)


TASKS: tuple[Task, ...] = (
    ProbingTask("SentLen", "sentence_length", {"tr": 99_996, "va": 9996, "te": 9996}),
    ProbingTask("WC", "word_content", OFFICIAL),
    ProbingTask("TreeDepth", "tree_depth", OFFICIAL),
    ProbingTask("TopConst", "top_constituents", OFFICIAL),
    ProbingTask("BShift", "bigram_shift", OFFICIAL),
    ProbingTask("Tense", "past_present", OFFICIAL),
    ProbingTask("SubjNum", "subj_number", OFFICIAL),
    ProbingTask("ObjNum", "obj_number", OFFICIAL),
    ProbingTask("SOMO", "odd_man_out", OFFICIAL),
    ProbingTask("CoordInv", "coordination_inversion", {"tr": 100_002, "va": 10_002, "te": 10_002}),
)
