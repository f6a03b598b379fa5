"""Whether the columns of a tab-separated file are quoted: some programs quote them, and others write texts as they are.

csv, pandas, pyarrow, R and spreadsheets quote every column with a quote in it, and double that. So in a quoted file
every quote belongs to a column that begins and ends with one. In a file without quoting, texts such as
`He said "no"` do not follow that rule.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .errors import Errors
from .lines import MAX_LINE, read_lines

IN_QUOTES = r'(?:[^"]++|"")*+'
CELL = rf'(?:"{IN_QUOTES}"|[^"\t]*+)'
WHOLE = re.compile(rf"{CELL}(?:\t{CELL})*+")  # a line, or a record of several
OPENING = re.compile(rf'(?:{CELL}\t)*+"{IN_QUOTES}')
INSIDE = re.compile(IN_QUOTES)
CLOSING = re.compile(rf'{IN_QUOTES}"(?:\t{CELL})*+')
CLOSING_AND_OPENING = re.compile(rf'{IN_QUOTES}"\t(?:{CELL}\t)*+"{IN_QUOTES}')
CELLS = re.compile(rf"(?:^|\t)({CELL})")
ESCAPED = re.compile(r'"(?:[^"\\]|\\.)*\\"(?:[^"\\]|\\.)*"')  # as Spark and R's write.table escape quotes
FEW = 3  # quoted columns, of which a habit cannot be told


@dataclass
class Quotes:
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


def is_quoted(path: Path, *, header: bool, is_sheet: bool = False) -> bool:
    """Return whether quotes are those of columns (RFC 4180); otherwise they belong to the texts.

    header (bool): whether the first line names the columns. is_sheet (bool): whether a spreadsheet wrote it.
    RAISES (ValueError): if both may be.
    """
    quotes = _scan(path)
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
    if not quotes.needless or _is_habit(path, int(header)):
        return True
    raise _doubt(path, quotes.needless, "they may be part of the text")


def _doubt(path: Path, line: int, reason: str) -> ValueError:
    return ValueError(Errors.DOUBTFUL_QUOTES.format(path=path, line=line, reason=reason))


def _scan(path: Path) -> Quotes:
    found = Quotes()
    tabs: int | None = None
    opened, parts, size = 0, [], 0  # the line where a column was opened that is not closed yet, and the record so far
    for line, text in read_lines(path):
        if text.strip():
            tabs = text.count("\t") if tabs is None else tabs
            found.is_ragged |= text.count("\t") != tabs
        if opened:
            parts.append(text)
            size += len(text)
        if '"' not in text:
            continue
        first, found.any = not found.any and line == 1, True
        bare = text.rstrip("\r\n")
        if found.broken:
            if WHOLE.fullmatch(bare):
                _note(found, bare, line)
        elif opened and CLOSING.fullmatch(bare):
            _note(found, "".join(parts).rstrip("\r\n"), opened)
            opened, parts = 0, []
        elif opened and size < MAX_LINE and (INSIDE.fullmatch(bare) or CLOSING_AND_OPENING.fullmatch(bare)):
            continue
        elif not opened and WHOLE.fullmatch(bare):
            found.header |= first and all(cell.startswith('"') for cell in _cells(bare) if cell)
            _note(found, bare, line)
        elif not opened and OPENING.fullmatch(bare):
            opened, parts, size = line, [text], len(text)
        else:
            _break(found, bare, opened or line)
            opened, parts = 0, []
    if opened:
        _break(found, "", opened)
    return found


def _break(found: Quotes, text: str, line: int) -> None:
    found.broken = line
    if any(ESCAPED.fullmatch(cell) for cell in text.split("\t")):
        found.escaped = line


def _note(found: Quotes, record: str, line: int) -> None:
    for cell in _cells(record):
        if not cell.startswith('"'):
            continue
        inner = cell[1:-1]
        if '"' in inner:
            found.doubled = found.doubled or line
        elif set(inner) & set("\t\r\n"):
            found.spread = found.spread or line
        elif inner and inner == inner.strip():
            found.needless = found.needless or line


def _cells(record: str) -> Iterator[str]:
    return (match[1] for match in CELLS.finditer(record))


def _is_habit(path: Path, start: int) -> bool:
    """Return whether quotes follow a rule: all of a column's, or those with a comma, as Excel writes them."""
    quoted: dict[int, int] = {}
    bare: set[int] = set()
    commas = {True: set[bool](), False: set[bool]()}
    for _, text in islice(read_lines(path), start, None):
        for place, cell in enumerate(text.rstrip("\r\n").split("\t")):
            if not cell:
                continue
            is_in_quotes = cell.startswith('"')
            commas[is_in_quotes].add("," in cell)
            if is_in_quotes:
                quoted[place] = quoted.get(place, 0) + 1
            else:
                bare.add(place)
    if sum(quoted.values()) < FEW:
        return False
    return not bare & quoted.keys() or (commas[True] == {True} and True not in commas[False])
