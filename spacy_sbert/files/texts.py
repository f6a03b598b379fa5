"""Files of texts: every row is one, and a blank row an empty one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import Errors
from .lines import check_encoding, check_texts, format_suffix, is_gzip, read_lines
from .tables import TABLES, Record, read_table

TEXT = ".txt"
INT64 = range(-(2**63), 2**63)


class TextRow(NamedTuple):
    """A row of a file: its text, and its id if a column is named for it."""

    text: str
    id: str | int | None


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a table are read.

    text: that of the text. id: that of the row's name, None for none. header: whether the first line of .csv and .tsv
    names the columns; without one they are named "0", "1", ...
    """

    text: str = "text"
    id: str | None = None
    header: bool = True


def read_text_rows(path: Path, columns: TextColumns) -> Iterator[TextRow]:
    """Read the texts of a file, as they stand in it.

    path (Path): .txt with a text a line, or a table, see read_table.
    columns (TextColumns): which of a table's columns are read.
    YIELDS (TextRow): one for each row; a blank line of .txt, .csv and .tsv is a row too.
    RAISES (ValueError): for a name that tells no format, ids of .txt, or a bad row, with its line; (ImportError): for
        .parquet without pyarrow.
    """
    check_texts(path)
    suffix = format_suffix(path)
    if suffix not in (*TABLES, TEXT) or (is_gzip(path) and suffix == ".parquet"):
        raise ValueError(Errors.UNKNOWN_TEXTS.format(path=path, expected=", ".join((*TABLES, TEXT))))
    if suffix == TEXT:
        if columns.id is not None:
            raise ValueError(Errors.NO_ID_IN_TEXT.format(path=path, column=columns.id))
        return (TextRow(text.rstrip("\r\n"), None) for _, text in read_lines(path))
    names = [columns.text] if columns.id is None else [columns.text, columns.id]
    records = read_table(path, names, header=columns.header, keep_blank=True)
    return (_row(record, columns, path) for record in records)


def _row(record: Record, columns: TextColumns, path: Path) -> TextRow:
    line, (text, *rest) = record
    if not isinstance(text, str):
        raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=columns.text, given=text))
    check_encoding(text, path, line)
    for name in rest:
        if isinstance(name, str) or (isinstance(name, int) and type(name) is not bool and name in INT64):
            return TextRow(text, name)
        raise ValueError(Errors.BAD_ID.format(path=path, line=line, column=columns.id, given=name))
    return TextRow(text, None)
