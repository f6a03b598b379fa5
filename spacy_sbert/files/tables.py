"""Read tables of any supported format, row by row, and the texts in them; write tables.

The separator of .tsv and .txt is a tab, and of UTF-16. In .csv it is a tab if the first line has
one, otherwise the one of comma, semicolon and pipe that is most often in the first line, outside of
quotes; a pipe if it is as often as others. A first line such as `sep=;`, as Excel writes it,
decides. Columns are quoted as in RFC 4180; between tabs only if all quotes of the file are those of
columns.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Errors, import_extra
from ..validation import short_repr
from . import text_lines
from .atomic import atomic_write, check_input

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

SHORT_LINE = (
    "{path}, line {line}: no column '{column}', the line has only {given} columns. Repair or "
    "remove the line."
)
DELIMITED = (".csv", ".tsv", ".txt")
TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
TEXT = ".txt"
# A row of a table
Columns = dict[str, object]
# The line, and the columns asked for
Record = tuple[int, Sequence[object]]
Records = Iterator[tuple[int, list[str]]]
# Records of a .parquet file that are in memory at once
_BATCH = 1024
_INT64 = range(-(2**63), 2**63)
_TAB = "\t"
_SEPARATORS = {",": "comma", ";": "semicolon", "|": "pipe", _TAB: "tab"}
_DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
# Below the header of a table in Markdown
_RULE = re.compile(r"[|+:\s-]*-[|+:\s-]*")
_QUOTED = r'"(?:[^"]++|"")*+"'
_CELL = rf'(?:{_QUOTED}|[^"\t]*+)'
_RECORD = re.compile(rf"{_CELL}(?:\t{_CELL})*+")
_CELLS = re.compile(rf"(?:^|\t)({_CELL})")
# As Spark and R's write.table escape quotes
_ESCAPED = re.compile(r'(?:^|\t)"[^\t]*\\"[^\t]*"(?:\t|$)')


def read_delimited(
    path: Path,
    *,
    header: bool = True,
    keep_blank: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf8",
) -> Records:
    """Read the records of a table.

    header (bool), keep_blank (bool): see read_table. encoding (str): see read_lines.
    delimiter (str): a tab for columns that are not quoted, as the official layouts of many data
        sets have them; a comma for those that are quoted where need be; None to find it.
    YIELDS (int, list): the number of the line where a record starts, and its columns.
    RAISES (ValueError): if quotes between tabs can be read in two ways, if they do not match, for a
        table in Markdown, a NUL character, a column longer than 16 MiB, or what is not text.
    """
    start, is_quoted, skip_spaces = 0, delimiter == ",", False
    if delimiter is None:
        delimiter, start, is_quoted, skip_spaces = _find_dialect(path, header=header)
    lines = _lines(path, start, encoding)
    if is_quoted:
        records = _parse_records(lines, path, delimiter, start, skip_spaces)
    else:
        records = (
            (line, text.rstrip("\r\n").split(delimiter))
            for line, text in enumerate(lines, start + 1)
        )
    return _with_blank(records, header=header) if keep_blank else _without_blank(records)


def _without_blank(records: Records) -> Records:
    return (
        (line, columns) for line, columns in records if any(column.strip() for column in columns)
    )


def _with_blank(records: Records, *, header: bool) -> Records:
    """Leave out blank lines.

    In a table of one column they are records, but for those before the header.
    """
    width = 0
    before_first: list[tuple[int, list[str]]] = []
    for line, columns in records:
        is_blank_line = len(columns) == 1 and not columns[0].strip()
        if not width and is_blank_line:
            before_first.append((line, columns))
            continue
        if not width:
            width = len(columns)
            if width == 1 and not header:
                yield from before_first
        if width == 1 or not is_blank_line:
            yield line, columns


def by_name(records: Records, names: Sequence[str], path: Path, *, header: bool = True) -> Records:
    """Read columns by the names in the first record, or without a header by number.

    See read_table.
    """
    for name in () if header else names:
        if not name.isdecimal():
            raise ValueError(
                f"{path} is read without a header, but a column was named '{name}': expected a "
                "number counted from 0, "
                "such as --column 1. To go by names, omit --no-header, or set header = true."
            )
    line, first = next(records, (1, []))
    if not first:
        return
    if header:
        hint = "; a table without a header needs --no-header, or header = false"
        places = find_columns(first, names, path, line, hint=hint)
    else:
        places = [int(name) for name in names]
        records = chain([(line, first)], records)
    for line, record in records:
        if header and (
            record == first or [name.lstrip(text_lines.BOM) for name in record] == first
        ):
            raise ValueError(
                f"{path}, line {line}: the header comes again. Remove the line, or rename the "
                "columns in the header."
            )
        yield line, pick(record, places, names, path, line, width=len(first))


def find_columns(
    header: Sequence[str], names: Iterable[str], path: Path, line: int, *, hint: str = ""
) -> list[int]:
    """Return the places of columns in a header.

    RAISES (ValueError): for a missing name, with the hint, or a double.
    """
    header = [name.strip() for name in header]
    for name in names:
        if name not in header:
            given = ", ".join(header)
            raise ValueError(
                text_lines.NO_COLUMN.format(
                    path=path, line=line, column=name, given=given, hint=hint
                )
            )
        if header.count(name) > 1:
            raise ValueError(
                f"{path}, line {line}: two columns are named '{name}'. Rename one of them."
            )
    return [header.index(name) for name in names]


def pick(
    record: Sequence[str],
    columns: Sequence[int],
    names: Sequence[str],
    path: Path,
    line: int,
    *,
    width: int = 0,
) -> list[str]:
    """Return some columns of a record.

    RAISES (ValueError): if it has not all, or not `width`: they may be shifted.
    """
    for column, name in zip(columns, names, strict=True):
        if column >= len(record):
            raise ValueError(
                SHORT_LINE.format(path=path, line=line, column=name, given=len(record))
            )
    if width and len(record) != width:
        raise ValueError(
            f"{path}, line {line}: {len(record)} columns, but the first line has {width}. Quote a "
            "text that has the "
            "separator or a line end in it, or repair the line; another separator is named by a "
            "first line like sep=;"
        )
    return [record[column] for column in columns]


def _parse_records(
    lines: Iterable[str], path: Path, delimiter: str, start: int, skip_spaces: bool
) -> Records:
    """Yield records, quoted as in RFC 4180, with the lines where they start.

    A blank line has one empty column.
    """
    records = csv.reader(lines, strict=True, delimiter=delimiter, skipinitialspace=skip_spaces)
    while True:
        line = start + records.line_num + 1
        # A setting of all readers of the process: it is put back
        limit = csv.field_size_limit(text_lines.MAX_LINE)
        try:
            columns = next(records, None)
        except csv.Error as error:
            kind = _SEPARATORS.get(delimiter, repr(delimiter))
            raise ValueError(
                f"{path}, line {line}: not {kind}-separated as expected ({error}). Check its "
                "quotes, or write .jsonl."
            ) from error
        finally:
            csv.field_size_limit(limit)
        if columns is None:
            return
        yield line, columns or [""]


def _lines(path: Path, start: int, encoding: str) -> Iterator[str]:
    for line, text in islice(text_lines.read_lines(path, encoding), start, None):
        if "\0" in text:
            raise ValueError(
                f"{path}, line {line}: has a NUL character. Save the file as UTF-8 again."
            )
        yield text


def _find_dialect(path: Path, *, header: bool) -> tuple[str, int, bool, bool]:
    """Return the separator, how many lines are before the header, whether columns may be quoted, and spaces skipped."""
    filled = ((line, text) for line, text in text_lines.read_lines(path) if text.strip())
    (line, first), (_, second) = next(filled, (1, "")), next(filled, (2, ""))
    directive = _DIRECTIVE.fullmatch(first)
    if directive is not None:
        return directive[1], line, True, False
    bare = re.sub(rf'{_QUOTED}|"[^"]*$', "", first)
    delimiter = _TAB
    if (
        text_lines.format_suffix(path) == ".csv"
        and _TAB not in bare
        and not text_lines.is_wide(path)
    ):
        delimiter = max(",;|", key=lambda mark: (bare.count(mark), mark == "|" and mark in bare))
    if delimiter == _TAB:
        return _TAB, 0, _is_quoted(path, header=header), False
    if delimiter == "|" and _RULE.fullmatch(second):
        raise ValueError(
            f"{path}, line {line}: a table in Markdown. Save it as .csv, .tsv or .jsonl."
        )
    return delimiter, 0, True, header and f"{delimiter} " in bare


def _is_quoted(path: Path, *, header: bool) -> bool:
    """Return whether quotes between tabs are those of columns; otherwise they belong to the texts.

    They are if all of them fit, and a quote inside of a column is doubled, or the whole header is
    quoted, or columns without quoting would differ in number, or the file is UTF-16 as spreadsheets
    write it.
    """
    # wrapped: the first line of a column in quotes that need not have them
    is_sure, wrapped = (
        False,
        0,
    )
    for line, record in _records_with_quotes(path):
        if not _RECORD.fullmatch(record):
            if is_sure or _ESCAPED.search(record):
                raise _doubt(path, line)
            return False
        cells = [match[1] for match in _CELLS.finditer(record)]
        is_sure |= line == 1 and header and all(cell.startswith('"') for cell in cells if cell)
        is_sure |= any('""' in cell[1:-1] for cell in cells)
        if not wrapped and any(len(cell) > 2 and cell.startswith('"') for cell in cells):
            wrapped = line
    if not wrapped or is_sure or text_lines.is_wide(path):
        return True
    if len({text.count(_TAB) for _, text in text_lines.read_lines(path) if text.strip()}) == 1:
        raise _doubt(path, wrapped)
    return True


def _records_with_quotes(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines with quotes, each with those that follow until all quotes are closed."""
    first, parts, n_quotes, size = 0, list[str](), 0, 0
    for line, text in text_lines.read_lines(path):
        if parts or '"' in text:
            first = first if parts else line
            parts.append(text)
            n_quotes, size = n_quotes + text.count('"'), size + len(text)
            if n_quotes % 2 == 0 or size >= text_lines.MAX_LINE:
                yield first, "".join(parts).rstrip("\r\n")
                parts, n_quotes, size = [], 0, 0
    if parts:
        yield first, "".join(parts).rstrip("\r\n")


