"""Plain texts, to look at rather than to train on."""

from itertools import islice
from pathlib import Path

from ..errors.checks import NonNegative
from ..files.lines import check_label, check_text, format_suffix, read_lines
from ..files.tables import TABLES, read_table


def read_texts(
    path: Path, *, column: str | None = None, label: str | None = None, limit: NonNegative = 0
) -> tuple[list[str], list[str] | None]:
    """Read texts, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table with a header, .csv, .tsv, .jsonl, .parquet,
        or .txt if a column is named.
    column, label (str): columns of a table; by default texts are in "text". limit (int): how many to read, 0 for all.
    RETURNS (list of str, list of str or None).
    RAISES (ValueError): as table_rows.
    """
    end = limit or None
    if format_suffix(path) in TABLES or column is not None or label is not None:
        names = [column or "text", *([] if label is None else [label])]
        rows = list(islice(read_table(path, names), end))
        texts = [check_text(record[0], names[0], path, line) for line, record in rows]
        return texts, None if label is None else [check_label(record[1], label, path, line) for line, record in rows]
    return list(islice((text.strip() for _, text in read_lines(path) if text.strip()), end)), None


def read_document(path: Path) -> str:
    """The whole file as one text, in UTF-8."""
    return "".join(line for _, line in read_lines(path))
