"""How the columns of a text table are separated and quoted, and the records that follow from it."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .text_lines import MAX_LINE, format_suffix, open_text, read_lines, wide_encoding

_TAB = "\t"
_SEPARATORS = {",": "comma", ";": "semicolon", _TAB: "tab", "|": "pipe"}
_DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel writes and reads it as the first line
_RULE = re.compile(r"\s*[|+]?[\s:]*-{2,}[:\s]*([|+][\s:]*-{2,}[:\s]*)*[|+]?\s*")  # as Markdown draws a table
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 200, 2**18
_QUOTED = r'(?:[^"]++|"")*+'  # what is between the quotes of a column
_CELL = rf'(?:"{_QUOTED}"|[^"\t]*+)'
_RECORD = re.compile(rf"{_CELL}(?:\t{_CELL})*+")  # of one line or several
_OPENING = re.compile(rf'(?:{_CELL}\t)*+"{_QUOTED}')
_INSIDE = re.compile(_QUOTED)
_CLOSING = re.compile(rf'{_QUOTED}"(?:\t{_CELL})*+')
_CLOSING_AND_OPENING = re.compile(rf'{_QUOTED}"\t(?:{_CELL}\t)*+"{_QUOTED}')
_CELLS = re.compile(rf"(?:^|\t)({_CELL})")
_ESCAPED = re.compile(r'"(?:[^"\\]|\\.)*\\"(?:[^"\\]|\\.)*"')  # as Spark and R's write.table escape quotes
_FEW = 3  # quoted columns, too few to tell a rule by which they are quoted


class Dialect(NamedTuple):
    """How the columns of a table are written.

    quoted (bool): whether columns may be quoted as in RFC 4180; otherwise quotes belong to the text.
    start (int): how many lines are before the header. skip_spaces (bool): whether spaces follow the delimiters.
    """

    delimiter: str
    quoted: bool = True
    start: int = 0
    skip_spaces: bool = False


def find_dialect(path: Path, *, header: bool = True) -> Dialect:
    """Return how the columns of a .csv, .tsv or .txt are written.

    A first line such as `sep=;` names the separator. Otherwise it is a tab in .tsv; in .csv a comma, or a semicolon, a
    tab or a pipe if it splits all of the first 200 lines into columns and the comma does not; in .txt a tab first.
    Columns are quoted, but with tabs only if all quotes balance.

    header (bool): whether the first line names the columns.
    RAISES (ValueError): if two separators fit, quotes can be read in two ways, or the table is drawn, as in Markdown.
    """
    lines, is_cut = _sample(path)
    _check_drawn(path, lines)
    directive = _DIRECTIVE.fullmatch(lines[0]) if lines else None
    if directive is not None:
        return Dialect(directive[1], start=1)
    with open_text(path, lambda: 0) as file:
        is_sheet = wide_encoding(file) is not None  # as spreadsheets write it, with tabs and quotes
    if format_suffix(path) == ".tsv":
        delimiter, skip_spaces = _TAB, False
    else:
        preferred = _TAB if is_sheet or format_suffix(path) == ".txt" else ","
        shapes = {delimiter: _shape(lines, path, delimiter, is_cut=is_cut) for delimiter in _SEPARATORS}
        delimiter = _choose(path, lines, shapes, preferred, header=header)
        skip_spaces = shapes[delimiter].skip_spaces
    quoted = delimiter != _TAB or _is_quoted(path, header=header, is_sheet=is_sheet)
    return Dialect(delimiter, quoted, 0, skip_spaces)


def parse_records(
    lines: Iterable[str], path: Path, delimiter: str = ",", start: int = 0, *, skip_spaces: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Parse separated columns, quoted as in RFC 4180. A blank line is a record without columns.

    lines: with their line ends. path (Path): where they are from, for errors.
    start (int): how many lines are before them. skip_spaces (bool): leave out spaces behind a delimiter.
    YIELDS (int, list): the number of the line where the record starts, and its columns.
    RAISES (ValueError): for quotes that do not match, or a column longer than 16 MiB.
    """
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
        yield line, columns


def _sample(path: Path) -> tuple[list[str], bool]:
    """Return the first lines of a file, and whether there are more."""
    lines: list[str] = []
    size = 0
    for _, text in islice(read_lines(path), _SAMPLE_LINES + 1):
        if len(lines) == _SAMPLE_LINES or size > _SAMPLE_CHARACTERS:
            return lines, True
        lines.append(text)
        size += len(text)
    return lines, False


def _check_drawn(path: Path, lines: Sequence[str]) -> None:
    """Refuse a table whose header has pipes, and a rule of hyphens and pipes above or below it."""
    first = [(line, text) for line, text in enumerate(lines, 1) if text.strip() and not text.startswith("#")][:2]
    for (_, header), (_, rule) in (first, first[::-1]) if len(first) > 1 else ():
        if "|" in header and re.search(r"[|+]", rule) and _RULE.fullmatch(rule):
            raise ValueError(
                f"{path}, line {first[0][0]}: a table in Markdown, or one that is drawn with hyphens and "
                "pipes. Save it as .csv, .tsv or .jsonl."
            )