def _doubt(path: Path, line: int) -> ValueError:
    return ValueError(
        f"{path}, line {line}: cannot tell whether the quotes are part of the text. Double those "
        "inside of quoted "
        "columns, without backslashes, or write the table as .csv or .jsonl."
    )


def read_table(
    path: Path,
    names: Sequence[str],
    *,
    header: bool = True,
    keep_blank: bool = False,
    optional: Sequence[str] = (),
) -> Iterator[Record]:
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
        return (
            (
                line,
                [
                    found.get(name)
                    if name in optional
                    else text_lines.get_field(found, name, path, line)
                    for name in names
                ],
            )
            for line, found in text_lines.read_objects(path)
        )
    _check_delimited(path)
    return by_name(
        read_delimited(path, header=header, keep_blank=keep_blank), names, path, header=header
    )


def column_names(path: Path, *, header: bool = True) -> list[str]:
    """Return the names of a table's columns, of .jsonl the fields of the first object.

    errors: see read_table.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".parquet":
        with _parquet_file(path) as file:
            return [name.strip() for name in file.schema_arrow.names]
    if suffix == ".jsonl":
        return list(next(text_lines.read_objects(path), (0, {}))[1])
    _check_delimited(path)
    _, first = next(read_delimited(path, header=header), (0, []))
    return (
        [name.strip() for name in first] if header else [str(place) for place in range(len(first))]
    )


def _check_delimited(path: Path) -> None:
    if text_lines.format_suffix(path) not in DELIMITED:
        known = f"{', '.join(TABLES)}, all but .parquet also .gz"
        raise ValueError(
            f"Cannot read {path} as a table: expected a name that ends in one of {known}."
        )


def _read_parquet(path: Path, names: Sequence[str]) -> Iterator[Record]:
    line = 0
    with _parquet_file(path, lambda: line) as file:
        own_names = file.schema_arrow.names
        found = [own_names[place] for place in find_columns(own_names, names, path, line)]
        for batch in file.iter_batches(batch_size=_BATCH, columns=found):
            values = [batch.column(name).to_pylist() for name in found]
            for record in zip(*values, strict=True):
                line += 1
                yield line, record


def read_nameless(path: Path) -> tuple[list[str], Iterator[Sequence[object]]]:
    """Read the columns whose name is blank, of a table with a header.

    RETURNS (list[str], Iterator[Sequence]): what to call each in messages, and their cells, row by
        row; of .csv and .tsv first those of the header, which are blank.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".jsonl":
        fields = list(
            dict.fromkeys(name for _, record in text_lines.read_objects(path) for name in record)
        )
        blank = [name for name in fields if not name.strip()]
        cells = (
            [record.get(name) for name in blank] for _, record in text_lines.read_objects(path)
        )
        return [f"the field {name!r}" for name in blank], cells
    places = [place for place, name in enumerate(column_names(path)) if not name]
    labels = [f"column {place + 1}" for place in places]
    if suffix == ".parquet":
        return labels, _parquet_cells(path, places)
    rows = read_table(path, list(map(str, places)), header=False) if places else iter(())
    return labels, (record for _, record in rows)


