"""The official layout of the STS benchmark."""

import re
from collections.abc import Iterator
from itertools import islice
from math import inf
from pathlib import Path

from ..files.lines import format_suffix, has_text
from ..files.tables import read_tabs
from .column_names import GOLD_NAMES, normalized
from .errors import Errors
from .rows import Row, check_members, check_score

STS_COLUMNS = 7  # genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
SCORE = 4  # the place of the score
STS_MAX_SCORE = 5.0
FIRST = 5  # lines that tell whether a file is of the STS benchmark
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
    """Whether most of the first lines of a .csv or .tsv are of the STS benchmark, and the first of all is no header.

    They have a score from 0 to 5 and two texts, and in a .tsv a year, such as 2012test and 2017; some files leave it
    blank. A file without lines is one, too: there are no columns of its own.
    """
    first = [columns for _, columns in islice(read_tabs(path), FIRST)]
    if not first:
        return True
    if len(first[0]) < STS_COLUMNS or is_header(first[0]):
        return False
    return 2 * sum(_is_pair(columns, with_year=format_suffix(path) == ".tsv") for columns in first) > len(first)


def _is_pair(columns: list[str], *, with_year: bool) -> bool:
    if len(columns) < STS_COLUMNS or not _is_number(columns[SCORE], STS_MAX_SCORE):
        return False
    if with_year and columns[2].strip() and not YEAR.match(columns[2].strip()):
        return False
    return all(has_text(text) and not _is_number(text) for text in columns[5:7])


def _is_number(text: str, most: float = inf) -> bool:
    try:
        return 0 <= float(text) <= most
    except ValueError:
        return False


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
