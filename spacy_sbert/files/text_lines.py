"""Read text files line by line, compressed or not."""

import codecs
import gzip
import io
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from ..errors import Errors
from .atomic import check_input

MAX_LINE = 2**24  # bytes; a file without line ends, or an unclosed quote, must not fill the memory
_VECTORS = ".npy"
BOM = "\ufeff"  # spreadsheets write one before the header
_WIDE = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ALIASES = {".json": ".jsonl", ".ndjson": ".jsonl", ".pq": ".parquet", ".tab": ".tsv"}
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")  # as pandas writes whole numbers of a column with blank cells
_LONGEST_WHOLE = 30  # characters of such a number


def is_gzip(path: PurePath) -> bool:
    """Whether a file is compressed, which its name says."""
    return path.suffix.lower() == ".gz"


def inner_suffix(path: PurePath) -> str:
    """Return the suffix in lower case, without .gz: ".json" for A.JSON.gz."""
    return (path.with_suffix("") if is_gzip(path) else path).suffix.lower()


def format_suffix(path: PurePath) -> str:
    """Return the suffix of the format of a file: ".tsv" for pairs.tsv, pairs.tsv.gz and pairs.tab."""
    suffix = inner_suffix(path)
    return _ALIASES.get(suffix, suffix)


def check_texts(path: PurePath) -> None:
    """Refuse a file whose name says that it holds vectors in place of texts."""
    if format_suffix(path) == _VECTORS:
        raise ValueError(
            f"{path} is a file of vectors: expected a file of texts here. Give the texts that the vectors are "
            f"of; search, mine, cluster and visualize take the vectors, too: --vectors {path}."
        )


def read_lines(path: Path, encoding: str = "utf8") -> Iterator[tuple[int, str]]:
    """Read a text file, compressed or not, a line at a time. Lines end in LF or CRLF.

    encoding (str): "latin-1" for data sets that are published so. UTF-8 files may be UTF-16 or UTF-32 with a byte order
        mark, too, which are held in memory.
    YIELDS (int, str): the number of the line, from 1, and the line with its line end.
    RAISES (ValueError): for a line that is not in the encoding or longer than 16 MiB, lines that end in CR, damaged
        compression, vectors, or what is no file.
    """
    if encoding == "utf8" and is_wide(path):
        yield from enumerate(io.StringIO(read_text(path), newline="\n"), 1)
        return
    line = 0
    with _open_text(path, lambda: line) as file:
        while raw := file.readline(MAX_LINE):
            line += 1
            if len(raw) >= MAX_LINE and not raw.endswith(b"\n"):
                raise ValueError(
                    f"{path}, line {line}: longer than {MAX_LINE} bytes. Expected a text file with one example a line."
                )
            if line == 1 and encoding == "utf8" and b"\0" in raw[:2]:
                raise ValueError(
                    f"{path}, line {line}: not UTF-8 (it has NUL characters, as UTF-16 has). Save the file as "
                    "UTF-8, or as UTF-16 with a byte order mark."
                )
            if line == 1 and b"\r" in raw[:-1] and not raw.endswith(b"\n"):
                raise ValueError(f"{path}, line {line}: lines end in CR. Save the file with lines that end in LF.")
            yield line, _decode(raw, path, line, encoding)


def read_text(path: Path, size: int = -1) -> str:
    """Return the text of a file, compressed or not. size (int): the most bytes to read, -1 for all.

    RAISES (ValueError): see read_lines.
    """
    with _open_text(path, lambda: 0) as file:
        encoding = _wide_encoding(file) or "utf-8-sig"
        raw = file.read(size)
    try:
        return raw.decode(encoding, "strict" if size < 0 else "ignore")
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error


def is_wide(path: Path) -> bool:
    """Whether a file begins with the byte order mark of UTF-16 or UTF-32, as spreadsheets write it."""
    with _open_text(path, lambda: 0) as file:
        return _wide_encoding(file) is not None


@contextmanager
def _open_text(path: Path, line: Callable[[], int]) -> Iterator[BinaryIO]:
    """Open a file of text, compressed or not. line (Callable): how many lines were read, for errors."""
    check_texts(path)
    check_input(path)
    with gzip.open(path, "rb") if is_gzip(path) else path.open("rb") as file:
        try:
            yield cast(BinaryIO, file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}, line {line() + 1}: the compressed file is damaged ({error}). Fetch it again."
            ) from error


def _wide_encoding(file: BinaryIO) -> str | None:
    """Return UTF-16 or UTF-32 if the file begins with its byte order mark, else None."""
    start = cast(io.BufferedReader, file).peek(4)
    return next((name for mark, name in _WIDE if start.startswith(mark)), None)


def check_encoding(text: str, path: Path, line: int) -> None:
    r"""Refuse a text that cannot be encoded: JSON can spell half a character, \ud83d."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error


def check_text(text: object, column: str, path: Path, line: int) -> str:
    """Return a text without white space around it.

    RAISES (ValueError): if it is not a str, is empty or cannot be encoded.
    """
    if not isinstance(text, str):
        raise ValueError(Errors.NOT_A_TEXT.format(path=path, line=line, column=column, given=text))
    if not has_text(text):
        raise ValueError(f"{path}, line {line}: {column} is empty. Every column that is read needs text.")
    check_encoding(text, path, line)
    return text.strip()


def check_label(value: object, column: str, path: Path, line: int) -> str:
    """Return a label, which may be a whole number: 1, 1.0, "1" and "1.0" are equal.

    RAISES (ValueError): see check_text.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return plain_label(check_text(str(value) if isinstance(value, int) else value, column, path, line))


def plain_label(text: str) -> str:
    """Return a label without the decimals of a whole number: "1" for "1.0" and "1.00"."""
    return str(int(found[1])) if len(text) <= _LONGEST_WHOLE and (found := _WHOLE.fullmatch(text)) else text


def has_text(text: str) -> bool:
    """Whether there is more than white space, control and format characters, which tokenizers drop."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def _decode(raw: bytes, path: Path, line: int, encoding: str) -> str:
    try:
        return raw.decode(encoding).removeprefix(BOM if line == 1 else "")
    except UnicodeDecodeError as error:
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=error.reason)) from error


def read_counts(path: Path) -> dict[str, int]:
    """Read the counts of words in a large corpus.

    path (Path): a lower-cased word, white space and its count on each line, such as enwiki_vocab_min200.txt of
        https://github.com/PrincetonML/SIF; blank lines are passed over.
    RETURNS (dict): counts by word.
    RAISES (ValueError): for a line that is not so or repeats a word, or if there is none; the message names file and
        line.
    """
    found: dict[str, int] = {}
    for line, text in read_lines(path):
        columns = text.split()
        if not columns:
            continue
        if len(columns) != 2 or not columns[1].isdecimal() or int(columns[1]) == 0:
            raise ValueError(
                f"{path}, line {line}: expected a word, white space and how often it was counted (1 or more), "
                f"got '{text.strip()[:50]}'. Repair or remove the line."
            )
        if columns[0] in found:
            raise ValueError(
                f"{path}, line {line}: the word '{columns[0]}' was counted before. Keep one line for each word."
            )
        found[columns[0]] = int(columns[1])
    if not found:
        raise ValueError(f"{path} holds no word counts: expected a word and its count on each line.")
    return found