def _parquet_cells(path: Path, places: Sequence[int]) -> Iterator[Sequence[object]]:
    with _parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH) if places else ():
            yield from zip(*(batch.column(place).to_pylist() for place in places), strict=True)


@contextmanager
def _parquet_file(path: Path, line: Callable[[], int] = lambda: 0) -> "Iterator[ParquetFile]":
    """Open a .parquet file. line (Callable): how many rows were read, for errors."""
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


def read_columns(path: Path, *, header: bool = True) -> Iterator[Columns]:
    """Read every row of a table with all its columns, in the order of read_text_rows.

    See read_table.

    YIELDS (dict): the values by name.
    """
    suffix = text_lines.format_suffix(path)
    if suffix == ".jsonl":
        yield from (record for _, record in text_lines.read_objects(path))
        return
    names = distinct(column_names(path, header=header))
    if suffix == ".parquet":
        yield from (dict(zip(names, record, strict=True)) for _, record in read_table(path, names))
        return
    places = range(len(names))
    for line, record in islice(
        read_delimited(path, header=header, keep_blank=True), int(header), None
    ):
        if len(record) != len(names):
            # Raises an error
            record = pick(record, places, names, path, line, width=len(names))
        yield dict(zip(names, record, strict=True))


def distinct(names: list[str], taken: tuple[str, ...] = ()) -> list[str]:
    """Return the names, with _2, _3 and so on behind those that come again, or are taken."""
    found = list(taken)
    for name in names:
        others = chain([name], (f"{name}_{number}" for number in count(2)))
        found.append(next(other for other in others if other not in found))
    return found[len(taken) :]


