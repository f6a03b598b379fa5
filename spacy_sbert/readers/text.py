"""Plain text: one example of one member a line."""

from collections.abc import Iterator
from pathlib import Path

from ..files.lines import read_lines
from .rows import Row, check_members


def text_rows(path: Path) -> Iterator[Row]:
    """Read one text a line, without gold: for losses that need none, and for what a teacher is to label.

    path (Path): UTF-8; blank lines are passed over.
    YIELDS (Row): one member.
    RAISES (ValueError): for a line of nothing but control characters.
    """
    for line, text in read_lines(path):
        if text.strip():
            yield Row(check_members((text,), ("text",), path, line), line)
