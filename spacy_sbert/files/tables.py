"""Read tables of any supported format, row by row."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from ..errors import Errors
from .atomic import atomic_write, check_input
from .delimited import DELIMITED, NO_COLUMN, by_name, find_columns, read_delimited, without_blank_end
from .text_lines import check_encoding, check_texts, format_suffix, inner_suffix, is_gzip, read_lines, read_text

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_Object = dict[str, object]
_SPACE = re.compile(r"[ \t\r\n]*")


def _fields(pairs: list[tuple[str, object]]) -> _Object:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field '{repeated}' twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_fields)


def read_objects(path: Path, *, keep_blank: bool = False) -> Iterator[tuple[int, _Object]]:
    """Read a JSON object a line, or of .json the objects of one array, which is held in memory.

    keep_blank (bool): see tables.read_table.
    YIELDS (int, dict): the number of the line where an object starts, and the object.
    RAISES (ValueError): for a line that is not one, or an object with two fields of one name.
    """
    if inner_suffix(path) == ".json" and read_text(path, 1024).lstrip().startswith("["):
        yield from _read_array(path)
        return
    blank: tuple[int, str] | None = None  # the first blank line, which is none at the end of the file
    for number, found in read_lines(path):
        if not found.strip():
            blank = blank or (number, found)
            continue
        line, text = blank if keep_blank and blank else (number, found)
        try:
            record = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise _bad_json(path, line, error, is_array=text.lstrip().startswith("[")) from error
        yield line, _object(record, path, line)


def _read_array(path: Path) -> Iterator[tuple[int, _Object]]:
    text = read_text(path)
    line, counted, place = 1, 0, text.index("[") + 1  # counted: the end of what line counts
    while True:
        place = _end_of_space(text, place)
        line, counted = line + text.count("\n", counted, place), place
        if text[place : place + 1] == "]":
            break
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise _bad_json(path, line, error) from error
        yield line, _object(value, path, line)
        place = _end_of_space(text, place)
        following = text[place : place + 1]
        if following not in (",", "]"):
            line += text.count("\n", counted, place)
            raise _bad_json(path, line, f"{repr(following) if following else 'the end of the file'} in an array")
        place += following == ","
    if rest := text[place + 1 :].strip():
        raise _bad_json(path, line, f"{rest[:1]!r} behind an array")


def _end_of_space(text: str, place: int) -> int:
    return cast(re.Match[str], _SPACE.match(text, place)).end()


def _bad_json(path: Path, line: int, reason: object, *, is_array: bool = False) -> ValueError:
    hint = "; a file of one JSON array needs a name that ends in .json" if is_array else ""
    reason = reason.msg if isinstance(reason, json.JSONDecodeError) else reason
    return ValueError(f"{path}, line {line}: expected a JSON object, got {reason}. Repair the line{hint}.")


def get_field(record: _Object, name: str, path: Path, line: int) -> object:
    """Return a field of an object. RAISES (ValueError): if there is none of that name."""
    if name not in record:
        given = ", ".join(record)
        raise ValueError(NO_COLUMN.format(path=path, line=line, column=name, given=given, hint=""))
    return record[name]


def _object(value: object, path: Path, line: int) -> _Object:
    if not isinstance(value, dict):
        raise _bad_json(path, line, f"a {type(value).__name__}", is_array=isinstance(value, list))
    return value


_QUOTED = frozenset('\t\r\n"')


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write rows as .tsv, the names first, or as .jsonl, whole or not at all.

    A text with a tab, a line end or a quote is quoted in .tsv, as csv writes it. None is empty there.

    RAISES (ValueError): if the name of the file ends otherwise.
    """
    check_name(path)
    with atomic_write(path) as file:
        if path.suffix == ".tsv":
            file.write(("\t".join(map(_cell, names)) + "\n").encode("utf8"))
        for row in rows:
            if path.suffix == ".jsonl":
                line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
            else:
                line = "\t".join(map(_cell, row))
            file.write((line + "\n").encode("utf8"))


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
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED & set(text) else text


TABLES = (".csv", ".jsonl", ".parquet", ".tsv")
_BATCH = 1024  # records of a .parquet file that are in memory at once
Record = tuple[int, Sequence[object]]  # the line, and the columns asked for


