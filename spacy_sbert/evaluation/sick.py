"""SICK: relatedness of pairs, and the accuracy of a classification head on their entailment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..readers.sick import sick_rows
from .datasets import Place, check_count, filled
from .pairs import graded_pairs, score_graded
from .sts import DEPENDS_ON
from .task import Run, Task

COUNTS = {"train": 4500, "trial": 500, "test": 4927}
FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
LOW, HIGH = 1.0, 5.0
SOURCE = "https://zenodo.org/records/2787612"


def sick_place(split: str) -> Place:
    """Where a split of SICK lies: train, trial or test."""
    file = FILES[split]
    plain = file.replace("_annotated", "")
    return Place((f"sick/{file}", f"SICK/{file}", file, f"sick/{plain}", f"SICK/{plain}", plain), SOURCE)


@dataclass(frozen=True)
class RelatednessTask:
    """SICK-R: correlation with the relatedness scores, from 1 to 5."""

    split: str
    suite: str = "sick"
    depends_on: tuple[str, ...] = DEPENDS_ON

    @property
    def name(self) -> str:
        return f"SICK-R-{self.split}"

    def find(self, root: Path) -> list[Path]:
        return [sick_place(self.split).find(root)]

    def run(self, run: Run) -> dict[str, Any]:
        path = sick_place(self.split).find(run.root)
        rows = filled(sick_rows(path), path)
        notes = check_count(len(rows), COUNTS[self.split], path, run.settings.any_count)
        touching = [name for name in run.settings.trained_on if name.lower().startswith("sick")]
        if touching:
            notes.append(f"The encoder was trained on {', '.join(touching)}: this is no zero-shot score.")
        result = score_graded(graded_pairs(rows, LOW, HIGH), run)
        return {**result, "notes": [*result["notes"], *notes]}


TASKS: tuple[Task, ...] = (RelatednessTask("trial"), RelatednessTask("test"))
