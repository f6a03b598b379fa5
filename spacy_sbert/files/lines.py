"""Text files, read a line or a record at a time, with checks that name file, line and column."""

import csv
import gzip
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from .errors import Errors
from .regular import check_input

MAX_LINE = 2**24  # bytes; a file without line ends, or an unclosed quote, must not fill the memory
VECTORS = ".npy"
BOM = "\ufeff"  # spreadsheets write one before the header


def is_gzip(path: PurePath) -> bool:
    """Whether a file is compressed, which its name says."""
    return path.suffix.lower() == ".gz"


def format_suffix(path: PurePath) -> str:
    """The suffix that says what is in a file: ".tsv" for pairs.tsv and for pairs.tsv.gz."""
    return (path.with_suffix("") if is_gzip(path) else path).suffix.lower()


def check_texts(path: PurePath) -> None:
    """RAISES (ValueError): if the name of a file says that it holds vectors in place of texts."""
    if format_suffix(path) == VECTORS:
        raise ValueError(Errors.VECTORS_NOT_TEXTS.format(path=path))


def read_lines(path: Path, encoding: str = "utf8") -> Iterator[tuple[int, str]]:
    """Read a text file, compressed or not, a line at a time.

    encoding (str): "latin-1" for data sets that are published so.
    YIELDS (int, str): the number of the line, from 1, and the line with its line end.
    RAISES (ValueError): for a line that is not in the encoding or longer than 16 MiB, damaged compression, vectors,
        or what is no file.
    """
    check_texts(path)
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


def comma_separated(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of lines of comma-separated columns, that of a blank line without columns; see tables.read_commas.

    lines: with their line ends. path (Path): where they are from, for errors.
    """
    records = csv.reader(lines, strict=True)
    while True:
        line = records.line_num + 1
        before = csv.field_size_limit(MAX_LINE)  # a setting of all readers of a process: it is put back
        try:
            columns = next(records, None)
        except csv.Error as error:
            raise ValueError(Errors.BAD_CSV.format(path=path, line=line, reason=error)) from error
        finally:
            csv.field_size_limit(before)
        if columns is None:
            return
        yield line, columns


def check_encoding(text: str, path: Path, line: int) -> None:
    """RAISES (ValueError): if a text cannot be encoded: JSON can spell half a character, \\ud83d."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error


def check_text(text: object, column: str, path: Path, line: int) -> str:
    """A text without white space around it. RAISES (ValueError): if it is not a str, is empty or cannot be encoded."""
    if not isinstance(text, str):
        raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=column, given=text))
    if not has_text(text):
        raise ValueError(Errors.EMPTY_SENTENCE.format(path=path, line=line, column=column))
    check_encoding(text, path, line)
    return text.strip()


def check_label(value: object, column: str, path: Path, line: int) -> str:
    """A label, which may be a whole number. RAISES (ValueError): see check_text."""
    return check_text(str(value) if isinstance(value, int) else value, column, path, line)


def has_text(text: str) -> bool:
    """Whether there is more than white space, control and format characters, which tokenizers drop."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def _decode(raw: bytes, path: Path, line: int, encoding: str) -> str:
    try:
        return raw.decode(encoding).removeprefix(BOM if line == 1 else "")
    except UnicodeDecodeError as error:
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error
