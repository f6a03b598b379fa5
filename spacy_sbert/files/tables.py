"""Read tables of any supported format, record by record, and the texts in them; write tables."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import import_extra
from . import text_lines
from .atomic import atomic_write, check_input
from .delimited import by_name, find_columns, pick, read_delimited

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

DELIMITED = (".csv", ".tsv", ".txt")
TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
TEXT_SUFFIX = ".txt"
# The column of the texts, if no other is named
COLUMN = "text"
# The values of a record by the names of their columns
NamedRecord = dict[str, object]
# The line of a record, and the columns asked for
_Record = tuple[int, Sequence[object]]
# Records of a .parquet file that are in memory at once
_BATCH = 1024
_INT64 = range(-(2**63), 2**63)


def read_table(
    path: Path,
    names: Sequence[str],
    *,
    header: bool = True,
    keep_blank: bool = False,
    optional: Sequence[str] = (),
) -> Iterator[_Record]:
    """Read columns of a table.

    path (Path): .csv, .tsv (or .tab), .txt, .jsonl (or .json, .ndjson), each of them .gz or not, or
        .parquet.
    names (Sequence[str]): of the columns or fields. header (bool): whether .csv, .tsv and .txt have
        one; if not, columns are named "0", "1", ...
    keep_blank (bool): whether records of empty columns are kept. A blank line is none, and passed
        over; only in a table of one column it is.
    optional (Sequence[str]): those of the names that objects in .jsonl may leave out; their value
        is None then.
    YIELDS (int, Sequence): the line where a record starts, in .parquet and arrays of JSON its
        number, from 1; and its columns, by names.
    RAISES (ValueError): for an unknown suffix, a missing or repeated column, a record with more or
        fewer columns than the first, or what is not such a file; (ImportError): for .parquet
        without pyarrow.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".parquet":
        return _read_parquet(path, names)
    if suffix == ".jsonl":
        return _read_fields(path, names, optional)
    _check_delimited(path)
    records = read_delimited(path, header=header, keep_blank=keep_blank)
    return by_name(records, names, path, header=header)


def _read_fields(path: Path, names: Sequence[str], optional: Sequence[str]) -> Iterator[_Record]:
    def field(fields: NamedRecord, name: str, line: int) -> object:
        if name in optional:
            return fields.get(name)
        return text_lines.get_field(fields, name, path, line)

    for line, fields in text_lines.read_objects(path):
        yield line, [field(fields, name, line) for name in names]


def _read_parquet(path: Path, names: Sequence[str]) -> Iterator[_Record]:
    line = 0
    with _parquet_file(path, lambda: line) as file:
        own_names = file.schema_arrow.names
        found = [own_names[place] for place in find_columns(own_names, names, path, line)]
        for batch in file.iter_batches(batch_size=_BATCH, columns=found):
            values = [batch.column(name).to_pylist() for name in found]
            for record in zip(*values, strict=True):
                line += 1
                yield line, record


@contextmanager
def _parquet_file(path: Path, line: Callable[[], int] = lambda: 0) -> "Iterator[ParquetFile]":
    """Open a .parquet file. line (Callable): how many records were read, for errors."""
    pyarrow = import_extra("pyarrow", f"Reading {path} needs pyarrow", "parquet")
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (optional)

    check_input(path)
    try:
        with ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(
            f"{path}, record {line() + 1}: cannot be read as .parquet ({error}). Write the file "
            "again."
        ) from error


def column_names(path: Path, *, header: bool = True) -> list[str]:
    """Return the names of a table's columns, of .jsonl the fields of the first object.

    RAISES (ValueError, ImportError): as read_table.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".parquet":
        with _parquet_file(path) as file:
            return [name.strip() for name in file.schema_arrow.names]
    if suffix == ".jsonl":
        _, fields = next(text_lines.read_objects(path), (0, {}))
        return list(fields)
    _check_delimited(path)
    _, first = next(read_delimited(path, header=header), (0, []))
    if header:
        return [name.strip() for name in first]
    return [str(number) for number in range(len(first))]


def _check_delimited(path: Path) -> None:
    if text_lines.format_suffix(path) not in DELIMITED:
        known = f"{', '.join(TABLES)}, all but .parquet also .gz"
        raise ValueError(
            f"Cannot read {path} as a table: expected a name that ends in one of {known}."
        )


def field_names(path: Path) -> list[str]:
    """Return the fields of all objects of a .jsonl file, since the first may lack one."""
    names: dict[str, None] = {}
    for _, fields in text_lines.read_objects(path):
        names |= dict.fromkeys(fields)
    return list(names)


def read_nameless(path: Path) -> tuple[list[str], Iterator[Sequence[object]]]:
    """Read the columns whose name is blank, of a table with a header.

    RETURNS (list[str], Iterator[Sequence]): what to call each in messages, and their cells, record
        by record; of .csv and .tsv first those of the header, which are blank.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".jsonl":
        return _read_nameless_fields(path)
    numbers = [number for number, name in enumerate(column_names(path)) if not name]
    labels = [f"column {number + 1}" for number in numbers]
    if not numbers:
        return labels, iter(())
    if suffix == ".parquet":
        return labels, _parquet_cells(path, numbers)
    records = read_table(path, list(map(str, numbers)), header=False)
    return labels, (cells for _, cells in records)


def _read_nameless_fields(path: Path) -> tuple[list[str], Iterator[Sequence[object]]]:
    names = [name for name in field_names(path) if not name.strip()]
    labels = [f"the field {name!r}" for name in names]
    records = _read_fields(path, names, optional=names)
    return labels, (cells for _, cells in records)


def _parquet_cells(path: Path, numbers: Sequence[int]) -> Iterator[Sequence[object]]:
    with _parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            values = [batch.column(number).to_pylist() for number in numbers]
            yield from zip(*values, strict=True)


