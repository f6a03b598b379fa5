"""Tables whose columns the config names: .jsonl, .csv, .tsv and .parquet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files.lines import (
    Row,
    check_members,
    check_score,
    check_text,
    find_columns,
    format_suffix,
    pick,
    read_commas,
    read_tabs,
)
from ..files.regular import check_input
from .errors import Errors
from .nli import get_field, read_objects

BATCH = 1024  # records of a .parquet file that are in memory at once
TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
Record = tuple[int, Sequence[Any]]  # the line, and the columns in the order of Columns.names


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what.

    members: the columns of the texts, in order.
    score, label: the columns of gold, None where there is none.
    min_score, max_score: what is scaled to 0..1.
    header: whether the first line of .csv and .tsv names the columns; without one they are named "0", "1", ...
    """

    members: tuple[str, ...] = ()
    score: str | None = None
    label: str | None = None
    min_score: float = 0.0
    max_score: float = 1.0
    header: bool = True

    def __post_init__(self) -> None:
        if not self.min_score < self.max_score:  # also refuses nan
            raise ValueError(Errors.BAD_RANGE.format(low=self.min_score, high=self.max_score))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read: members, score, label."""
        return (*self.members, *(name for name in (self.score, self.label) if name is not None))


def table_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a table by the names of its columns.

    path (Path): .jsonl, .csv (quoted), .tsv (not quoted), each of them .gz or not, or .parquet.
    columns (Columns): which of its columns hold what.
    YIELDS (Row): as many members as there are columns for them, and gold where a column is named for it. In a .parquet
        file, line is the number of the record.
    RAISES (ValueError): for an unknown suffix, a missing column, an empty member or label, a score out of range, or a
        triplet with two equal members.
    RAISES (ImportError): for .parquet without pyarrow.
    """
    if not columns.members:
        raise ValueError(Errors.NO_MEMBER_COLUMNS.format(path=path))
    size = len(columns.members)
    for line, record in _read_records(path, columns):
        members = check_members(record[:size], columns.members, path, line)
        gold = list(record[size:])
        score = label = None
        if columns.score is not None:
            score = check_score(gold.pop(0), columns.min_score, columns.max_score, path, line, columns.score)
        if columns.label is not None:
            value = gold.pop(0)
            label = check_text(str(value) if isinstance(value, int) else value, columns.label, path, line)
        yield Row(members, line, score=score, label=label)


def _read_records(path: Path, columns: Columns) -> Iterator[Record]:
    suffix = format_suffix(path)
    if suffix == ".jsonl":
        return _read_jsonl(path, columns)
    if suffix in (".csv", ".tsv"):
        return _read_delimited(path, columns)
    if suffix == ".parquet":
        return parquet_records(path, list(columns.names))
    raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))


def _read_jsonl(path: Path, columns: Columns) -> Iterator[Record]:
    for line, record in read_objects(path):
        yield line, [get_field(record, name, path, line) for name in columns.names]


def _read_delimited(path: Path, columns: Columns) -> Iterator[Record]:
    records = read_commas(path) if format_suffix(path) == ".csv" else read_tabs(path)
    names = columns.names
    if columns.header:
        for line, header in records:
            places = find_columns(header, names, path, line)
            break
    else:
        for name in names:
            if not name.isdecimal():
                raise ValueError(Errors.NOT_A_NUMBER.format(path=path, given=name))
        places = [int(name) for name in names]
    for line, record in records:
        yield line, pick(record, places, names, path, line)


def parquet_records(path: Path, names: Sequence[str]) -> Iterator[Record]:
    """Read columns of a .parquet file; records are counted from 1, as lines are elsewhere.

    RAISES (ValueError): for a missing column or a damaged file; (ImportError): without pyarrow.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(Errors.NO_PYARROW.format(path=path)) from error
    check_input(path)
    line = 0
    try:
        with ParquetFile(path, page_checksum_verification=True) as file:
            find_columns(file.schema_arrow.names, names, path, line)
            for batch in file.iter_batches(batch_size=BATCH, columns=list(names)):
                values = [batch.column(name).to_pylist() for name in names]
                for record in zip(*values, strict=True):
                    line += 1
                    yield line, record
    except (ArrowException, OSError) as error:
        raise ValueError(Errors.BAD_PARQUET.format(path=path, line=line + 1, reason=error)) from error
