"""Documents as HTML, Markdown and terminal tables."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .plots import Plot, clean


@dataclass(frozen=True)
class Cell:
    """A text, and the numbers of the notes on it."""

    text: str
    marks: tuple[int, ...] = ()


Row = Sequence[Cell | str]


@dataclass(frozen=True)
class Table:
    """A table.

    title: above it. columns: names. rows: as wide as the names. caption: how to read it, below it. texts: how many
        columns, from the left, are text; the others are figures.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    caption: str = ""
    texts: int = 1

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows; a plain text is a cell without notes."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def trimmed(self, absent: str) -> "Table":
        """Return the table without those numeric columns in which every cell is `absent`."""
        columns = enumerate(zip(*self.cells, strict=True))
        kept = [place for place, cells in columns if place < self.texts or any(c.text != absent for c in cells)]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in kept], rows=rows)


@dataclass
class Notes:
    """Numbers notes in the order in which they are first met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def marks(self, notes: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of notes; a new note gets the next number."""
        return tuple(self.numbers.setdefault(note, len(self.numbers) + 1) for note in notes)


@dataclass(frozen=True)
class Document:
    """A title, paragraphs, tables, and notes, numbered from 1.

    remarks: paragraphs on how to read it. details: tables on how it came about; both stand at the end.
    """

    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    notes: Sequence[str]
    remarks: Sequence[str] = ()
    details: Sequence[Table] = ()


JSON = {"allow_nan": False, "separators": (",", ":")}  # of the filter tojson, which escapes what could end an element


def render(template: str, /, **values: object) -> str:
    """Fill in a template. Every text in it is cleaned and escaped, unless it is Markup.

    template (str): its path in the package, such as "render/page.html". It may include and extend others.
    values: the variables of the template.
    RETURNS (str): HTML or CSS, plain text and not Markup, so that callers may cut and join it.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = JSON
    return environment


def _read(path: str) -> str:
    """Read a file of the package, which may be in a zip archive."""
    return files(__package__.rpartition(".")[0]).joinpath(path).read_text(encoding="utf8")


def _finalized(value: object) -> object:
    return value if isinstance(value, Markup) else clean(value)


def html(document: Document, plots: Iterable[Plot] = ()) -> str:
    """Render a document and its plots as one page that loads nothing; equal input gives an equal page."""
    return render("render/document.html", title=document.title, lang="en", document=document, plots=list(plots))


def framed(page: str, *, height: int = 40) -> str:
    """Embed a page in another one, such as a notebook, with its own style and without scripts.

    height (int): of the frame, in em.
    """
    return f'<iframe srcdoc="{escape(page)}" sandbox="" style="width: 100%; height: {height}em; border: 0"></iframe>'


# What Markdown, or HTML inside it, could read as markup; _ only at the edge of a word.
_MARKUP = re.compile(r"([\\`*\[\]|~#!])|(?<![^\W_])_|_(?![^\W_])")


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged, on one line, also inside a table."""
    return _MARKUP.sub(r"\\\g<0>", escape(clean(text), quote=False))


def markdown(document: Document) -> str:
    """Render a document in Markdown."""
    blocks = [f"# {escape_markdown(document.title)}", *map(escape_markdown, document.paragraphs)]
    blocks += _sections(document.tables)
    if document.notes:
        notes = (f"- \\[{number}\\] {escape_markdown(note)}" for number, note in enumerate(document.notes, 1))
        blocks += ["## Notes", "\n".join(notes)]
    if document.remarks:
        blocks += ["## How to read it", *map(escape_markdown, document.remarks)]
    return "\n\n".join([*blocks, *_sections(document.details)]) + "\n"


def _sections(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield f"## {escape_markdown(table.title)}"
        yield _render_table(table)
        if table.caption:
            yield escape_markdown(table.caption)


def _render_table(table: Table) -> str:
    """Render the columns and rows of a table in Markdown."""
    rows = [list(map(escape_markdown, table.columns))]
    rows.append(["---" if column < table.texts else "---:" for column in range(len(table.columns))])
    for row in table.cells:
        marks = (f" \\[{_listed(cell.marks)}\\]" if cell.marks else "" for cell in row)
        rows.append([escape_markdown(cell.text) + mark for cell, mark in zip(row, marks, strict=True)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _listed(marks: Iterable[int]) -> str:
    return ", ".join(map(str, marks))


_GAP = "  "


def terminal(document: Document, width: int) -> str:
    """Render a document as plain text for a terminal, without its details.

    width (int): the columns of the terminal. A wider table is transposed if that makes it narrower.
    """

    def wrapped(text: str) -> str:
        return textwrap.fill(clean(text), width, break_long_words=False, break_on_hyphens=False)

    def headed(title: str, lines: Iterable[str]) -> str:
        return "\n".join([clean(title), "=" * len(clean(title)), *lines])

    blocks = [wrapped(text) for text in (document.title, *document.paragraphs)]
    for table in document.tables:
        blocks.append(headed(table.title, _aligned(table, width)))
        blocks += [wrapped(table.caption)] if table.caption else []
    if document.notes:
        notes = (wrapped(f"[{number}] {note}") for number, note in enumerate(document.notes, 1))
        blocks.append(headed("Notes", notes))
    return "\n\n".join(blocks) + "\n"


def _aligned(table: Table, width: int) -> Iterator[str]:
    marked = [[cell.text + (f" [{_listed(cell.marks)}]" if cell.marks else "") for cell in row] for row in table.cells]
    rows = [[clean(text) for text in row] for row in (table.columns, *marked)]
    on_side, n_texts = [list(column) for column in zip(*rows, strict=True)], table.texts
    if _width(rows) > max(width, _width(on_side)):
        rows, n_texts = on_side, 1
    widths = _widths(rows)
    for number, row in enumerate(rows):
        cells = [
            text.ljust(size) if place < n_texts else text.rjust(size)
            for place, (text, size) in enumerate(zip(row, widths, strict=True))
        ]
        yield _GAP.join(cells).rstrip()
        if not number:
            yield _GAP.join("-" * size for size in widths)


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _width(rows: Iterable[Sequence[str]]) -> int:
    widths = _widths(rows)
    return sum(widths) + len(_GAP) * (len(widths) - 1)
