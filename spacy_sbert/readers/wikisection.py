"""Triplets of sentences from the sections of Wikipedia articles."""

from collections.abc import Iterator
from pathlib import Path

from ..files.tables import find_columns, pick, read_commas
from .errors import Errors
from .rows import Row, check_members

SENTENCES = ("Sentence1", "Sentence2", "Sentence3")


def wikisection_rows(path: Path) -> Iterator[Row]:
    """Read triplets: an anchor, a sentence of the same section, and one of another section of the article.

    path (Path): see wikisection_records.
    YIELDS (Row): three members: anchor, positive, negative.
    RAISES (ValueError): for a missing column, an empty sentence, or a triplet with two equal sentences.
    """
    for line, texts in wikisection_records(path):
        yield Row(check_members(texts, SENTENCES, path, line), line)


def wikisection_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The sentences of triplets as they stand in the file, whether they can be learned from or not.

    path (Path): comma-separated with a header: Article Title, Sentence1, Sentence2, Sentence3.
    YIELDS (int, list of three str): the line, and the sentences.
    RAISES (ValueError): for a missing column, or more columns than the header has.
    SOURCE: Ein Dor et al. 2018, Learning Thematic Similarity Metric Using Triplet Networks.
    """
    records = read_commas(path)
    line, header = next(records, (1, [*SENTENCES]))
    columns, width = find_columns(header, SENTENCES, path, line), len(header)
    for line, record in records:
        if (given := len(record)) > width:  # an unquoted comma, or a quote that was lost
            raise ValueError(Errors.WRONG_COLUMNS.format(path=path, line=line, expected=width, given=given))
        yield line, pick(record, columns, SENTENCES, path, line)
