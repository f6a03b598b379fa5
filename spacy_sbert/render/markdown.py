"""A document in Markdown."""

import re
from collections.abc import Iterable, Iterator
from html import escape as escape_html

from .document import Cell, Document, Table
from .markup import clean

# What Markdown, or HTML inside it, could read as markup; _ only at the edge of a word.
MARKUP = re.compile(r"([\\`*\[\]|~#!])|(?<![^\W_])_|_(?![^\W_])")


def markdown(document: Document) -> str:
    """A document in Markdown."""
    blocks = [f"# {escape(document.title)}", *map(escape, document.paragraphs), *_blocks(document.tables)]
    if document.notes:
        notes = "\n".join(f"- {_marks((number,))} {escape(note)}" for number, note in enumerate(document.notes, 1))
        blocks += ["## Notes", notes]
    if document.remarks:
        blocks += ["## How to read it", *map(escape, document.remarks)]
    return "\n\n".join([*blocks, *_blocks(document.details)]) + "\n"


def _blocks(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield f"## {escape(table.title)}"
        yield render_table(table)
        if table.caption:
            yield escape(table.caption)


def escape(text: str) -> str:
    """A text that Markdown shows as it is, on one line, also inside a table."""
    return MARKUP.sub(r"\\\g<0>", escape_html(clean(text), quote=False))


def render_table(table: Table) -> str:
    """The columns and rows of a table in Markdown."""
    rule = ["---" if column < table.texts else "---:" for column in range(len(table.columns))]
    rows = [[escape(name) for name in table.columns], rule, *([_cell(cell) for cell in row] for row in table.cells)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(cell: Cell) -> str:
    return f"{escape(cell.text)} {_marks(cell.marks)}" if cell.marks else escape(cell.text)


def _marks(marks: tuple[int, ...]) -> str:
    return f"\\[{', '.join(map(str, marks))}\\]"
