"""The logger of training."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from spacy.language import Language

from ..files.atomic import check_output
from ..validation import validated


@validated
def progress_logger(progress_bar: bool = True, output_file: str | Path | None = None) -> Callable:
    """Log as spaCy's ConsoleLogger does, with the loss of each objective and the speed of training.

    progress_bar (bool): whether to show the steps, the examples a second and the time left: between
        evaluations in a bar on a terminal, else in a line every 30 seconds; and in each row.
    output_file (str or Path): a file that gets a line for each evaluation: a row of a table if it
        ends in .csv, else JSON; an existing one is continued.
    """
    path = None
    if output_file is not None:
        path = Path(output_file)
        check_output(path)

    def setup(
        nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> tuple[Callable, Callable]:
        from .training_log import TrainingLog  # noqa: PLC0415 (spaCy imports all loggers with the first pipe)

        log = TrainingLog(nlp, stdout, stderr, progress_bar, path)
        return log.step, log.close

    return setup
