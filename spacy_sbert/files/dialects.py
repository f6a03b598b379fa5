"""The separator of a table, and whether its columns are quoted: found by what is in it, refused if in doubt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .errors import Errors
from .lines import SEPARATED, format_suffix, is_wide, read_lines, separated
from .quotes import IN_QUOTES, is_quoted

DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel writes and reads it as the first line
RULE = re.compile(r"\s*[|+]?[\s:]*-{2,}[:\s]*([|+][\s:]*-{2,}[:\s]*)*[|+]?\s*")  # as Markdown draws a table
SAMPLE_LINES, SAMPLE_CHARACTERS = 200, 2**18
TAB = "\t"


@dataclass(frozen=True)
class Dialect:
    """How the columns of a table are written.

    quoted (bool): whether columns may be quoted as in RFC 4180; otherwise quotes belong to the text.
    start (int): how many lines are before the header. skip_spaces (bool): whether spaces follow the delimiters.
    """

    delimiter: str
    quoted: bool = True
    start: int = 0
    skip_spaces: bool = False


class Sample(NamedTuple):
    """The first lines of a file. is_cut (bool): whether there are more."""

    lines: list[str]
    is_cut: bool


class Shape(NamedTuple):
    """The columns of a sample by one delimiter.

    width: of the first record. is_common: whether half of the others have it, too. is_even: whether all have, and it is
    2 or more. is_narrow: whether all records have one column. is_pure: whether all quotes are those of columns.
    """

    width: int
    is_common: bool
    is_even: bool
    is_narrow: bool
    is_pure: bool
    skip_spaces: bool


def find_dialect(path: Path, *, header: bool = True) -> Dialect:
    """Return how the columns of a .csv, .tsv or .txt are written.

    A first line such as `sep=;` names the separator. Otherwise it is a tab in .tsv; in .csv a comma, or a semicolon, a
    tab or a pipe if it splits all of the first 200 lines into columns and the comma does not; in .txt a tab first.
    Columns are quoted, but with tabs only if all quotes balance, see is_quoted.

    header (bool): whether the first line names the columns.
    RAISES (ValueError): if two separators fit, quotes can be read in two ways, or the table is drawn, as in Markdown.
    """
    sample = _sample(path)
    _check_drawn(path, sample.lines)
    directive = DIRECTIVE.fullmatch(sample.lines[0]) if sample.lines else None
    if directive is not None:
        return Dialect(directive[1], start=1)
    is_sheet = is_wide(path)  # as spreadsheets write it, with tabs and quotes
    if format_suffix(path) == ".tsv":
        delimiter, skip_spaces = TAB, False
    else:
        preferred = TAB if is_sheet or format_suffix(path) == ".txt" else ","
        delimiter, skip_spaces = _separator(path, sample, preferred, header=header)
    return Dialect(delimiter, delimiter != TAB or is_quoted(path, header=header, is_sheet=is_sheet), 0, skip_spaces)


def _sample(path: Path) -> Sample:
    lines: list[str] = []
    size = 0
    for _, text in islice(read_lines(path), SAMPLE_LINES + 1):
        if len(lines) == SAMPLE_LINES or size > SAMPLE_CHARACTERS:
            return Sample(lines, True)
        lines.append(text)
        size += len(text)
    return Sample(lines, False)


def _check_drawn(path: Path, lines: Sequence[str]) -> None:
    """RAISES (ValueError): if the header has pipes, and a rule of hyphens and pipes is above or below it."""
    first = [(line, text) for line, text in enumerate(lines, 1) if text.strip() and not text.startswith("#")][:2]
    for (_, header), (_, rule) in (first, first[::-1]) if len(first) > 1 else ():
        if "|" in header and re.search(r"[|+]", rule) and RULE.fullmatch(rule):
            raise ValueError(Errors.DRAWN_TABLE.format(path=path, line=first[0][0]))


def _separator(path: Path, sample: Sample, preferred: str, *, header: bool) -> tuple[str, bool]:
    shapes = {delimiter: _shape(sample, path, delimiter) for delimiter in SEPARATED}
    even = [delimiter for delimiter, shape in shapes.items() if shape.is_even]
    pure = [delimiter for delimiter in even if shapes[delimiter].is_pure]
    own = shapes[preferred]
    found = preferred
    if len(pure or even) == 1 and (header or not own.is_narrow or not _is_prose(sample.lines, even[0])):
        found = (pure or even)[0]
    elif len(even) > 1 and not (own.is_even and preferred == TAB):
        said = " and ".join(SEPARATED[one] for one in pure or even)
        raise ValueError(Errors.TWO_SEPARATORS.format(path=path, line=1, given=said, first=(pure or even)[0]))
    elif header and own.width == 1:  # the header may have another, and some other line be bad
        split = [one for one, shape in shapes.items() if shape.width > 1 and shape.is_common]
        found = split[0] if len(split) == 1 else preferred
    return found, shapes[found].skip_spaces


def _shape(sample: Sample, path: Path, delimiter: str) -> Shape:
    records, skip_spaces = _records(sample, path, delimiter), False
    if any(re.search(rf'{re.escape(delimiter)} +"', line) for line in sample.lines):
        spaced = _records(sample, path, delimiter, skip_spaces=True)
        if spaced is not None and (records is None or _stripped(spaced) != _stripped(records)):
            records, skip_spaces = spaced, True
    is_pure = skip_spaces or _is_pure(sample, delimiter)
    if delimiter == TAB and not _is_even(records):
        records, is_pure = [line.rstrip("\r\n").split(TAB) for line in sample.lines if line.strip()], True
    records = records or []
    width = len(records[0]) if records else 0
    is_common = 2 * (sum(len(record) == width for record in records) - 1) >= len(records) - 1
    is_narrow = all(len(record) == 1 for record in records)
    return Shape(width, is_common, _is_even(records), is_narrow, is_pure, skip_spaces)


def _is_pure(sample: Sample, delimiter: str) -> bool:
    text, mark = "".join(sample.lines), re.escape(delimiter)
    if '"' not in text:
        return True
    cell = rf'(?:"{IN_QUOTES}"|[^"\r\n{mark}]*+)'
    whole = re.match(rf"(?:{cell}(?:{mark}{cell})*+[\r\n]++)*+(?:{cell}(?:{mark}{cell})*+\Z)?", text)
    rest = text[whole.end() if whole else 0 :]
    return not rest or (sample.is_cut and bool(re.fullmatch(rf'(?:{cell}{mark})*+"{IN_QUOTES}', rest)))


def _records(sample: Sample, path: Path, delimiter: str, *, skip_spaces: bool = False) -> list[list[str]] | None:
    """Return the records of a sample, None if its quotes do not match."""
    found = []
    try:
        for _, columns in separated(sample.lines, path, delimiter, skip_spaces=skip_spaces):
            if any(column.strip() for column in columns):
                found.append(columns)
    except ValueError as error:
        if not (sample.is_cut and "unexpected end" in str(error.__cause__)):
            return None
    return found


def _is_even(records: Sequence[Sequence[str]] | None) -> bool:
    if not records or len(records[0]) < 2:
        return False
    width = len(records[0])
    return all(len(record) >= width and not any(record[width:]) for record in records)


def _stripped(records: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[column.lstrip(" ") for column in record] for record in records]


def _is_prose(lines: Sequence[str], delimiter: str) -> bool:
    """Whether a separator may be punctuation: there is one line, or a space follows it everywhere."""
    filled = [line for line in lines if line.strip()]
    return len(filled) < 2 or all(line.count(delimiter) == line.count(f"{delimiter} ") for line in filled)
