"""Read text files line by line, compressed or not, and objects of JSON; check the texts in them."""

import codecs
import gzip
import io
import json
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, BinaryIO, cast

from ..errors import Errors
from ..validation import find_lone_surrogate, short_repr
from .atomic import check_input

# bytes; a file without line ends, or an unclosed quote, must not fill the memory
MAX_LINE = 2**24
NO_COLUMN = (
    "{path}, line {line}: expected a column '{column}', got {given}. Check the names and the "
    "format{hint}."
)
_Object = dict[str, object]
# Spreadsheets write one before the header
BOM = "\ufeff"
# How files begin that are no text, or none that is read, whatever their name says
_BINARY = (
    (b"PK\x03\x04", "a workbook or a .zip file", "Save its sheet as .csv, or unpack it."),
    (b"\xd0\xcf\x11\xe0", "a workbook of Excel", "Save its sheet as .csv."),
    (b"%PDF-", "a .pdf file", "Copy its texts to a .txt or .csv file."),
    (b"PAR1\x15", "a .parquet file", "Rename it."),
    (b"ARROW1\x00", "an Arrow file", "Write it as .parquet."),
    (b"\x93NUMPY", "a file of vectors", "Give the file of texts."),
    (b"\x1f\x8b", "compressed by gzip", "Give it a name that ends in .gz."),
    (b"BZh91AY", "compressed by bzip2", "Unpack it."),
    (b"\xfd7zXZ\x00", "compressed by xz", "Unpack it."),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", "Unpack it."),
    (b"SQLite format 3\x00", "a database of SQLite", "Write its table as .csv."),
    (codecs.BOM_UTF32_LE, "encoded in UTF-32", "Save it as UTF-8."),
    (codecs.BOM_UTF32_BE, "encoded in UTF-32", "Save it as UTF-8."),
)
_ALIASES = {".json": ".jsonl", ".ndjson": ".jsonl", ".pq": ".parquet", ".tab": ".tsv"}
# As pandas writes whole numbers of a column with blank cells
_WHOLE = re.compile(r"(-?[0-9]{1,28})\.0+")


def _is_gzip(path: PurePath) -> bool:
    return path.suffix.lower() == ".gz"


def format_suffix(path: PurePath) -> str:
    """Return the suffix of the format of a file: ".tsv" for pairs.tsv, pairs.tsv.gz and pairs.tab.

    It is ".gz" for a compressed .parquet file, which cannot be read.
    """
    is_gzip = _is_gzip(path)
    if is_gzip:
        path = path.with_suffix("")
    suffix = path.suffix.lower()
    suffix = _ALIASES.get(suffix, suffix)
    if is_gzip and suffix == ".parquet":
        return ".gz"
    return suffix


def check_texts(path: PurePath) -> None:
    """Refuse a file whose name says that it holds vectors in place of texts."""
    if format_suffix(path) == ".npy":
        raise ValueError(
            f"{path} is a file of vectors: expected their texts. Give the vectors as --vectors "
            f"{path}."
        )


def read_lines(path: Path, encoding: str = "utf8") -> Iterator[tuple[int, str]]:
    """Read a text file, compressed or not, a line at a time. Lines end in LF or CRLF.

    encoding (str): "latin-1" for data sets that are published so. A UTF-8 file may be UTF-16 with a
        byte order mark, too, which is held in memory.
    YIELDS (int, str): the number of the line, from 1, and the line with its line end.
    RAISES (ValueError): for a line that is not in the encoding or longer than 16 MiB, lines that
        end in CR, damaged compression, vectors, or what is no file of text.
    """
    if encoding == "utf8" and is_utf16(path):
        yield from enumerate(io.StringIO(_read_text(path), newline="\n"), 1)
        return
    line = 0
    with _open_text(path, lambda: line) as file:
        while raw := file.readline(MAX_LINE):
            line += 1
            if line == 1:
                _check_first_line(raw, encoding, path)
            if len(raw) >= MAX_LINE and not raw.endswith(b"\n"):
                raise ValueError(
                    f"{path}, line {line}: longer than {MAX_LINE} bytes. Expected one example a "
                    "line."
                )
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise _not_utf8(path, line, error) from error
            if line == 1:
                text = text.removeprefix(BOM)
            yield line, text


def _check_first_line(raw: bytes, encoding: str, path: Path) -> None:
    if encoding == "utf8" and b"\0" in raw[:2]:
        raise ValueError(
            f"{path}, line 1: not UTF-8 (it has NUL characters, as UTF-16 has). Save the file as "
            "UTF-8, or as UTF-16 with a byte order mark."
        )
    if b"\r" in raw[:-1] and not raw.endswith(b"\n"):
        raise ValueError(
            f"{path}, line 1: lines end in CR. Save the file with lines that end in LF."
        )


def _read_text(path: Path, size: int = -1) -> str:
    """Return the text of a file, compressed or not. size (int): the most bytes to read, -1 for all.

    See read_lines.
    """
    encoding = "utf-16" if is_utf16(path) else "utf-8-sig"
    with _open_text(path, lambda: 0) as file:
        raw = file.read(size)
    try:
        return raw.decode(encoding, "strict" if size < 0 else "ignore")
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        raise _not_utf8(path, line, error) from error


