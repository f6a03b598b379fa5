"""The layout of Quora Question Pairs, as Quora and GLUE publish it."""

import warnings
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from spacy.util import logger

from ..files.delimited import Records, check_width, find_columns, read_delimited, read_tabs
from ..files.lines import has_text
from .bad_lines import SAID, listed
from .errors import Errors, Warnings
from .rows import Row, check_members

QUESTIONS = ("question1", "question2")
SCORE = "is_duplicate"


def quora_rows(path: Path) -> Iterator[Row]:
    """Read pairs of questions that are duplicates or not.

    path (Path): tab-separated with a header (id, qid1, qid2, question1, question2, is_duplicate); quoted, as Quora
        publishes it, or not, as GLUE does.
    YIELDS (Row): two members and the score, 0 or 1. Records that a line break tore apart are left out with a
        warning at the end of the file. Those with an empty question are left out, and their number is logged.
    RAISES (ValueError): for a missing column in the header, or a score other than 0 and 1.
    SOURCE: Iyer et al. 2017, First Quora Dataset Release; Wang et al. 2019 (GLUE).
    """
    empty, torn, n_torn = 0, list[int](), 0
    records = _records(path)
    line, header = next(records, (1, [*QUESTIONS, SCORE]))
    columns, width = find_columns(header, (*QUESTIONS, SCORE), path, line), len(header)
    for line, record in records:
        if not _is_whole(record, width, path, line):
            torn += [line] if n_torn < SAID else []
            n_torn += 1
            continue
        first, second, score = (record[column] for column in columns)
        if not (has_text(first) and has_text(second)):
            empty += 1
            continue
        if score.strip() not in ("0", "1"):
            raise ValueError(Errors.NOT_BINARY.format(path=path, line=line, column=SCORE, given=score))
        yield Row(check_members((first, second), QUESTIONS, path, line), line, score=float(score))
    if empty:
        logger.info("%s: left out %d records with an empty question", path, empty)
    if n_torn:
        warnings.warn(Warnings.TORN_RECORDS.format(path=path, expected=width, lines=listed(torn, n_torn)), stacklevel=2)


def _records(path: Path) -> Records:
    records = read_delimited(path)
    try:
        first = list(islice(records, 1))
    except ValueError:  # quotes in doubt, as torn records have them; another error comes again
        return read_tabs(path)
    return chain(first, records)


def _is_whole(record: list[str], width: int, path: Path, line: int) -> bool:
    try:
        check_width(record, width, path, line)
    except ValueError:
        return False
    return True
