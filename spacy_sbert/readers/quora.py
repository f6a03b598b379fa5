"""The official layout of Quora Question Pairs."""

from collections.abc import Iterator
from pathlib import Path

from spacy.util import logger

from ..files.lines import has_text
from ..files.tables import find_columns, read_tabs
from .errors import Errors
from .rows import Row, check_members

QUESTIONS = ("question1", "question2")
SCORE = "is_duplicate"


def quora_rows(path: Path) -> Iterator[Row]:
    """Read pairs of questions that are duplicates or not.

    path (Path): tab-separated with a header (id, qid1, qid2, question1, question2, is_duplicate), without quoting, as
        GLUE gives it out.
    YIELDS (Row): two members and the score, 0 or 1. The official file has a few records that a line break tore apart
        or whose question is empty: they are left out, and their number is logged at the end of the file.
    RAISES (ValueError): for a missing column in the header, or a score other than 0 and 1.
    SOURCE: Iyer et al. 2017, First Quora Dataset Release; Wang et al. 2019 (GLUE).
    """
    skipped = 0
    records = read_tabs(path)
    line, header = next(records, (1, [*QUESTIONS, SCORE]))
    columns = find_columns(header, (*QUESTIONS, SCORE), path, line)
    for line, record in records:
        if len(record) <= max(columns) or not all(has_text(record[column]) for column in columns[:2]):
            skipped += 1
            continue
        first, second, score = (record[column] for column in columns)
        if score.strip() not in ("0", "1"):
            raise ValueError(Errors.NOT_BINARY.format(path=path, line=line, column=SCORE, given=score))
        yield Row(check_members((first, second), QUESTIONS, path, line), line, score=float(score))
    if skipped:
        logger.info("%s: left out %d records torn apart by a line break or with an empty question", path, skipped)
