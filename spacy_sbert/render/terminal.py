"""A document as text for a terminal: tables of a fixed width, without markup."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from .document import Cell, Document, Table
from .markup import clean

GAP = "  "


def terminal(document: Document, width: int) -> str:
    """A document in lines of text, without its details.

    width (int): the columns of the terminal. A table that is wider is laid on its side, if that is narrower.
    """
    blocks = [_wrapped(clean(text), width) for text in (document.title, *document.paragraphs)]
    for table in document.tables:
        blocks.append("\n".join([_heading(table.title), *_lines(table, width)]))
        blocks += [_wrapped(clean(table.caption), width)] if table.caption else []
    if document.notes:
        notes = (f"[{number}] {clean(note)}" for number, note in enumerate(document.notes, 1))
        blocks.append("\n".join([_heading("Notes"), *(_wrapped(note, width) for note in notes)]))
    return "\n\n".join(blocks) + "\n"


def _heading(title: str) -> str:
    return f"{clean(title)}\n{'=' * len(clean(title))}"


def _lines(table: Table, width: int) -> Iterator[str]:
    upright = [[clean(name) for name in table.columns], *([_text(cell) for cell in row] for row in table.cells)]
    on_side = [list(column) for column in zip(*upright, strict=True)]
    n_words = table.texts
    rows = upright
    if _width(upright) > max(width, _width(on_side)):
        rows, n_words = on_side, 1
    widths = _widths(rows)
    for number, row in enumerate(rows):
        cells = (
            text.ljust(size) if place < n_words else text.rjust(size)
            for place, (text, size) in enumerate(zip(row, widths, strict=True))
        )
        yield GAP.join(cells).rstrip()
        if not number:
            yield GAP.join("-" * size for size in widths)


def _text(cell: Cell) -> str:
    marks = f" [{', '.join(map(str, cell.marks))}]" if cell.marks else ""
    return clean(cell.text) + marks


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _width(rows: Iterable[Sequence[str]]) -> int:
    widths = _widths(rows)
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
