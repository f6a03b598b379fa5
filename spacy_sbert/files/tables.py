"""Tables, read by the names of their columns a record at a time: .csv, .jsonl, .parquet and .tsv."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import Errors
from .lines import comma_separated, format_suffix, read_lines
from .regular import check_input

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
BATCH = 1024  # records of a .parquet file that are in memory at once
Record = tuple[int, Sequence[object]]  # the line, and the columns asked for


def read_table(path: Path, names: Sequence[str], *, header: bool = True, keep_blank: bool = False) -> Iterator[Record]:
    """Read columns of a table.

    path (Path): .jsonl, .csv (quoted, RFC 4180), .tsv (not quoted), each of them .gz or not, or .parquet.
    names (Sequence[str]): of the columns or fields. header (bool): whether .csv and .tsv have one; if not, columns are
        named "0", "1", ...
    keep_blank (bool): whether a blank line is a record of one empty column, and in .jsonl an error; otherwise it is
        passed over.
    YIELDS (int, Sequence): the line where a record starts, in .parquet its number, from 1; and its columns, by names.
    RAISES (ValueError): for an unknown suffix, a missing column, or what is not such a file; (ImportError): for
        .parquet without pyarrow.
    """
    suffix = format_suffix(path)
    if suffix == ".parquet":
        return _read_parquet(path, names)
    if suffix == ".jsonl":
        objects = read_objects(path, keep_blank=keep_blank)
        return ((line, [get_field(record, name, path, line) for name in names]) for line, record in objects)
    if suffix not in TABLES:
        raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))
    read = read_commas if suffix == ".csv" else read_tabs
    return by_name(read(path, keep_blank=keep_blank), names, path, header=header)


def column_names(path: Path, *, header: bool = True) -> list[str]:
    """The names of a table's columns, of .jsonl the fields of the first object; see read_table.

    RAISES (ValueError): for an unknown suffix, or what is not such a file; (ImportError): for .parquet without pyarrow.
    """
    suffix = format_suffix(path)
    if suffix == ".parquet":
        with _parquet_file(path) as file:
            return list(file.schema_arrow.names)
    if suffix == ".jsonl":
        return list(next(read_objects(path), (0, {}))[1])
    if suffix not in TABLES:
        raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))
    _, first = next((read_commas if suffix == ".csv" else read_tabs)(path), (0, []))
    return [name.strip() for name in first] if header else [str(place) for place in range(len(first))]


def read_tabs(path: Path, *, keep_blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Read tab-separated columns without quoting.

    keep_blank (bool): see read_table.
    YIELDS (int, list): the number of the line and its columns.
    """
    for line, text in read_lines(path):
        if keep_blank or text.strip():
            yield line, text.rstrip("\r\n").split("\t")


def read_commas(path: Path, *, keep_blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Read comma-separated columns, quoted where need be (RFC 4180).

    keep_blank (bool): see read_table.
    YIELDS (int, list): the number of the line where the record starts, and its columns.
    RAISES (ValueError): for quotes that do not match, or a column longer than 16 MiB.
    """
    for line, columns in comma_separated((text for _, text in read_lines(path)), path):
        if keep_blank or any(column.strip() for column in columns):
            yield line, columns or [""]


def read_objects(path: Path, *, keep_blank: bool = False) -> Iterator[tuple[int, dict[str, object]]]:
    """Read a JSON object a line.

    keep_blank (bool): see read_table.
    YIELDS (int, dict): the number of the line and its object.
    RAISES (ValueError): for a line that is not one.
    """
    for line, text in read_lines(path):
        if not keep_blank and not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=error)) from error
        if not isinstance(record, dict):
            raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=f"a {type(record).__name__}"))
        yield line, record


def get_field(record: dict[str, object], name: str, path: Path, line: int) -> object:
    """A field of an object. RAISES (ValueError): if there is none of that name."""
    if name not in record:
        raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, column=name, given=", ".join(record)))
    return record[name]


def find_columns(header: Sequence[str], names: Iterable[str], path: Path, line: int) -> list[int]:
    """Where the columns of these names stand. RAISES (ValueError): if the header does not have all of them."""
    header = [name.strip() for name in header]
    for name in names:
        if name not in header:
            raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, column=name, given=", ".join(header)))
    return [header.index(name) for name in names]


def pick(record: Sequence[str], columns: Sequence[int], names: Sequence[str], path: Path, line: int) -> list[str]:
    """The columns of a record that stand in these places. RAISES (ValueError): if the record is too short."""
    for column, name in zip(columns, names, strict=True):
        if column >= len(record):
            raise ValueError(Errors.SHORT_LINE.format(path=path, line=line, column=name, given=len(record)))
    return [record[column] for column in columns]


def by_name(
    records: Iterator[tuple[int, list[str]]], names: Sequence[str], path: Path, *, header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Columns by the names in the first record, or without a header by number; see read_table."""
    if header:
        line, first = next(records, (0, names))
        places = find_columns(first, names, path, line)
    else:
        for name in names:
            if not name.isdecimal():
                raise ValueError(Errors.NOT_A_NUMBER.format(path=path, given=name))
        places = [int(name) for name in names]
    for line, record in records:
        yield line, pick(record, places, names, path, line)


def _read_parquet(path: Path, names: Sequence[str]) -> Iterator[Record]:
    line = 0
    with _parquet_file(path, lambda: line) as file:
        find_columns(file.schema_arrow.names, names, path, line)
        for batch in file.iter_batches(batch_size=BATCH, columns=list(names)):
            values = [batch.column(name).to_pylist() for name in names]
            for record in zip(*values, strict=True):
                line += 1
                yield line, record


@contextmanager
def _parquet_file(path: Path, line: Callable[[], int] = lambda: 0) -> "Iterator[ParquetFile]":
    """A .parquet file, opened. line (Callable): how many rows were read, for errors."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(Errors.NO_PYARROW.format(path=path)) from error
    check_input(path)
    try:
        with ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise ValueError(Errors.BAD_PARQUET.format(path=path, line=line() + 1, reason=error)) from error
