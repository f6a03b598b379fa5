"""A report in Markdown."""

import re
from collections.abc import Mapping
from typing import Any

from ...render.markup import clean
from .contents import contents
from .document import Cell, Document, Table, as_cell

# What Markdown or HTML inside it could take for markup; _ only at the edge of a word.
MARKUP = re.compile(r"([\\`*\[\]|~#!])|(?<![^\W_])_|_(?![^\W_])")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown(results: Mapping[str, Any]) -> str:
    """A report on one model in Markdown, its tables laid out as the Sentence-BERT paper's.

    results (dict): see evaluate_suites.
    RETURNS (str): the same for the same results. Scores are x 100; one that is not defined is "undefined".
    """
    return render(contents(results))


def render(document: Document) -> str:
    """A document in Markdown."""
    blocks = [f"# {escape(document.title)}", *map(escape, document.paragraphs)]
    for table in document.tables:
        blocks += [f"## {escape(table.title)}", render_table(table)]
        blocks += [escape(table.caption)] if table.caption else []
    if document.notes:
        notes = "\n".join(f"- {_marks((number,))} {escape(note)}" for number, note in enumerate(document.notes, 1))
        blocks += ["## Notes", notes]
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """A text that Markdown shows as it is, on one line, also inside a table."""
    text = re.sub("[&<>]", lambda found: ENTITIES[found[0]], clean(text))
    return MARKUP.sub(r"\\\g<0>", text)


def render_table(table: Table) -> str:
    """The columns and rows of a table in Markdown."""
    rule = ["---" if column < table.texts else "---:" for column in range(len(table.columns))]
    rows = [
        [escape(name) for name in table.columns],
        rule,
        *([_cell(as_cell(one)) for one in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(cell: Cell) -> str:
    return f"{escape(cell.text)} {_marks(cell.marks)}" if cell.marks else escape(cell.text)


def _marks(marks: tuple[int, ...]) -> str:
    return f"\\[{', '.join(map(str, marks))}\\]"
