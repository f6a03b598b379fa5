"""The texts of a file, and where they stand in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors.checks import validated
from ..errors.progress import progress_of
from ..files.texts import TextColumns, read_text_rows
from .errors import Errors
from .index_folder import IndexRow

TEXT = "text"  # the column, where a table has one of that name


class Corpus(NamedTuple):
    """Texts that are not blank, and the row of each, from 0, in a file whose blank rows count, as those of `encode`."""

    texts: list[str]
    rows: list[int]

    @property
    def ids(self) -> list[int] | None:
        """The rows, as an index keeps them; None if nothing is blank, and they are the places in the index."""
        return None if self.rows == list(range(len(self.rows))) else self.rows


@validated
def read_corpus(path: Path, column: str = TEXT, *, header: bool = True, progress: bool = False) -> Corpus:
    """The texts of a file, without blank ones.

    path (Path): .txt with a text a line, .jsonl, .csv, .tsv (each .gz or not) or .parquet.
    column (str): the column or field of the texts. header (bool): whether .csv and .tsv have one; if not, columns are
        named "0", "1", ...
    progress (bool): whether to show a progress bar.
    RAISES (ValueError): if it holds none, or has a bad row, with its line.
    """
    read = read_text_rows(path, TextColumns(column, None, header))
    found = Corpus([], [])
    for number, row in enumerate(progress_of(read, desc="Reading", unit="rows", shown=progress)):
        if row.text and not row.text.isspace():
            found.texts.append(row.text)
            found.rows.append(number)
    if not found.texts:
        raise ValueError(Errors.SEARCH_EMPTY_CORPUS.format(path=path))
    return found


def corpus_of(rows: Sequence[IndexRow] | None, folder: Path) -> Corpus:
    """The texts beside an index, whose rows are its ids, if these are numbers, else their places in it.

    RAISES (ValueError): if it was saved without texts.
    """
    texts = [row.text for row in rows or () if row.text is not None]
    if not rows or len(texts) < len(rows):
        raise ValueError(Errors.SEARCH_NO_TEXTS.format(folder=folder))
    return Corpus(texts, [row.id if isinstance(row.id, int) else place for place, row in enumerate(rows)])
