"""Counts of words in a large corpus, by which rare ones weigh more."""

from pathlib import Path

from .errors import Errors
from .lines import read_lines


def read_counts(path: Path) -> dict[str, int]:
    """Read the counts of words in a large corpus.

    path (Path): a lower-cased word, white space and its count on each line, such as enwiki_vocab_min200.txt of
        https://github.com/PrincetonML/SIF; blank lines are passed over.
    RETURNS (dict): counts by word.
    RAISES (ValueError): for a line that is not so or repeats a word, or if there is none; the message names file and
        line.
    """
    found: dict[str, int] = {}
    for line, text in read_lines(path):
        columns = text.split()
        if not columns:
            continue
        if len(columns) != 2 or not columns[1].isdecimal() or int(columns[1]) == 0:
            raise ValueError(Errors.BAD_WORD_COUNT.format(path=path, line=line, given=text.strip()[:50]))
        if columns[0] in found:
            raise ValueError(Errors.REPEATED_WORD.format(path=path, line=line, word=columns[0]))
        found[columns[0]] = int(columns[1])
    if not found:
        raise ValueError(Errors.NO_WORD_COUNTS.format(path=path))
    return found