def read_columns(path: Path, *, header: bool = True) -> Iterator[NamedRecord]:
    """Read every record of a table with all its columns, in the order of read_text_rows.

    See read_table.

    YIELDS (dict): the values by name.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".jsonl":
        yield from (fields for _, fields in text_lines.read_objects(path))
        return
    names = distinct(column_names(path, header=header))
    if suffix == ".parquet":
        for _, record in read_table(path, names):
            yield dict(zip(names, record, strict=True))
        return
    numbers = range(len(names))
    records = read_delimited(path, header=header, keep_blank=True)
    for line, record in islice(records, int(header), None):
        record = pick(record, numbers, names, path, line, width=len(names))
        yield dict(zip(names, record, strict=True))


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names, with _2, _3 and so on behind those that come again, or are taken."""
    known = set(taken)
    found = []
    for name in names:
        new = name
        numbers = count(2)
        while new in known:
            new = f"{name}_{next(numbers)}"
        known.add(new)
        found.append(new)
    return found


class _TextRow(NamedTuple):
    """A text of a file, and its id if a column is named for it."""

    text: str
    id: str | int | None


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a table are read.

    text: the column of the text. id: the column of its id, None for none. header: whether the first
        line of .csv and .tsv names the columns; without one they are named "0", "1", ...
    """

    text: str = COLUMN
    id: str | None = None
    header: bool = True


def read_text_rows(path: Path, columns: TextColumns) -> Iterator[_TextRow]:
    """Read the texts of a file, as they stand in it.

    path (Path): .txt with a text a line, or a table, see read_table.
    columns (TextColumns): which of a table's columns are read.
    YIELDS (text, id): one for each row; a blank line of .txt and of a table of one column is a row
        too.
    RAISES (ValueError): for a name that tells no format, ids of .txt, or a bad row, with its line;
        (ImportError): for .parquet without pyarrow.
    """
    text_lines.check_texts(path)
    suffix = text_lines.format_suffix(path)
    if suffix not in (*TABLES, TEXT_SUFFIX):
        known = f"{', '.join((*TABLES, TEXT_SUFFIX))}, all but .parquet also .gz"
        raise ValueError(
            f"Cannot read texts from {path}: expected a name that ends in one of {known}."
        )
    if suffix == TEXT_SUFFIX:
        if columns.id is not None:
            raise ValueError(
                f"{path} has no column '{columns.id}': a .txt file has a text a line. Omit "
                "--id-column."
            )
        return (_TextRow(text.rstrip("\r\n"), None) for _, text in text_lines.read_lines(path))
    names = [columns.text]
    if columns.id is not None:
        names.append(columns.id)
    records = read_table(path, names, header=columns.header, keep_blank=True)
    return (_text_row(line, cells, columns, path) for line, cells in records)


def _text_row(line: int, cells: Sequence[object], columns: TextColumns, path: Path) -> _TextRow:
    value, *rest = cells
    text = text_lines.check_text(value, columns.text, path, line)
    if not rest:
        return _TextRow(text, None)
    return _TextRow(text, _checked_id(rest[0], columns, path, line))


def _checked_id(name: object, columns: TextColumns, path: Path, line: int) -> str | int:
    if isinstance(name, str):
        return name
    if isinstance(name, int) and not isinstance(name, bool) and name in _INT64:
        return name
    raise ValueError(
        f"{path}, line {line}: expected a string or a whole number of 64 bits in the column "
        f"'{columns.id}', got {name!r}. Repair the line."
    )


def read_texts(
    path: Path,
    *,
    column: str | None = None,
    label: str | None = None,
    limit: int = 0,
    header: bool = True,
) -> tuple[list[str], list[str] | None]:
    """Read texts without blank ones, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table, of which column and label are
        names.
    limit (int): how many to read, 0 for all. header (bool): see read_table.
    RAISES (ValueError): for a blank text or label of a table; and as read_table.
    """
    has_columns = not header or column is not None or label is not None
    if not has_columns and text_lines.format_suffix(path) not in TABLES:
        return list(islice(_filled_lines(path), limit or None)), None
    column = column or COLUMN
    names = [column]
    if label is not None:
        names.append(label)
    texts = []
    labels = []
    for line, cells in islice(read_table(path, names, header=header), limit or None):
        texts.append(text_lines.check_cell(cells[0], column, path, line))
        if label is not None:
            labels.append(text_lines.check_label(cells[1], label, path, line))
    if label is None:
        return texts, None
    return texts, labels


def _filled_lines(path: Path) -> Iterator[str]:
    for _, line in text_lines.read_lines(path):
        text = line.strip()
        if text:
            yield text


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write records as .tsv, the names first, or as .jsonl, whole or not at all.

    A text with a tab, a line end or a quote is quoted in .tsv, as csv writes it. None is empty
    there.

    RAISES (ValueError): if the name of the file ends otherwise.
    """
    check_table_name(path)
    if path.suffix == ".tsv":
        lines = ("\t".join(map(_cell, row)) for row in (names, *rows))
    else:
        records = (dict(zip(names, row, strict=True)) for row in rows)
        lines = (json.dumps(record, ensure_ascii=False, default=str) for record in records)
    with atomic_write(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def check_table_name(path: Path) -> None:
    """Refuse the name of a file that does not end in .tsv or .jsonl."""
    if path.suffix not in (".tsv", ".jsonl"):
        raise ValueError(f"Cannot write to {path}: expected a name that ends in .tsv or .jsonl.")


def _cell(value: object) -> str:
    """Return a value as a column of .tsv."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
    if re.search('[\t\r\n"]', text):
        return '"' + text.replace('"', '""') + '"'
    return text