def read_table(
    path: Path, names: Sequence[str], *, header: bool = True, keep_blank: bool = False, optional: Sequence[str] = ()
) -> Iterator[Record]:
    """Read columns of a table.

    path (Path): .csv, .tsv (or .tab), .txt, .jsonl (or .json, .ndjson), each of them .gz or not, or .parquet. See
        delimited.py for separators and quotes.
    names (Sequence[str]): of the columns or fields. header (bool): whether .csv, .tsv and .txt have one; if not,
        columns are named "0", "1", ...
    keep_blank (bool): whether a blank line is a record of one empty column, and in .jsonl an error; otherwise it is
        passed over, as those at the end of the file, unless it has one column.
    optional (Sequence[str]): those of the names that objects in .jsonl may leave out; their value is None then.
    YIELDS (int, Sequence): the line where a record starts, in .parquet its number, from 1; and its columns, by names.
    RAISES (ValueError): for an unknown suffix, a missing or repeated column, a record with more or fewer columns than
        the first, or what is not such a file; (ImportError): for .parquet without pyarrow.
    """
    suffix = format_suffix(path)
    if suffix == ".parquet":
        return _read_parquet(path, names)
    if suffix == ".jsonl":
        return (
            (line, [found.get(name) if name in optional else get_field(found, name, path, line) for name in names])
            for line, found in read_objects(path, keep_blank=keep_blank)
        )
    _check_delimited(path)
    return by_name(read_delimited(path, header=header, keep_blank=keep_blank), names, path, header=header)


def column_names(path: Path, *, header: bool = True) -> list[str]:
    """Return the names of a table's columns, of .jsonl the fields of the first object; see read_table.

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


def _check_delimited(path: Path) -> None:
    if format_suffix(path) not in DELIMITED:
        raise ValueError(
            f"Cannot read {path} as a table: expected a name that ends in one of {', '.join(TABLES)}, all but "
            ".parquet also .gz."
        )


def _read_parquet(path: Path, names: Sequence[str]) -> Iterator[Record]:
    line = 0
    with _parquet_file(path, lambda: line) as file:
        find_columns(file.schema_arrow.names, names, path, line)
        for batch in file.iter_batches(batch_size=_BATCH, columns=list(names)):
            values = [batch.column(name).to_pylist() for name in names]
            for record in zip(*values, strict=True):
                line += 1
                yield line, record


@contextmanager
def _parquet_file(path: Path, line: Callable[[], int] = lambda: 0) -> "Iterator[ParquetFile]":
    """Open a .parquet file. line (Callable): how many rows were read, for errors."""
    try:
        from pyarrow import ArrowException  # noqa: PLC0415 (optional)
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise ImportError(f"Reading {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'.") from error
    check_input(path)
    try:
        with ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise ValueError(
            f"{path}, record {line() + 1}: cannot be read as .parquet ({error}). Write the file again."
        ) from error


Columns = dict[str, object]  # a row of a table


def read_columns(path: Path, *, header: bool = True) -> Iterator[Columns]:
    """Read every row of a table with all its columns, in the order of read_text_rows.

    path (Path), header (bool): see read_table.
    YIELDS (dict): the values by name; a blank line of .csv or .tsv has one, and those at the end are left out.
    RAISES (ValueError): as read_table.
    """
    suffix = format_suffix(path)
    if suffix == ".jsonl":
        yield from (record for _, record in read_objects(path, keep_blank=True))
        return
    names = distinct(column_names(path, header=header))
    if suffix == ".parquet":
        yield from (dict(zip(names, record, strict=True)) for _, record in read_table(path, names))
        return
    records = read_delimited(path, header=header, keep_blank=True)
    if header:
        next(records, None)
    for _, record in without_blank_end(records) if len(names) > 1 else records:
        yield dict(zip(names, record, strict=False))


def distinct(names: list[str], taken: tuple[str, ...] = ()) -> list[str]:
    """Return the names, with _2, _3 and so on behind those that come again, or are taken."""
    found = list(taken)
    for name in names:
        other, number = name, 1
        while other in found:
            number += 1
            other = f"{name}_{number}"
        found.append(other)
    return found[len(taken) :]


TEXT = ".txt"
_INT64 = range(-(2**63), 2**63)


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
        raise ValueError(
            f"Cannot read texts from {path}: expected a name that ends in one of {', '.join((*TABLES, TEXT))}, "
            "all but .parquet also .gz."
        )
    if suffix == TEXT:
        if columns.id is not None:
            raise ValueError(
                f"{path} has no column '{columns.id}': a .txt file has a text a line, and no ids. Leave "
                "--id-column out."
            )
        return (TextRow(text.rstrip("\r\n"), None) for _, text in read_lines(path))
    names = [columns.text] if columns.id is None else [columns.text, columns.id]
    records = read_table(path, names, header=columns.header, keep_blank=True)
    return (_row(record, columns, path) for record in records)


def _row(record: Record, columns: TextColumns, path: Path) -> TextRow:
    line, (text, *rest) = record
    if not isinstance(text, str):
        raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=columns.text, given=text))
    check_encoding(text, path, line)
    name = rest[0] if rest else ""
    if not isinstance(name, str) and (isinstance(name, bool) or not isinstance(name, int) or name not in _INT64):
        raise ValueError(
            f"{path}, line {line}: expected a string or a whole number of 64 bits in the column "
            f"'{columns.id}', got {name!r}. Repair the line, or leave --id-column out."
        )
    return TextRow(text, name if rest else None)
