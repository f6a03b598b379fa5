"""Read the records of .csv, .tsv and .txt tables.

The separator of .tsv and .txt is a tab. In .csv it is a tab if the first line has one, or if the
first two lines of a UTF-16 file do not agree on another; otherwise the one of comma, semicolon and
pipe that is most often in the first line, outside of quotes; a pipe if it is as often as others. A
first line such as `sep=;`, as Excel writes it, decides. Columns are quoted as in RFC 4180; between
tabs only if all quotes of the file are those of columns.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path

from . import text_lines

SHORT_LINE = (
    "{path}, line {line}: no column '{column}', the line has only {given} columns. Repair or "
    "remove the line."
)
# The line where a record starts, and its columns
DelimitedRecords = Iterator[tuple[int, list[str]]]
_TAB = "\t"
_SEPARATORS = {",": "comma", ";": "semicolon", "|": "pipe", _TAB: "tab"}
_DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
# Below the header of a table in Markdown
_RULE = re.compile(r"[|+:\s-]*-[|+:\s-]*")
_QUOTED = r'"(?:[^"]++|"")*+"'
_NOT_BARE = re.compile(rf'{_QUOTED}|"[^"]*$')
_CELL = rf'(?:{_QUOTED}|[^"\t]*+)'
_RECORD = re.compile(rf"{_CELL}(?:\t{_CELL})*+")
_CELLS = re.compile(rf"(?:^|\t)({_CELL})")
# As Spark and R's write.table escape quotes
_ESCAPED = re.compile(r'(?:^|\t)"[^\t]*\\"[^\t]*"(?:\t|$)')


@dataclass(frozen=True)
class _Dialect:
    """How the records of a table are written.

    n_before (int): lines before the header. is_quoted: whether columns may be in quotes.
    skips_spaces: whether spaces after a separator are no part of the next column.
    """

    separator: str
    n_before: int = 0
    is_quoted: bool = True
    skips_spaces: bool = False


def read_delimited(
    path: Path,
    *,
    header: bool = True,
    keep_blank: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf8",
) -> DelimitedRecords:
    """Read the records of a table.

    header (bool), keep_blank (bool): see read_table. encoding (str): see read_lines.
    delimiter (str): a tab for columns that are not quoted, as the official layouts of many data
        sets have them; a comma for those that are quoted where need be; None to find it.
    YIELDS (int, list): the number of the line where a record starts, and its columns.
    RAISES (ValueError): if quotes between tabs can be read in two ways, if they do not match, for a
        table in Markdown, a NUL character, a column longer than 16 MiB, or what is not text.
    """
    if delimiter is None:
        dialect = _find_dialect(path, header=header)
    else:
        dialect = _Dialect(delimiter, is_quoted=delimiter == ",")
    lines = _lines(path, dialect.n_before, encoding)
    if dialect.is_quoted:
        records = _parse_records(lines, path, dialect)
    else:
        records = _split_records(lines, dialect)
    if keep_blank:
        return _with_blank(records, header=header)
    return _without_blank(records)


def _without_blank(records: DelimitedRecords) -> DelimitedRecords:
    for line, columns in records:
        if any(column.strip() for column in columns):
            yield line, columns


def _with_blank(records: DelimitedRecords, *, header: bool) -> DelimitedRecords:
    """Leave out blank lines.

    In a table of one column they are records, except those before the header.
    """
    before_first = []
    for line, columns in records:
        if not _is_blank_line(columns):
            break
        before_first.append((line, columns))
    else:
        return
    has_one_column = len(columns) == 1
    if has_one_column and not header:
        yield from before_first
    yield line, columns
    for line, columns in records:
        if has_one_column or not _is_blank_line(columns):
            yield line, columns


def _is_blank_line(columns: Sequence[str]) -> bool:
    return len(columns) == 1 and not columns[0].strip()


def _lines(path: Path, n_before: int, encoding: str) -> Iterator[str]:
    for line, text in islice(text_lines.read_lines(path, encoding), n_before, None):
        if "\0" in text:
            raise ValueError(
                f"{path}, line {line}: has a NUL character. Save the file as UTF-8 again."
            )
        yield text


def _split_records(lines: Iterable[str], dialect: _Dialect) -> DelimitedRecords:
    for line, text in enumerate(lines, dialect.n_before + 1):
        yield line, text.rstrip("\r\n").split(dialect.separator)


def _parse_records(lines: Iterable[str], path: Path, dialect: _Dialect) -> DelimitedRecords:
    """Yield records whose columns may be quoted. A blank line has one empty column."""
    records = csv.reader(
        lines, strict=True, delimiter=dialect.separator, skipinitialspace=dialect.skips_spaces
    )
    while True:
        line = dialect.n_before + records.line_num + 1
        # A setting of all readers of the process: it is put back
        limit = csv.field_size_limit(text_lines.MAX_LINE)
        try:
            columns = next(records, None)
        except csv.Error as error:
            kind = _SEPARATORS.get(dialect.separator, repr(dialect.separator))
            raise ValueError(
                f"{path}, line {line}: not {kind}-separated as expected ({error}). Check its "
                "quotes, or write .jsonl."
            ) from error
        finally:
            csv.field_size_limit(limit)
        if columns is None:
            return
        yield line, columns or [""]


def _find_dialect(path: Path, *, header: bool) -> _Dialect:
    filled = ((line, text) for line, text in text_lines.read_lines(path) if text.strip())
    line, first = next(filled, (1, ""))
    directive = _DIRECTIVE.fullmatch(first)
    if directive is not None:
        return _Dialect(directive[1], n_before=line)
    bare = _NOT_BARE.sub("", first)
    is_csv = text_lines.format_suffix(path) == ".csv"
    # The first of several that are as often: texts have pipes least
    separator = max("|,;" if "|" in bare else ",;", key=bare.count)
    _, second = next(filled, (2, ""))
    is_tabbed = not is_csv or _TAB in bare
    if not is_tabbed and text_lines.is_utf16(path):
        # Excel writes it with tabs, others as any .csv
        n_separators = _NOT_BARE.sub("", second).count(separator)
        is_tabbed = n_separators == 0 or n_separators != bare.count(separator)
    if is_tabbed:
        return _Dialect(_TAB, is_quoted=_has_quoted_columns(path, header=header))
    if separator == "|" and _RULE.fullmatch(second):
        raise ValueError(
            f"{path}, line {line}: a table in Markdown. Save it as .csv, .tsv or .jsonl."
        )
    return _Dialect(separator, skips_spaces=header and f"{separator} " in bare)


class _Quotes(StrEnum):
    """Whose the quotes of a record between tabs are."""

    # They do not fit around columns
    OF_TEXT = "text"
    # They do not either, but backslashes tell that they were meant to
    ESCAPED = "escaped"
    # Only quoted columns look so
    OF_COLUMNS = "columns"
    # They fit around columns that need none
    NEEDLESS = "needless"
    # Around nothing: both readings are an empty column
    AROUND_NOTHING = "nothing"


def _has_quoted_columns(path: Path, *, header: bool) -> bool:
    """Return whether quotes between tabs are those of columns; otherwise they belong to the texts.

    They are those of columns if all of them fit, and one record shows it or the whole file does,
    see _quotes_of and _needs_quotes.

    RAISES (ValueError): if both readings are possible.
    """
    first: dict[_Quotes, int] = {}
    for line, record in _records_with_quotes(path):
        quotes = _quotes_of(record, is_header=header and line == 1)
        if quotes in first:
            continue
        first[quotes] = line
        if quotes is _Quotes.OF_TEXT and _Quotes.OF_COLUMNS not in first:
            return False
        if quotes in (_Quotes.OF_TEXT, _Quotes.ESCAPED):
            raise _doubtful_quotes(path, line)
    is_shown = _Quotes.OF_COLUMNS in first or _Quotes.NEEDLESS not in first
    if not is_shown and not _needs_quotes(path):
        raise _doubtful_quotes(path, first[_Quotes.NEEDLESS])
    return True


def _quotes_of(record: str, *, is_header: bool) -> _Quotes:
    """Return whose the quotes of a record are, as far as it shows it by itself.

    Those of columns are doubled inside of a column, or are around all columns of a header.
    """
    if _RECORD.fullmatch(record) is None:
        if _ESCAPED.search(record):
            return _Quotes.ESCAPED
        return _Quotes.OF_TEXT
    cells = _CELLS.findall(record)
    quoted = [cell for cell in cells if cell.startswith('"')]
    if is_header and len(quoted) == len(cells) - cells.count(""):
        return _Quotes.OF_COLUMNS
    if any('""' in cell[1:-1] for cell in quoted):
        return _Quotes.OF_COLUMNS
    if set(quoted) == {'""'}:
        return _Quotes.AROUND_NOTHING
    return _Quotes.NEEDLESS


def _needs_quotes(path: Path) -> bool:
    """Return whether a file makes sense only if its quotes are those of columns.

    Lines that are split at all tabs would differ in their number of columns; or the file is UTF-16,
    which spreadsheets write, and they quote.
    """
    if text_lines.is_utf16(path):
        return True
    n_tabs = {text.count(_TAB) for _, text in text_lines.read_lines(path) if text.strip()}
    return len(n_tabs) > 1


def _records_with_quotes(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines with quotes, each with those that follow until all quotes are closed."""
    lines: list[str] = []
    first_line = 0
    n_quotes = 0
    size = 0
    for line, text in text_lines.read_lines(path):
        if not lines:
            first_line = line
            if '"' not in text:
                continue
        lines.append(text)
        n_quotes += text.count('"')
        size += len(text)
        if n_quotes % 2 == 0 or size >= text_lines.MAX_LINE:
            yield first_line, "".join(lines).rstrip("\r\n")
            lines = []
            n_quotes = 0
            size = 0
    if lines:
        yield first_line, "".join(lines).rstrip("\r\n")


