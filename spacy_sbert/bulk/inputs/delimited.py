"""Tables of text: .csv, whose columns are quoted where need be, and .tsv, whose columns are not."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...files.lines import comma_separated, find_columns, pick, read_lines
from ..errors import Errors
from .columns import Columns, Row

Record = tuple[int, list[str]]  # the line where it starts, and its columns


def read_csv(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a column of comma-separated ones (RFC 4180); a blank line is a row of one empty column.

    path (Path): .csv, UTF-8, gzip-compressed if it ends in .gz.
    RAISES (ValueError): for quotes that do not match, or a row without a column.
    """
    records = comma_separated((text for _, text in read_lines(path)), path)
    return _rows(((line, record or [""]) for line, record in records), path, columns)


def read_tsv(path: Path, columns: Columns) -> Iterator[Row]:
    """The same of tab-separated columns without quoting."""
    return _rows(((line, text.rstrip("\r\n").split("\t")) for line, text in read_lines(path)), path, columns)


def _rows(records: Iterable[Record], path: Path, columns: Columns) -> Iterator[Row]:
    names, places = columns.names, None
    if not columns.header:
        for name in names:
            if not name.isdecimal():
                raise ValueError(Errors.BULK_NOT_A_NUMBER.format(path=path, given=name))
        places = [int(name) for name in names]
    for line, record in records:
        if places is None:
            places = find_columns(record, names, path, line)
        else:
            yield columns.row(list(pick(record, places, names, path, line)), path, line)
