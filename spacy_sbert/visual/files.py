"""Texts from a file."""

from itertools import islice
from pathlib import Path

from ..errors.checks import NonNegative, validated
from ..files.lines import format_suffix, read_lines
from ..meta.corpus import read_sentences
from ..readers.table import TABLES, Columns, table_rows
from .errors import Errors


@validated
def read_texts(
    path: Path, *, column: str | None = None, label: str | None = None, limit: NonNegative = 0
) -> tuple[list[str], list[str] | None]:
    """Read texts, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table with a header, .csv, .tsv, .jsonl or .parquet.
    column, label (str): columns of a table; by default texts are in "text". limit (int): how many to read, 0 for all.
    RETURNS (list of str, list of str or None).
    RAISES (ValueError): as the reader of tables, and for columns of what is no table.
    """
    end = limit or None
    if format_suffix(path) in TABLES:
        rows = list(islice(table_rows(path, Columns(members=(column or "text",), label=label)), end))
        return [row.members[0] for row in rows], None if label is None else [str(row.label) for row in rows]
    if column is not None or label is not None:
        raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))
    return list(islice(read_sentences(path), end)), None


def read_document(path: Path) -> str:
    """The whole file as one text, in UTF-8."""
    return "".join(line for _, line in read_lines(path))