class _TextRow(NamedTuple):
    """A row of a file: its text, and its id if a column is named for it."""

    text: str
    id: str | int | None


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a table are read.

    text: that of the text. id: that of the row's name, None for none. header: whether the first
        line of .csv and .tsv
    names the columns; without one they are named "0", "1", ...
    """

    text: str = "text"
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
    if suffix not in (*TABLES, TEXT):
        known = f"{', '.join((*TABLES, TEXT))}, all but .parquet also .gz"
        raise ValueError(
            f"Cannot read texts from {path}: expected a name that ends in one of {known}."
        )
    if suffix == TEXT:
        if columns.id is not None:
            raise ValueError(
                f"{path} has no column '{columns.id}': a .txt file has a text a line. Omit "
                "--id-column."
            )
        return (_TextRow(text.rstrip("\r\n"), None) for _, text in text_lines.read_lines(path))
    names = [columns.text] if columns.id is None else [columns.text, columns.id]
    records = read_table(path, names, header=columns.header, keep_blank=True)
    return (_row(record, columns, path) for record in records)


def _row(record: Record, columns: TextColumns, path: Path) -> _TextRow:
    line, (text, *rest) = record
    if not isinstance(text, str):
        raise ValueError(
            Errors.NOT_A_TEXT.format(
                path=path, line=line, column=columns.text, given=short_repr(text)
            )
        )
    text_lines.check_encoding(text, path, line)
    name = rest[0] if rest else ""
    if not isinstance(name, str) and (
        isinstance(name, bool) or not isinstance(name, int) or name not in _INT64
    ):
        expected = f"a string or a whole number of 64 bits in the column '{columns.id}'"
        raise ValueError(
            f"{path}, line {line}: expected {expected}, got {name!r}. Repair the line."
        )
    return _TextRow(text, name if rest else None)


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write rows as .tsv, the names first, or as .jsonl, whole or not at all.

    A text with a tab, a line end or a quote is quoted in .tsv, as csv writes it. None is empty
    there.

    RAISES (ValueError): if the name of the file ends otherwise.
    """
    check_name(path)
    if path.suffix == ".tsv":
        lines = ("\t".join(map(_cell, row)) for row in (names, *rows))
    else:
        records = (dict(zip(names, row, strict=True)) for row in rows)
        lines = (json.dumps(record, ensure_ascii=False, default=str) for record in records)
    with atomic_write(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def check_name(path: Path) -> None:
    """Refuse the name of a file that does not end in .tsv or .jsonl."""
    if path.suffix not in (".tsv", ".jsonl"):
        raise ValueError(f"Cannot write to {path}: expected a name that ends in .tsv or .jsonl.")


def _cell(value: object) -> str:
    """Return a value as a column of .tsv."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    text = (
        json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, dict | list)
        else str(value)
    )
    return '"' + text.replace('"', '""') + '"' if re.search('[\t\r\n"]', text) else text
