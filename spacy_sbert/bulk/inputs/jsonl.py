"""JSON: an object a line."""

from collections.abc import Iterator
from pathlib import Path

from ...files.lines import read_lines
from ...readers.nli import get_field, parse_object
from .columns import Columns, Row


def read_jsonl(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a field of each object; a blank line is no object.

    path (Path): .jsonl, UTF-8, gzip-compressed if it ends in .gz.
    RAISES (ValueError): for a line that is no JSON object, or lacks a field.
    """
    for line, text in read_lines(path):
        record = parse_object(text, path, line)
        yield columns.row([get_field(record, name, path, line) for name in columns.names], path, line)
