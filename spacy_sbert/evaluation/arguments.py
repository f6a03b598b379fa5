"""Similarity of arguments: AFS and the UKP aspect corpus, without training on them."""

from dataclasses import dataclass
from pathlib import Path

from ..readers.arguments import AFS_MAX_SCORE, AFS_TOPICS, ASPECT_FILE, afs_files, afs_rows, aspect_rows
from .datasets import PREFIXES, MissingData, Place, filled
from .errors import Errors
from .pairs import DEPENDS_ON, TRAINED, GradedPairs, GradedSet, GradedTask, graded_pairs, score_graded
from .results import Measured
from .task import Run, Task

AFS_FOLDERS = ("AFS", "afs", "AFS_corpus", "")
AFS_SOURCE = "https://nlds.soe.ucsc.edu, the lab of Misra et al. 2016"
ASPECT_PAIRS = 3595
ASPECT_SOURCE = "https://github.com/UKPLab/acl2019-BERT-argument-classification-and-clustering"
ASPECT_NOTE = (
    "Labels as scores: DTORCD 0, NS 0, SS 1/2, HS 1. Reimers et al. 2019 oppose the first two to the last two; "
    "Spearman's correlation depends on the order of the scores alone, Pearson's also on where SS stands."
)
AFS_NOTE = "The number of pairs is not checked: no official one is known for each topic."


@dataclass(frozen=True)
class FacetTask:
    """AFS: pairs of arguments of three debates, graded from 0 (different topic) to 5 (completely equivalent)."""

    name: str = "AFS"
    suite: str = "arguments"
    depends_on: tuple[str, ...] = DEPENDS_ON

    def find(self, root: Path) -> list[Path]:
        folders = [root / prefix / name for name in AFS_FOLDERS for prefix in PREFIXES]
        files: list[Path] = next(filter(None, map(afs_files, folders)), [])
        found = [topic for topic in AFS_TOPICS if any(f"_{topic}" in file.stem for file in files)]
        if len(found) < len(AFS_TOPICS):
            missing = " and ".join(f"ArgPairs_{topic}*.csv" for topic in AFS_TOPICS if topic not in found)
            raise MissingData(Errors.MISSING_DATA.format(names=missing, root=root, source=AFS_SOURCE))
        return files

    def run(self, run: Run) -> Measured:
        pairs, notes = self.pairs(run)
        return score_graded(pairs, run, notes)

    def pairs(self, run: Run) -> tuple[GradedPairs, list[str]]:
        """The pairs, their topics as sub-sets, and notes on them."""
        rows = [row for file in self.find(run.root) for row in filled(afs_rows(file), file)]
        return graded_pairs(rows, 0.0, AFS_MAX_SCORE), [AFS_NOTE, *run.settings.touched(TRAINED, "afs")]


ASPECT_PLACE = Place((ASPECT_FILE, f"UKP_ASPECT/{ASPECT_FILE}", f"ukp_aspect/{ASPECT_FILE}"), ASPECT_SOURCE)
ASPECT = GradedSet({"all": ASPECT_PLACE}, {"all": ASPECT_PAIRS}, aspect_rows, 0.0, 1.0, ("ukp",), (ASPECT_NOTE,))
AFS, UKP = FacetTask(), GradedTask("UKP-ASPECT", "arguments", ASPECT, "all")
TASKS: tuple[Task, ...] = (AFS, UKP)
