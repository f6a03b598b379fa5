"""The official layout of the STS benchmark."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..files.lines import format_suffix, has_text
from ..files.tables import read_tabs
from .column_names import GOLD_NAMES, normalized
from .errors import Errors
from .rows import Row, check_members, check_score

STS_COLUMNS = 7  # genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
SCORE = 4  # the place of the score
STS_MAX_SCORE = 5.0
SENTENCES = ("sentence1", "sentence2")
YEAR = re.compile(r"(19|20)\d\d")
Pair = tuple[str, str, float]


def sts_rows(path: Path) -> Iterator[Row]:
    """Read graded pairs in the layout of the STS benchmark, see read_sts. YIELDS (Row): two members and a score."""
    for line, columns in read_tabs(path):
        if len(columns) < STS_COLUMNS:
            raise ValueError(Errors.MISSING_COLUMN.format(path=path, line=line, given=len(columns)))
        if line == 1 and is_header(columns):
            raise ValueError(Errors.STS_HEADER.format(path=path, line=line, given=", ".join(columns)))
        score = check_score(columns[SCORE], 0.0, STS_MAX_SCORE, path, line, "score")
        yield Row(check_members(columns[5:7], SENTENCES, path, line), line, score=score)


def starts_as_sts(path: Path) -> bool:
    """Whether the first line of a .csv or .tsv is one of the STS benchmark: a year, a score from 0 to 5, two texts.

    Years are such as 2012test and 2017; some files leave them blank. In a .csv any tab-separated line of so many
    columns is one, unless it is a header. A file without lines is one, too: there are no columns of its own.
    """
    _, columns = next(read_tabs(path), (0, None))
    if columns is None:
        return True
    if len(columns) < STS_COLUMNS:
        return False
    if format_suffix(path) == ".csv":
        return not is_header(columns)
    try:
        is_score = 0 <= float(columns[SCORE]) <= STS_MAX_SCORE
    except ValueError:
        return False
    is_year = bool(YEAR.match(columns[2].strip())) or not columns[2].strip()
    return is_score and is_year and all(map(has_text, columns[5:7]))


def is_header(columns: list[str]) -> bool:
    """Whether the first line of a file has the names of columns: "score" or the like in the place of the score."""
    return normalized(columns[SCORE]) in GOLD_NAMES or {normalized(name) for name in columns} >= {*SENTENCES}


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
