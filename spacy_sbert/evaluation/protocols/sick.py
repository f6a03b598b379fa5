"""SICK: relatedness of pairs, from 1 to 5."""

from ...readers.datasets import sick_rows
from ..scoring import GradedSet, GradedTask
from ..task import DataFile, Task

COUNTS = {"train": 4500, "trial": 500, "test": 4927}
FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
SOURCE = "https://zenodo.org/records/2787612"


def _place(file: str) -> DataFile:
    plain = file.replace("_annotated", "")
    return DataFile((f"sick/{file}", f"SICK/{file}", file, f"sick/{plain}", f"SICK/{plain}", plain), SOURCE)


PLACES = {split: _place(file) for split, file in FILES.items()}
SICK = GradedSet(PLACES, COUNTS, sick_rows, low=1.0, high=5.0, trained=("sick",))
TASKS: tuple[Task, ...] = tuple(GradedTask(f"SICK-R-{split}", "sick", SICK, split) for split in ("trial", "test"))