# Separators


class _Shape(NamedTuple):
    """The columns of the first lines by one delimiter.

    width: of the first record. is_common: whether half of the others have it, too. is_even: whether all have, and it is
    2 or more. is_narrow: whether all records have one column. is_pure: whether all quotes are those of columns.
    """

    width: int
    is_common: bool
    is_even: bool
    is_narrow: bool
    is_pure: bool
    skip_spaces: bool


def _choose(path: Path, lines: Sequence[str], shapes: dict[str, _Shape], preferred: str, *, header: bool) -> str:
    """Return the delimiter whose columns are even. RAISES (ValueError): if two delimiters fit."""
    even = [delimiter for delimiter, shape in shapes.items() if shape.is_even]
    fitting = [delimiter for delimiter in even if shapes[delimiter].is_pure] or even
    expected = shapes[preferred]
    if len(fitting) == 1 and (header or not expected.is_narrow or not _is_prose(lines, even[0])):
        return fitting[0]
    if len(even) > 1 and not (expected.is_even and preferred == _TAB):
        raise ValueError(
            f"{path}, line 1: {' and '.join(_SEPARATORS[each] for each in fitting)} may both be the separator. "
            f"Make the first line sep={fitting[0]} (or the other one), or write .jsonl."
        )
    if header and expected.width == 1:  # the header may have another, and some other line be bad
        common = [delimiter for delimiter, shape in shapes.items() if shape.width > 1 and shape.is_common]
        return common[0] if len(common) == 1 else preferred
    return preferred


def _shape(lines: Sequence[str], path: Path, delimiter: str, *, is_cut: bool) -> _Shape:
    records, skip_spaces = _try_records(lines, path, delimiter, is_cut=is_cut), False
    if any(re.search(rf'{re.escape(delimiter)} +"', line) for line in lines):
        spaced = _try_records(lines, path, delimiter, is_cut=is_cut, skip_spaces=True)
        if spaced is not None and (records is None or _stripped(spaced) != _stripped(records)):
            records, skip_spaces = spaced, True
    is_pure = skip_spaces or _is_pure("".join(lines), delimiter, is_cut=is_cut)
    if delimiter == _TAB and not _is_even(records):
        records, is_pure = [line.rstrip("\r\n").split(_TAB) for line in lines if line.strip()], True
    records = records or []
    width = len(records[0]) if records else 0
    is_common = 2 * (sum(len(record) == width for record in records) - 1) >= len(records) - 1
    is_narrow = all(len(record) == 1 for record in records)
    return _Shape(width, is_common, _is_even(records), is_narrow, is_pure, skip_spaces)


def _is_pure(text: str, delimiter: str, *, is_cut: bool) -> bool:
    mark = re.escape(delimiter)
    if '"' not in text:
        return True
    cell = rf'(?:"{_QUOTED}"|[^"\r\n{mark}]*+)'
    whole = re.match(rf"(?:{cell}(?:{mark}{cell})*+[\r\n]++)*+(?:{cell}(?:{mark}{cell})*+\Z)?", text)
    rest = text[whole.end() if whole else 0 :]
    return not rest or (is_cut and bool(re.fullmatch(rf'(?:{cell}{mark})*+"{_QUOTED}', rest)))


def _try_records(
    lines: Sequence[str], path: Path, delimiter: str, *, is_cut: bool, skip_spaces: bool = False
) -> list[list[str]] | None:
    """Return the records of the first lines, None if their quotes do not match."""
    records = []
    try:
        for _, columns in parse_records(lines, path, delimiter, skip_spaces=skip_spaces):
            if any(column.strip() for column in columns):
                records.append(columns)
    except ValueError as error:
        if not (is_cut and "unexpected end" in str(error.__cause__)):
            return None
    return records


def _is_even(records: Sequence[Sequence[str]] | None) -> bool:
    if not records or len(records[0]) < 2:
        return False
    width = len(records[0])
    return all(len(record) >= width and not any(record[width:]) for record in records)


def _stripped(records: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[column.lstrip(" ") for column in record] for record in records]


def _is_prose(lines: Sequence[str], delimiter: str) -> bool:
    """Return whether a delimiter may be punctuation: there is one line, or a space follows it everywhere."""
    filled = [line for line in lines if line.strip()]
    return len(filled) < 2 or all(line.count(delimiter) == line.count(f"{delimiter} ") for line in filled)


# Quotes


