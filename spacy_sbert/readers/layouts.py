"""The layouts that can be read, and how one is found for a file."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..files.lines import format_suffix
from ..files.regular import check_input
from ..files.tables import TABLES
from .errors import Errors
from .nli import nli_rows
from .quora import quora_rows
from .rows import Row
from .sick import sick_rows
from .sts import starts_as_sts, sts_rows
from .table import Columns, table_rows
from .text import text_rows
from .wikisection import wikisection_rows

LAYOUTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "sts": sts_rows,
    "nli": nli_rows,
    "sick": sick_rows,
    "wikisection": wikisection_rows,
    "quora": quora_rows,
    "text": text_rows,
}
AUTO, TABLE, SPACY = "auto", "table", "spacy"
FORMATS = (*LAYOUTS, TABLE, SPACY)


def find_format(path: Path, format: str, columns: Columns) -> str:
    """The layout of a file.

    path (Path): the file. One that ends in .spacy was made by `convert`, whatever layout its source had. Where format
        is "auto", a table if its members are named, and .csv and .tsv as the STS benchmark has them.
    format (str): a layout, or "auto". columns (Columns): names of columns, for tables.
    RETURNS (str): one of FORMATS.
    RAISES (ValueError): for an unknown layout, a suffix that says none, or columns that the layout does not ask for.
    """
    if format not in (AUTO, *FORMATS):
        raise ValueError(Errors.BAD_FORMAT.format(given=format, expected=", ".join((AUTO, *FORMATS))))
    if path.suffix == ".spacy":
        return SPACY
    if format == AUTO:
        format = _guess(path, columns)
    if format != TABLE and columns.given:
        raise ValueError(Errors.UNUSED_COLUMNS.format(path=path, given=", ".join(columns.given), format=format))
    return format


def is_own_table(path: Path, format: str) -> bool:
    """Whether a file is a table with columns of its own: by its format, or by its suffix, unless its first line is one
    of the STS benchmark.

    RAISES (ValueError): if there is no such file, or its first line cannot be read.
    """
    if format == TABLE:
        return True
    if format != AUTO or format_suffix(path) not in TABLES:
        return False
    check_file(path)
    return format_suffix(path) not in (".csv", ".tsv") or not starts_as_sts(path)


def read_rows(path: Path, format: str, columns: Columns) -> Iterator[Row]:
    """Read the examples of a file of text, a line at a time.

    path (Path): the file. format (str): one of FORMATS, but not "spacy".
    columns (Columns): names of columns, for tables.
    YIELDS (Row): the examples.
    RAISES (ValueError): if there is no file, no example in it, or a line is not what it should be.
    """
    check_file(path)
    empty = True
    for row in table_rows(path, columns) if format == TABLE else LAYOUTS[format](path):
        empty = False
        yield row
    if empty:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="a pair or other example a line"))


def check_file(path: Path) -> None:
    """RAISES (ValueError): if there is nothing, or something that is not a file."""
    check_input(path)
    if not path.is_file():
        raise ValueError(Errors.NO_FILE.format(path=path))


def _guess(path: Path, columns: Columns) -> str:
    suffix = format_suffix(path)
    if columns.members and suffix in (*TABLES, ".txt"):
        return TABLE
    if suffix in (".csv", ".tsv"):
        return "sts"
    raise ValueError(Errors.UNKNOWN_FORMAT.format(path=path, expected=", ".join(FORMATS)))
