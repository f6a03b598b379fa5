"""The official layout of the STS benchmark."""

from collections.abc import Iterator
from pathlib import Path

from ..files.lines import format_suffix
from ..files.tables import read_tabs
from .errors import Errors
from .rows import Row, check_members, check_score

STS_COLUMNS = 7  # genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
SCORE = 4  # the place of the score
STS_MAX_SCORE = 5.0
SENTENCES = ("sentence1", "sentence2")
Pair = tuple[str, str, float]


def sts_rows(path: Path) -> Iterator[Row]:
    """Read graded pairs in the layout of the STS benchmark, see read_sts. YIELDS (Row): two members and a score."""
    for line, columns in read_tabs(path):
        if len(columns) < STS_COLUMNS:
            raise ValueError(Errors.MISSING_COLUMN.format(path=path, line=line, given=len(columns)))
        score = check_score(columns[SCORE], 0.0, STS_MAX_SCORE, path, line, "score")
        yield Row(check_members(columns[5:7], SENTENCES, path, line), line, score=score)


def starts_as_sts(path: Path) -> bool:
    """Whether the first line of a .csv or .tsv has the columns of the STS benchmark; a .tsv then a number in the fifth.

    A file without lines does, too: there are no columns of its own.
    """
    _, columns = next(read_tabs(path), (0, None))
    if columns is None:
        return True
    if len(columns) < STS_COLUMNS:
        return False
    return format_suffix(path) == ".csv" or columns[SCORE].strip().replace(".", "", 1).isdecimal()


def read_sts(path: Path) -> Iterator[Pair]:
    """Read the official layout of the STS benchmark: tab-separated, no header, no quoting.

    path (Path): the file; .gz is read as it is.
    YIELDS (str, str, float): the two sentences without white space around them, and the score scaled from 0..5 to 0..1.
    RAISES (ValueError): for a line with fewer than 7 columns, a score that is not a number from 0 to 5, or an empty
        sentence; the message names file and line.
    SOURCE: Cer et al. 2017, SemEval-2017 task 1.
    """
    for row in sts_rows(path):
        first, second = row.members
        yield first, second, row.score or 0.0
