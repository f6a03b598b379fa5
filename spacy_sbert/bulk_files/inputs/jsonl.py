"""JSON: an object a line."""

import json
from collections.abc import Iterator
from pathlib import Path

from ...errors import Errors
from ...readers.nli import get_field
from ...readers.rows import read_lines
from .columns import Columns, Row


def read_jsonl(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a field of each object; a blank line is no object.

    path (Path): .jsonl, UTF-8, gzip-compressed if it ends in .gz.
    RAISES (ValueError): for a line that is no JSON object, or lacks a field.
    """
    for line, text in read_lines(path):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=error)) from error
        if not isinstance(record, dict):
            raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=f"a {type(record).__name__}"))
        yield columns.row([get_field(record, name, path, line) for name in columns.names], path, line)