@dataclass
class _Quotes:
    """The quotes of a file; lines are counted from 1, 0 is none.

    broken: the first line where a quote is not that of a quoted column. escaped: one with quotes behind backslashes.
    doubled: one with a doubled quote in a quoted column. spread: one where a quoted column has a line end or a tab.
    needless: one with a quoted column that has none of them, nor white space at its ends, nor is empty.
    header: whether all columns of the first line are quoted. is_ragged: whether lines have different numbers of tabs.
    """

    any: bool = False
    broken: int = 0
    escaped: int = 0
    doubled: int = 0
    spread: int = 0
    needless: int = 0
    header: bool = False
    is_ragged: bool = False

    def add(self, record: str, line: int) -> None:
        """Note the quoted columns of a record."""
        for cell in _cells(record):
            if not cell.startswith('"'):
                continue
            inner = cell[1:-1]
            if '"' in inner:
                self.doubled = self.doubled or line
            elif set(inner) & set("\t\r\n"):
                self.spread = self.spread or line
            elif inner and inner == inner.strip():
                self.needless = self.needless or line

    def add_broken(self, text: str, line: int) -> None:
        """Note a line whose quotes are not those of columns."""
        self.broken = line
        if any(_ESCAPED.fullmatch(cell) for cell in text.split("\t")):
            self.escaped = line


def _is_quoted(path: Path, *, header: bool, is_sheet: bool) -> bool:
    """Return whether quotes between tabs are those of columns (RFC 4180); otherwise they belong to the texts.

    header (bool): whether the first line names the columns. is_sheet (bool): whether a spreadsheet wrote the file.
    RAISES (ValueError): if both may be.
    """
    quotes = _scan_quotes(path)
    if not quotes.any:
        return False
    if quotes.broken:
        if quotes.escaped:
            raise _doubt(path, quotes.escaped, "they are behind backslashes: double them")
        if quotes.doubled or (header and quotes.header):
            raise _doubt(path, quotes.broken, "other columns of the file are quoted, and this line is not as they are")
        return False
    if is_sheet or quotes.doubled or (header and quotes.header):
        return True
    if quotes.spread:
        if quotes.is_ragged:
            return True
        raise _doubt(path, quotes.spread, "they may be those of one column with line ends in it")
    if not quotes.needless or _has_rule(path, int(header)):
        return True
    raise _doubt(path, quotes.needless, "they may be part of the text")


def _doubt(path: Path, line: int, reason: str) -> ValueError:
    return ValueError(
        f"{path}, line {line}: cannot tell whether the quotes are part of the text ({reason}). Write the table "
        "as .csv or .jsonl."
    )


def _scan_quotes(path: Path) -> _Quotes:
    quotes = _Quotes()
    tabs: int | None = None
    opened, parts, size = 0, [], 0  # the line where a column was opened that is not closed yet, and the record so far
    for line, text in read_lines(path):
        if text.strip():
            tabs = text.count("\t") if tabs is None else tabs
            quotes.is_ragged |= text.count("\t") != tabs
        if opened:
            parts.append(text)
            size += len(text)
        if '"' not in text:
            continue
        first, quotes.any = not quotes.any and line == 1, True
        bare = text.rstrip("\r\n")
        if quotes.broken:
            if _RECORD.fullmatch(bare):
                quotes.add(bare, line)
        elif opened and _CLOSING.fullmatch(bare):
            quotes.add("".join(parts).rstrip("\r\n"), opened)
            opened, parts = 0, []
        elif opened and size < MAX_LINE and (_INSIDE.fullmatch(bare) or _CLOSING_AND_OPENING.fullmatch(bare)):
            continue
        elif not opened and _RECORD.fullmatch(bare):
            quotes.header |= first and all(cell.startswith('"') for cell in _cells(bare) if cell)
            quotes.add(bare, line)
        elif not opened and _OPENING.fullmatch(bare):
            opened, parts, size = line, [text], len(text)
        else:
            quotes.add_broken(bare, opened or line)
            opened, parts = 0, []
    if opened:
        quotes.add_broken("", opened)
    return quotes


def _cells(record: str) -> Iterator[str]:
    return (match[1] for match in _CELLS.finditer(record))


def _has_rule(path: Path, start: int) -> bool:
    """Return whether quotes follow a rule: all of a column's, or those with a comma, as Excel writes them."""
    quoted = Counter[int]()  # cells of each column
    bare: set[int] = set()
    has_comma: dict[bool, set[bool]] = {True: set(), False: set()}  # of quoted cells, and of others
    for _, text in islice(read_lines(path), start, None):
        for place, cell in enumerate(text.rstrip("\r\n").split("\t")):
            if not cell:
                continue
            has_comma[cell.startswith('"')].add("," in cell)
            if cell.startswith('"'):
                quoted[place] += 1
            else:
                bare.add(place)
    if quoted.total() < _FEW:
        return False
    return bare.isdisjoint(quoted) or (has_comma[True] == {True} and True not in has_comma[False])
