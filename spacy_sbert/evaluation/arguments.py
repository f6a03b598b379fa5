"""Similarity of arguments: AFS and the UKP aspect corpus, without training on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..readers.arguments import AFS_MAX_SCORE, AFS_TOPICS, ASPECT_FILE, ArgumentRow, afs_files, afs_rows, aspect_rows
from .datasets import PREFIXES, MissingData, Place, check_count, filled
from .errors import Errors
from .pairs import DEPENDS_ON, TRAINED, graded_pairs, score_graded
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
        rows = [row for file in self.find(run.root) for row in filled(afs_rows(file), file)]
        return score_arguments(rows, AFS_MAX_SCORE, run, "afs", [AFS_NOTE])


@dataclass(frozen=True)
class AspectTask:
    """The UKP aspect corpus: pairs of arguments of 28 topics, labelled by how similar they are."""

    name: str = "UKP-ASPECT"
    suite: str = "arguments"
    depends_on: tuple[str, ...] = DEPENDS_ON

    @property
    def place(self) -> Place:
        return Place((ASPECT_FILE, f"UKP_ASPECT/{ASPECT_FILE}", f"ukp_aspect/{ASPECT_FILE}"), ASPECT_SOURCE)

    def find(self, root: Path) -> list[Path]:
        return [self.place.find(root)]

    def run(self, run: Run) -> Measured:
        path = self.place.find(run.root)
        rows = filled(aspect_rows(path), path)
        counted = check_count(len(rows), ASPECT_PAIRS, path, run.settings.any_count)
        return score_arguments(rows, 1.0, run, "ukp", [*counted, ASPECT_NOTE])


TASKS: tuple[Task, ...] = (FacetTask(), AspectTask())


def score_arguments(
    rows: Sequence[ArgumentRow], highest: float, run: Run, trained: str, notes: Sequence[str]
) -> Measured:
    """Correlate similarities with the scores of arguments: of each topic, pooled, and the mean over topics.

    rows (n ArgumentRows): the pairs. highest (float): the score that 1 stands for. trained (str): how names of training
    data begin that touch the set. notes: what to say beside the scores.
    RETURNS (dict): see score_graded; the sub-sets are the topics.
    SOURCE: Reimers and Gurevych 2019, section 4.3, the rows without training.
    """
    names = run.settings.touching(trained)
    touched = [TRAINED.format(names)] if names else []
    pairs = graded_pairs(rows, 0.0, highest, [row.topic for row in rows])
    return score_graded(pairs, run, [*notes, *touched])
