"""The texts of a file, and their rows, ids and other columns."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from ..files.tables import TABLES, Columns, TextColumns, read_columns, read_text_rows
from ..files.text_lines import format_suffix
from ..progress import progress_of
from .index_folder import IndexRow

TEXT = "text"  # the column, where a table has one of that name


class Corpus(NamedTuple):
    """The texts of a file that are not blank.

    texts: the texts. rows: the row of each in the file, from 0; blank rows count, as in the vectors of `encode`.
    ids: the id of each, None if no column was named for them. others: the other columns of each, None if not read.
    """

    texts: list[str]
    rows: list[int]
    ids: list[str | int] | None = None
    others: list[Columns] | None = None

    def index_rows(self) -> list[IndexRow]:
        """Return the texts, ids and rows as an index keeps them; a row that is the place in the index is not kept."""
        if self.ids is not None:
            return [IndexRow(*one) for one in zip(self.texts, self.ids, self.rows, strict=True)]
        numbered = self.rows == list(range(len(self.rows)))
        return [IndexRow(text, None if numbered else row) for text, row in zip(self.texts, self.rows, strict=True)]


def read_corpus(
    path: Path,
    column: str = TEXT,
    *,
    id_column: str | None = None,
    header: bool = True,
    others: bool = False,
    progress: bool = False,
) -> Corpus:
    """Read the texts of a file, without blank ones.

    path (Path): .txt with a text a line, .jsonl, .csv, .tsv (each .gz or not) or .parquet.
    column (str): the column or field of the texts. id_column (str): that of the ids, strings or whole numbers.
    header (bool): whether .csv and .tsv have one; if not, columns are named "0", "1", ...
    others (bool): whether to read the other columns of a table, too. progress (bool): whether to show a progress bar.
    RAISES (ValueError): if it holds none, or has a bad row, with its line.
    """
    read = read_text_rows(path, TextColumns(column, id_column, header))
    found, ids, kept = Corpus([], []), list[Any](), list[Columns]()
    is_kept = others and format_suffix(path) in TABLES
    columns: Iterable[Columns] = read_columns(path, header=header) if is_kept else repeat({})
    rows = progress_of(read, desc="Reading", unit="rows", shown=progress)
    for number, (row, own) in enumerate(zip(rows, columns, strict=is_kept)):
        if row.text and not row.text.isspace():
            found.texts.append(row.text)
            found.rows.append(number)
            ids.append(row.id)
            kept.append({name: value for name, value in own.items() if name not in (column, id_column)})
    if not found.texts:
        raise ValueError(f"{path} holds no text: expected one a line, or .jsonl with text.")
    return found._replace(ids=ids if id_column is not None else None, others=kept if is_kept else None)


def corpus_of(rows: Sequence[IndexRow] | None, folder: Path) -> Corpus:
    """Return the texts beside an index, with their rows and ids.

    An id that is a number is a row where no row was saved beside it.

    RAISES (ValueError): if it was saved without texts.
    """
    texts = [row.text for row in rows or () if row.text is not None]
    if not rows or len(texts) < len(rows):
        raise ValueError(f"The index in {folder} was saved without texts. Give the corpus that it was built of.")
    if all(row.row is None and (row.id is None or isinstance(row.id, int)) for row in rows):
        return Corpus(texts, [place if row.id is None else int(row.id) for place, row in enumerate(rows)])
    numbers = [place if row.row is None else row.row for place, row in enumerate(rows)]
    return Corpus(texts, numbers, ["" if row.id is None else row.id for row in rows])
