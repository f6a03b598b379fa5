"""What every layout of text shares: lines read one at a time, and checks that name file, line and column."""

import csv
import gzip
import math
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import Errors
from .regular import check_input

MAX_LINE = 2**24  # bytes; a file without line ends, or an unclosed quote, must not fill the memory
BOM = "\ufeff"  # spreadsheets write one before the header
TRIPLET = 3


@dataclass(frozen=True)
class Row:
    """An example as it stands in a file.

    members: its texts, in order, without white space around them.
    line: where it starts, counted from 1.
    score: gold similarity from 0 to 1, None where there is none.
    label: gold label, None where there is none.
    """

    members: tuple[str, ...]
    line: int
    score: float | None = None
    label: str | None = None


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, which its name says."""
    return path.suffix.lower() == ".gz"


def format_suffix(path: Path) -> str:
    """The suffix that says what is in a file: ".tsv" for pairs.tsv and for pairs.tsv.gz."""
    return (path.with_suffix("") if is_gzip(path) else path).suffix.lower()


def read_lines(path: Path, encoding: str = "utf8") -> Iterator[tuple[int, str]]:
    """Read a text file, compressed or not, a line at a time.

    encoding (str): "latin-1" for data sets that are published so.
    YIELDS (int, str): the number of the line, from 1, and the line with its line end.
    RAISES (ValueError): for a line that is not in the encoding or longer than 16 MiB, damaged compression, or what is
        no file.
    """
    check_input(path)
    line = 0
    with gzip.open(path, "rb") if is_gzip(path) else path.open("rb") as file:
        try:
            while raw := file.readline(MAX_LINE):
                line += 1
                if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
                    raise ValueError(Errors.LONG_LINE.format(path=path, line=line, limit=MAX_LINE))
                yield line, _decode(raw, path, line, encoding)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(Errors.BAD_GZIP.format(path=path, line=line + 1, reason=error)) from error


def read_tabs(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read tab-separated columns without quoting; blank lines are passed over.

    YIELDS (int, list): the number of the line and its columns.
    """
    for line, text in read_lines(path):
        if text.strip():
            yield line, text.rstrip("\r\n").split("\t")


def read_commas(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read comma-separated columns, quoted where need be (RFC 4180); blank lines are passed over.

    YIELDS (int, list): the number of the line where the record starts, and its columns.
    RAISES (ValueError): for quotes that do not match, or a column longer than 16 MiB.
    """
    for line, columns in comma_separated((text for _, text in read_lines(path)), path):
        if any(column.strip() for column in columns):
            yield line, columns


def comma_separated(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of lines of comma-separated columns, that of a blank line without columns; see read_commas.

    lines: with their line ends. path (Path): where they are from, for errors.
    """
    records = csv.reader(lines, strict=True)
    while True:
        line = records.line_num + 1
        try:
            columns = _next_record(records)
        except csv.Error as error:
            raise ValueError(Errors.BAD_CSV.format(path=path, line=line, reason=error)) from error
        if columns is None:
            return
        yield line, columns


def _next_record(records: Iterator[list[str]]) -> list[str] | None:
    """The next one. How long a column may be is a setting of all readers of a process: it is put back."""
    before = csv.field_size_limit(MAX_LINE)
    try:
        return next(records, None)
    finally:
        csv.field_size_limit(before)


def find_columns(header: Sequence[str], names: Iterable[str], path: Path, line: int) -> list[int]:
    """Where the columns stand that a layout needs.

    RAISES (ValueError): if the header has not all of them.
    """
    header = [name.strip() for name in header]
    for name in names:
        if name not in header:
            raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, column=name, given=", ".join(header)))
    return [header.index(name) for name in names]


def pick(record: Sequence[str], columns: Sequence[int], names: Sequence[str], path: Path, line: int) -> list[str]:
    """The columns of a record that a layout needs.

    RAISES (ValueError): if the record is too short.
    """
    for column, name in zip(columns, names, strict=True):
        if column >= len(record):
            raise ValueError(Errors.SHORT_LINE.format(path=path, line=line, column=name, given=len(record)))
    return [record[column] for column in columns]


def check_members(texts: Sequence[Any], names: Sequence[str], path: Path, line: int) -> tuple[str, ...]:
    """The members of an example, without white space around them.

    texts: what the columns hold.
    names (Sequence[str]): what to call the columns in errors.
    RAISES (ValueError): for a text that is empty or cannot be encoded, or two equal members of a triplet.
    """
    members = tuple(check_text(text, name, path, line) for text, name in zip(texts, names, strict=True))
    if len(members) == TRIPLET and len(set(members)) < TRIPLET:
        same = [name for name, member in zip(names, members, strict=True) if members.count(member) > 1]
        raise ValueError(Errors.EQUAL_MEMBERS.format(path=path, line=line, columns=" and ".join(same)))
    return members


def check_text(text: Any, column: str, path: Path, line: int) -> str:
    """A text without white space around it.

    RAISES (ValueError): if it is no str, empty or cannot be encoded.
    """
    if not isinstance(text, str):
        raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=column, given=text))
    if not has_text(text):
        raise ValueError(Errors.EMPTY_SENTENCE.format(path=path, line=line, column=column))
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:  # JSON can spell half a character: \ud83d
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error
    return text.strip()


def check_score(value: Any, low: float, high: float, path: Path, line: int, column: str) -> float:
    """A score scaled from low..high to 0..1.

    RAISES (ValueError): if it is no number from low to high.
    """
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not low <= score <= high:  # also refuses nan
        message = Errors.BAD_SCORE.format(path=path, line=line, low=low, high=high, given=value, column=column)
        raise ValueError(message)
    return (score - low) / (high - low)


def has_text(text: str) -> bool:
    """Whether there is more than white space, control and format characters, which tokenizers drop."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def _decode(raw: bytes, path: Path, line: int, encoding: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error
    return text.removeprefix(BOM) if line == 1 else text