def _doubtful_quotes(path: Path, line: int) -> ValueError:
    return ValueError(
        f"{path}, line {line}: cannot tell whether the quotes are part of the text. Double those "
        "inside of quoted columns, without backslashes, or write the table as .csv or .jsonl."
    )


def by_name(
    records: DelimitedRecords, names: Sequence[str], path: Path, *, header: bool = True
) -> DelimitedRecords:
    """Read columns by the names in the first record, or without a header by number.

    See read_table.
    """
    if not header:
        _check_numbers(names, path)
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
        if header and _is_header(record, first):
            raise ValueError(
                f"{path}, line {line}: the header comes again. Remove the line, or rename the "
                "columns in the header."
            )
        yield line, pick(record, places, names, path, line, width=len(first))


def _check_numbers(names: Iterable[str], path: Path) -> None:
    for name in names:
        if not name.isdecimal():
            raise ValueError(
                f"{path} is read without a header, but a column was named '{name}': expected a "
                "number counted from 0, such as --column 1. To go by names, omit --no-header, or "
                "set header = true."
            )


def _is_header(record: list[str], header: list[str]) -> bool:
    """Return whether a record is the header again, maybe with the mark of a file's beginning."""
    return record == header or [name.lstrip(text_lines.BOM) for name in record] == header


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
            "text that has the separator or a line end in it, or repair the line; another "
            "separator is named by a first line like sep=;"
        )
    return [record[column] for column in columns]