def is_utf16(path: Path) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16, as spreadsheets write it."""
    with _open_text(path, lambda: 0) as file:
        return file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def _open_text(path: Path, line: Callable[[], int]) -> Iterator[BinaryIO]:
    """Open a file of text, compressed or not.

    line (Callable): how many lines were read, for errors.
    """
    check_texts(path)
    check_input(path)
    with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as file:
        try:
            _check_start(cast(io.BufferedReader, file), path)
            yield cast(BinaryIO, file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}, line {line() + 1}: the compressed file is damaged ({error}). Fetch it "
                "again."
            ) from error


def _check_start(file: io.BufferedReader, path: Path) -> None:
    """Refuse a file that begins as one of another kind."""
    start = file.peek(16)
    for mark, kind, what_to_do in _BINARY:
        if start.startswith(mark):
            raise ValueError(f"{path} is {kind}: expected text. {what_to_do}")


def _not_utf8(path: Path, line: int, error: UnicodeError) -> ValueError:
    return ValueError(
        Errors.BAD_ENCODING.format(path=path, line=line, reason=getattr(error, "reason", error))
    )


def read_objects(path: Path) -> Iterator[tuple[int, _Object]]:
    """Read a JSON object a line, or of .json the objects of one array, which is held in memory.

    Pass over blank lines.

    YIELDS (int, dict): the number of the line where an object starts, or its number in an array;
        and the object.
    RAISES (ValueError): for a line that is not one, or an object with two fields of one name.
    """
    is_json = path.name.lower().removesuffix(".gz").endswith(".json")
    if is_json and _read_text(path, 1024).lstrip().startswith("["):
        for number, value in enumerate(_decode_json(_read_text(path), path, 0), 1):
            yield number, _object(value, path, number)
        return
    for line, text in read_lines(path):
        if text.strip():
            yield line, _object(_decode_json(text, path, line), path, line)


def _fields(pairs: list[tuple[str, object]]) -> _Object:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field '{max(names, key=names.count)}' twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_fields)


def _decode_json(text: str, path: Path, line: int) -> Any:
    """Return the value of a text. line (int): its line in the file, 0 if it is all of the file."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        reason: object = error
        line_of_error = 1
        if isinstance(error, json.JSONDecodeError):
            reason = error.msg
            line_of_error = error.lineno
        is_array = line > 0 and text.lstrip().startswith("[")
        raise _bad_json(path, line or line_of_error, reason, is_array=is_array) from error


def _bad_json(path: Path, line: int, reason: object, *, is_array: bool) -> ValueError:
    hint = "; a file of one JSON array needs a name that ends in .json" if is_array else ""
    return ValueError(
        f"{path}, line {line}: expected a JSON object, got {reason}. Repair the line{hint}."
    )


def _object(value: object, path: Path, line: int) -> _Object:
    if not isinstance(value, dict):
        raise _bad_json(path, line, f"a {type(value).__name__}", is_array=isinstance(value, list))
    return value


def get_field(record: _Object, name: str, path: Path, line: int) -> object:
    """Return a field of an object. RAISES (ValueError): if there is none of that name."""
    if name not in record:
        raise ValueError(
            NO_COLUMN.format(path=path, line=line, column=name, given=", ".join(record), hint="")
        )
    return record[name]


def check_text(value: object, column: str, path: Path, line: int) -> str:
    """Return the text in a column. RAISES (ValueError): if it is no str or not UTF-8."""
    if not isinstance(value, str):
        raise ValueError(
            Errors.NOT_A_TEXT.format(path=path, line=line, column=column, given=short_repr(value))
        )
    # JSON can spell one, \ud83d
    if find_lone_surrogate(value) is not None:
        reason = "it has a lone surrogate, half a character"
        raise ValueError(Errors.BAD_ENCODING.format(path=path, line=line, reason=reason))
    return value


def check_cell(value: object, column: str, path: Path, line: int) -> str:
    """Return the text in a column without white space around it.

    RAISES (ValueError): if it is no str, empty or not UTF-8.
    """
    text = check_text(value, column, path, line)
    if not has_text(text):
        raise ValueError(
            f"{path}, line {line}: {column} is empty. Every column that is read needs text."
        )
    return text.strip()


def check_label(value: object, column: str, path: Path, line: int) -> str:
    """Return a label, which may be a whole number: 1, 1.0, "1" and "1.0" are equal.

    See check_cell.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        value = str(value)
    return plain_label(check_cell(value, column, path, line))


def plain_label(text: str) -> str:
    """Return a label without the decimals of a whole number: "1" for "1.0" and "1.00"."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return text
    return str(int(whole[1]))


def has_text(text: str) -> bool:
    """Return whether a text has more than white space, control and format characters.

    Tokenizers drop all of these.
    """
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def read_counts(path: Path) -> dict[str, int]:
    """Read the counts of words in a large corpus.

    path (Path): a lower-cased word, white space and its count on each line, such as
        enwiki_vocab_min200.txt of https://github.com/PrincetonML/SIF; blank lines are passed over.
    RAISES (ValueError): for a line that is not so or repeats a word, with file and line, or if
        there is none.
    """
    found: dict[str, int] = {}
    for line, text in read_lines(path):
        word, *count = text.split() or [""]
        if not word:
            continue
        if len(count) != 1 or not count[0].isdecimal() or int(count[0]) == 0:
            given = text.strip()[:50]
            raise ValueError(
                f"{path}, line {line}: expected a word and its count (1 or more), got '{given}'."
            )
        if word in found:
            raise ValueError(
                f"{path}, line {line}: the word '{word}' was counted before. Keep one line for "
                "each word."
            )
        found[word] = int(count[0])
    if not found:
        raise ValueError(
            f"{path} holds no word counts: expected a word and its count on each line."
        )
    return found
