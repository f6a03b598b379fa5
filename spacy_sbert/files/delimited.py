"""Records of separated columns: .csv, .tsv and tables in .txt.

The separator of .tsv and .txt is a tab, and of UTF-16. In .csv it is a tab if the first line has one, otherwise the one
of comma, semicolon and pipe that is most often in the first line, outside of quotes; a pipe if it is as often as
others. A first line such as `sep=;`, as Excel writes it, decides. Columns are quoted as in RFC 4180; between tabs only
if all quotes of the file are those of columns.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from .text_lines import BOM, MAX_LINE, format_suffix, is_wide, read_lines

NO_COLUMN = "{path}, line {line}: expected a column '{column}', got {given}. Check the names and the format{hint}."

SHORT_LINE = "{path}, line {line}: no column '{column}', the line has only {given} columns. Repair or remove the line."

_TAB = "\t"
_SEPARATORS = {",": "comma", ";": "semicolon", "|": "pipe", _TAB: "tab"}
_DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_RULE = re.compile(r"[|+:\s-]*-[|+:\s-]*")  # below the header of a table in Markdown
_QUOTED = r'"(?:[^"]++|"")*+"'
_CELL = rf'(?:{_QUOTED}|[^"\t]*+)'
_RECORD = re.compile(rf"{_CELL}(?:\t{_CELL})*+")
_CELLS = re.compile(rf"(?:^|\t)({_CELL})")
_ESCAPED = re.compile(r'(?:^|\t)"[^\t]*\\"[^\t]*"(?:\t|$)')  # as Spark and R's write.table escape quotes
DELIMITED = (".csv", ".tsv", ".txt")
Records = Iterator[tuple[int, list[str]]]


def read_delimited(path: Path, *, header: bool = True, keep_blank: bool = False) -> Records:
    """Read the records of a table.

    header (bool), keep_blank (bool): see tables.read_table.
    YIELDS (int, list): the number of the line where a record starts, and its columns.
    RAISES (ValueError): if quotes between tabs can be read in two ways, if they do not match, for a table in Markdown,
        a NUL character, or what is not text.
    """
    delimiter, start, is_quoted, skip_spaces = _find_dialect(path, header=header)
    lines = _lines(path, start)
    if is_quoted:
        records = _parse_records(lines, path, delimiter, start, skip_spaces=skip_spaces)
    else:
        records = ((line, text.rstrip("\r\n").split(delimiter)) for line, text in enumerate(lines, start + 1))
    return _filled(records, keep_blank=keep_blank)


def read_tabs(path: Path, *, keep_blank: bool = False) -> Records:
    """Read tab-separated columns without quoting, as the official layouts of many data sets have them.

    keep_blank (bool): see tables.read_table.
    YIELDS (int, list): the number of the line and its columns.
    """
    records = ((line, text.rstrip("\r\n").split(_TAB)) for line, text in read_lines(path))
    return _filled(records, keep_blank=keep_blank)


def read_commas(path: Path, *, keep_blank: bool = False, encoding: str = "utf8") -> Records:
    """Read comma-separated columns, quoted where need be (RFC 4180).

    keep_blank (bool): see tables.read_table. encoding (str): see read_lines.
    YIELDS (int, list): the number of the line where the record starts, and its columns.
    RAISES (ValueError): for quotes that do not match, or a column longer than 16 MiB.
    """
    return _filled(_parse_records(_lines(path, encoding=encoding), path), keep_blank=keep_blank)


def by_name(records: Records, names: Sequence[str], path: Path, *, header: bool = True) -> Records:
    """Read columns by the names in the first record, or without a header by number, see tables.read_table.

    RAISES (ValueError): for a missing or repeated name, a record that has more or fewer columns than the first, or a
        second header.
    """
    for name in () if header else names:
        if not name.isdecimal():
            raise ValueError(
                f"{path} is read without a header, but a column was named '{name}': expected a number counted "
                'from 0, such as --column 1 or members = ["1", "2"]. To go by names, leave --no-header out, or '
                "set header = true."
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
    width = len(first)
    for line, record in without_blank_end(records) if width > 1 else records:
        if len(record) != width:
            pick(record, places, names, path, line)
            check_width(record, width, path, line)
        if header and (record == first or [name.lstrip(BOM) for name in record] == first):
            raise ValueError(
                f"{path}, line {line}: the header comes again. Remove the line, or rename the columns in the header."
            )
        yield line, pick(record, places, names, path, line)


def without_blank_end(records: Records) -> Records:
    """Leave out the blank lines behind the last record."""
    blank: list[tuple[int, list[str]]] = []
    for line, record in records:
        if len(record) == 1 and not record[0].strip():
            blank.append((line, record))
            continue
        yield from blank
        blank.clear()
        yield line, record


def find_columns(header: Sequence[str], names: Iterable[str], path: Path, line: int, *, hint: str = "") -> list[int]:
    """Return the places of columns in a header.

    hint (str): added to the message about a missing name.
    RAISES (ValueError): if the header does not have all of them, or one of them twice.
    """
    header = [name.strip() for name in header]
    for name in names:
        if name not in header:
            given = ", ".join(header)
            raise ValueError(NO_COLUMN.format(path=path, line=line, column=name, given=given, hint=hint))
        if header.count(name) > 1:
            raise ValueError(f"{path}, line {line}: two columns are named '{name}'. Rename one of them.")
    return [header.index(name) for name in names]


def pick(record: Sequence[str], columns: Sequence[int], names: Sequence[str], path: Path, line: int) -> list[str]:
    """Return some columns of a record. RAISES (ValueError): if the record is too short."""
    for column, name in zip(columns, names, strict=True):
        if column >= len(record):
            raise ValueError(SHORT_LINE.format(path=path, line=line, column=name, given=len(record)))
    return [record[column] for column in columns]


def check_width(record: Sequence[str], width: int, path: Path, line: int) -> None:
    """Refuse a record that has more or fewer columns than expected: texts and names of columns may be shifted."""
    if len(record) != width:
        raise ValueError(
            f"{path}, line {line}: {len(record)} columns, but the first line has {width}. Quote a text that has the "
            "separator or a line end in it, or repair the line; another separator is named by a first line like sep=;"
        )


def _filled(records: Records, *, keep_blank: bool) -> Records:
    return ((line, columns) for line, columns in records if keep_blank or any(column.strip() for column in columns))


def _parse_records(
    lines: Iterable[str], path: Path, delimiter: str = ",", start: int = 0, *, skip_spaces: bool = False
) -> Records:
    """Yield records, quoted as in RFC 4180, with the lines where they start; a blank line has one empty column."""
    records = csv.reader(lines, strict=True, delimiter=delimiter, skipinitialspace=skip_spaces)
    while True:
        line = start + records.line_num + 1
        limit = csv.field_size_limit(MAX_LINE)  # a setting of all readers of the process: it is put back
        try:
            columns = next(records, None)
        except csv.Error as error:
            kind = _SEPARATORS.get(delimiter, repr(delimiter))
            raise ValueError(
                f"{path}, line {line}: not {kind}-separated as expected ({error}). Check its quotes, or write .jsonl."
            ) from error
        finally:
            csv.field_size_limit(limit)
        if columns is None:
            return
        yield line, columns or [""]


def _lines(path: Path, start: int = 0, encoding: str = "utf8") -> Iterator[str]:
    for line, text in islice(read_lines(path, encoding), start, None):
        if "\0" in text:
            raise ValueError(
                f"{path}, line {line}: has a NUL character. Save the file as UTF-8 again, or remove the line."
            )
        yield text


def _find_dialect(path: Path, *, header: bool) -> tuple[str, int, bool, bool]:
    """Return the separator, how many lines are before the header, whether columns may be quoted, and spaces skipped."""
    filled = ((line, text) for line, text in read_lines(path) if text.strip())
    (line, first), (_, second) = next(filled, (1, "")), next(filled, (2, ""))
    directive = _DIRECTIVE.fullmatch(first)
    if directive is not None:
        return directive[1], line, True, False
    bare = re.sub(rf'{_QUOTED}|"[^"]*$', "", first)
    delimiter = _TAB
    if format_suffix(path) == ".csv" and _TAB not in bare and not is_wide(path):
        delimiter = max(",;|", key=lambda mark: (bare.count(mark), mark == "|" and mark in bare))
    if delimiter == _TAB:
        return _TAB, 0, _is_quoted(path, header=header), False
    if delimiter == "|" and _RULE.fullmatch(second):
        raise ValueError(f"{path}, line {line}: a table in Markdown. Save it as .csv, .tsv or .jsonl.")
    return delimiter, 0, True, header and f"{delimiter} " in bare


def _is_quoted(path: Path, *, header: bool) -> bool:
    """Return whether quotes between tabs are those of columns; otherwise they belong to the texts.

    They are if all of them fit, and a quote inside of a column is doubled, or the whole header is quoted, or columns
    without quoting would differ in number, or the file is UTF-16 as spreadsheets write it.
    """
    is_sure, n_tabs, wrapped = False, -1, 0  # wrapped: the first line of a column in quotes that need not have them
    is_ragged, first, n_quotes, size = False, 0, 0, 0  # first: the line where the record in parts starts
    parts: list[str] = []
    for line, text in read_lines(path):
        if text.strip():
            is_ragged |= n_tabs not in (-1, text.count(_TAB))
            n_tabs = text.count(_TAB) if n_tabs < 0 else n_tabs
        if not parts and '"' not in text:
            continue
        first = line if not parts else first
        parts.append(text)
        n_quotes, size = n_quotes + text.count('"'), size + len(text)
        if n_quotes % 2 and size < MAX_LINE:
            continue
        record = "".join(parts).rstrip("\r\n")
        parts, n_quotes, size = [], 0, 0
        if not _RECORD.fullmatch(record):
            if _ESCAPED.search(record):
                raise _doubt(path, first, "they are behind backslashes: double them")
            if is_sure:
                raise _doubt(path, first, "other columns of the file are quoted, and this line is not as they are")
            return False
        cells = [match[1] for match in _CELLS.finditer(record)]
        is_sure |= first == 1 and header and all(cell.startswith('"') for cell in cells if cell)
        is_sure |= any('""' in cell[1:-1] for cell in cells)
        if not wrapped and any(len(cell) > 2 and cell.startswith('"') for cell in cells):
            wrapped = first
    if parts:
        if is_sure:
            raise _doubt(path, first, "one of them is not closed")
        return False
    if wrapped and not (is_sure or is_ragged or is_wide(path)):
        raise _doubt(path, wrapped, "they may be part of it")
    return True


def _doubt(path: Path, line: int, reason: str) -> ValueError:
    return ValueError(
        f"{path}, line {line}: cannot tell whether the quotes are part of the text ({reason}). Write the table "
        "as .csv or .jsonl."
    )
