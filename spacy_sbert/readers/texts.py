"""Plain texts, to look at rather than to train on."""

from itertools import islice
from pathlib import Path

from ..errors.checks import NonNegative, validated
from ..files.lines import format_suffix, read_lines
from ..files.tables import TABLES
from .errors import Errors
from .table import Columns, table_rows


@validated
def read_texts(
    path: Path, *, column: str | None = None, label: str | None = None, limit: NonNegative = 0
) -> tuple[list[str], list[str] | None]:
    """Read texts, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table with a header, .csv, .tsv, .jsonl or .parquet.
    column, label (str): columns of a table; by default texts are in "text". limit (int): how many to read, 0 for all.
    RETURNS (list of str, list of str or None).
    RAISES (ValueError): as table_rows, and for columns of a file that is not a table.
    """
    end = limit or None
    if format_suffix(path) in TABLES:
        rows = list(islice(table_rows(path, Columns(members=(column or "text",), label=label)), end))
        return [row.members[0] for row in rows], None if label is None else [str(row.label) for row in rows]
    if column is not None or label is not None:
        raise ValueError(Errors.UNKNOWN_TABLE.format(path=path, expected=", ".join(TABLES)))
    lines = (line.strip() for _, line in read_lines(path))
    return list(islice(filter(None, lines), end)), None


def read_document(path: Path) -> str:
    """The whole file as one text, in UTF-8."""
    return "".join(line for _, line in read_lines(path))
