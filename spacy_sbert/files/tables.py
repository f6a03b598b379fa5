"""Tables, read by the names of their columns a record at a time: .csv, .jsonl, .parquet and .tsv."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .delimited import DELIMITED, by_name, check_width, find_columns, pick, read_commas, read_delimited, read_tabs
from .errors import Errors
from .lines import format_suffix
from .objects import Object, get_field, read_objects
from .regular import check_input

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

__all__ = [
    "TABLES",
    "by_name",
    "check_width",
    "column_names",
    "find_columns",
    "get_field",
    "pick",
    "read_commas",
    "read_objects",
    "read_table",
    "read_tabs",
]

TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
BATCH = 1024  # records of a .parquet file that are in memory at once
Record = tuple[int, Sequence[object]]  # the line, and the columns asked for


def read_table(
    path: Path, names: Sequence[str], *, header: bool = True, keep_blank: bool = False, optional: Sequence[str] = ()
) -> Iterator[Record]:
    """Read columns of a table.

    path (Path): .csv, .tsv (or .tab), .txt, .jsonl (or .json, .ndjson), each of them .gz or not, or .parquet. See
        find_dialect for separators and quotes.
    names (Sequence[str]): of the columns or fields. header (bool): whether .csv, .tsv and .txt have one; if not,
        columns are named "0", "1", ...
    keep_blank (bool): whether a blank line is a record of one empty column, and in .jsonl an error; otherwise it is
        passed over, as those at the end of the file, unless it has one column.
    optional (Sequence[str]): those of the names that objects in .jsonl may leave out, but not all of them.
    YIELDS (int, Sequence): the line where a record starts, in .parquet its number, from 1; and its columns, by names.
    RAISES (ValueError): for an unknown suffix, a missing or repeated column, a record with more or fewer columns than
        the first, or what is not such a file; (ImportError): for .parquet without pyarrow.
    """
    suffix = format_suffix(path)
    if suffix == ".parquet":
        return _read_parquet(path, names)
    if suffix == ".jsonl":
        return _read_fields(path, names, optional, keep_blank=keep_blank)
    _check_delimited(path)
    return by_name(read_delimited(path, header=header, keep_blank=keep_blank), names, path, header=header)


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
    _check_delimited(path)
    _, first = next(read_delimited(path, header=header), (0, []))
    return [name.strip() for name in first] if header else [str(place) for place in range(len(first))]


def _read_fields(path: Path, names: Sequence[str], optional: Sequence[str], *, keep_blank: bool) -> Iterator[Record]:
    """Yield fields of objects; None for an optional one that an object leaves out."""
    unseen, first = {*optional}, list[tuple[int, Object]]()
    for line, record in read_objects(path, keep_blank=keep_blank):
        first = first or [(line, record)]
        unseen -= record.keys()
        yield line, [record.get(name) if name in optional else get_field(record, name, path, line) for name in names]
    for line, record in first if unseen else ():
        get_field(record, sorted(unseen)[0], path, line)  # raises


def _check_delimited(path: Path) -> None:
    if format_suffix(path) not in DELIMITED:
        raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))


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
