"""Plain text: a text a line."""

from collections.abc import Iterator
from pathlib import Path

from ...files.lines import read_lines
from ..errors import Errors
from .columns import Columns, Row


def read_text(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a text a line, a blank line as an empty text.

    path (Path): .txt, UTF-8, gzip-compressed if it ends in .gz.
    columns (Columns): names none; there are no columns.
    RAISES (ValueError): for a line that is not UTF-8, or if an id was asked for.
    """
    if columns.id is not None:
        raise ValueError(Errors.BULK_NO_ID_IN_TEXT.format(path=path, column=columns.id))
    for _, text in read_lines(path):
        yield Row(text.rstrip("\r\n"), None)
