"""Documents as HTML, Markdown and terminal tables."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from html import escape
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .plots import Plot, clean


@dataclass(frozen=True)
class Cell:
    """A text, and the notes on it."""

    text: str
    notes: Sequence[str] = ()


TableRow = Sequence[Cell | str]


@dataclass(frozen=True)
class Table:
    """A table.

    title: above it. columns: names. rows: as wide as the names. caption: how to read it, below it.
    texts: how many columns, from the left, are text; the others are figures.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    caption: str = ""
    texts: int = 1

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows; a plain text is a cell without notes."""
        return [
            [cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows
        ]

    def trimmed(self, absent: str) -> "Table":
        """Return the table without those numeric columns in which every cell is `absent`."""
        kept = []
        for place, cells in enumerate(zip(*self.cells, strict=True)):
            is_filled = any(cell.text != absent for cell in cells)
            if place < self.texts or is_filled:
                kept.append(place)
        columns = [self.columns[place] for place in kept]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows)


@dataclass(frozen=True)
class Document:
    """A title, paragraphs, tables and plots.

    The notes on cells are numbered in the order in which they occur.

    remarks: paragraphs on how to read it. details: tables on how it was made; both are at the end.
    """

    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    remarks: Sequence[str] = ()
    details: Sequence[Table] = ()
    plots: Sequence[Plot] = ()

    @cached_property
    def notes(self) -> dict[str, int]:
        """The notes with their numbers, from 1."""
        numbers: dict[str, int] = {}
        for table in self.tables:
            for row in table.cells:
                for cell in row:
                    for note in cell.notes:
                        numbers.setdefault(note, len(numbers) + 1)
        return numbers

    def marks(self, cell: Cell) -> list[int]:
        """Return the numbers of the notes on a cell."""
        return sorted(self.notes[note] for note in cell.notes)

    def _mark(self, cell: Cell) -> str:
        """Return the numbers of the notes as text; "" if there are none."""
        return ", ".join(str(number) for number in self.marks(cell))

    def html(self) -> str:
        """Render the document as one page that loads nothing; equal documents give equal pages."""
        return render_template("render/document.html", title=self.title, lang="en", document=self)

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, without scripts, for a notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" sandbox="" style="width: 100%; height: 40em; '
            'border: 0"></iframe>'
        )

    def markdown(self) -> str:
        """Render the document in Markdown, without plots."""
        blocks = [f"# {escape_markdown(self.title)}", *map(escape_markdown, self.paragraphs)]
        blocks += self._sections(self.tables)
        if self.notes:
            notes = [f"- \\[{i}\\] {escape_markdown(note)}" for note, i in self.notes.items()]
            blocks += ["## Notes", "\n".join(notes)]
        if self.remarks:
            blocks += ["## How to read it", *map(escape_markdown, self.remarks)]
        blocks += self._sections(self.details)
        return "\n\n".join(blocks) + "\n"

    def _sections(self, tables: Iterable[Table]) -> Iterator[str]:
        """Yield the title, the rows and the caption of each table, in Markdown."""
        for table in tables:
            yield f"## {escape_markdown(table.title)}"
            n_figures = len(table.columns) - table.texts
            rows = [
                [escape_markdown(name) for name in table.columns],
                ["---"] * table.texts + ["---:"] * n_figures,
            ]
            rows += [[self._in_markdown(cell) for cell in row] for row in table.cells]
            yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
            if table.caption:
                yield escape_markdown(table.caption)

    def _in_markdown(self, cell: Cell) -> str:
        text = escape_markdown(cell.text)
        return rf"{text} \[{self._mark(cell)}\]" if cell.notes else text

    def terminal(self, width: int) -> str:
        """Render the document as plain text for a terminal, without plots, remarks and details.

        width (int): the columns of the terminal. A wider table is transposed if that makes it
            narrower.
        """
        blocks = [_wrapped(text, width) for text in (self.title, *self.paragraphs)]
        for table in self.tables:
            blocks.append(_headed(table.title, self._aligned(table, width)))
            if table.caption:
                blocks.append(_wrapped(table.caption, width))
        if self.notes:
            notes = [_wrapped(f"[{i}] {note}", width) for note, i in self.notes.items()]
            blocks.append(_headed("Notes", notes))
        return "\n\n".join(blocks) + "\n"

    def _aligned(self, table: Table, width: int) -> Iterator[str]:
        """Yield the lines of a table, which is transposed if it is too wide."""
        rows = [[clean(name) for name in table.columns]]
        rows += [[self._in_terminal(cell) for cell in row] for row in table.cells]
        n_texts = table.texts
        transposed = [list(column) for column in zip(*rows, strict=True)]
        if len(_rule(rows)) > max(width, len(_rule(transposed))):
            rows = transposed
            n_texts = 1
        widths = _widths(rows)
        names, *others = rows
        yield _aligned_row(names, widths, n_texts)
        yield _rule(rows)
        for row in others:
            yield _aligned_row(row, widths, n_texts)

    def _in_terminal(self, cell: Cell) -> str:
        text = clean(cell.text)
        return f"{text} [{self._mark(cell)}]" if cell.notes else text


_GAP = "  "


def _aligned_row(row: Sequence[str], widths: Sequence[int], n_texts: int) -> str:
    """Return a line of a table: its texts to the left of their columns, its figures to the right.

    n_texts: how many cells, from the left, are texts.
    """
    texts = map(str.ljust, row[:n_texts], widths[:n_texts])
    figures = map(str.rjust, row[n_texts:], widths[n_texts:])
    return _GAP.join([*texts, *figures]).rstrip()


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(clean(text), width, break_long_words=False, break_on_hyphens=False)


def _headed(title: str, lines: Iterable[str]) -> str:
    title = clean(title)
    return "\n".join([title, "=" * len(title), *lines])


def _rule(rows: Iterable[Sequence[str]]) -> str:
    """Return the line below the names of a table."""
    return _GAP.join("-" * size for size in _widths(rows))


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def render_template(template: str, /, **values: object) -> str:
    """Fill in a template. Every text in it is cleaned and escaped, unless it is Markup.

    template (str): its path in the package, such as "render/page.html". It may include and extend
        others.
    values: the variables of the template.
    RETURNS (str): HTML or CSS, plain text and not Markup, so that callers may cut and join it.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    # The package may be in a zip archive
    package = files(__package__.rpartition(".")[0])
    environment = Environment(
        loader=FunctionLoader(lambda path: package.joinpath(path).read_text(encoding="utf8")),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else clean(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Settings of the filter tojson
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "separators": (",", ":"),
    }
    return environment


# What Markdown, or HTML inside it, could read as markup; _ only at the edge of a word
_MARKUP = re.compile(r"([\\`*\[\]|~#!])|(?<![^\W_])_|_(?![^\W_])")


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged, on one line, also inside a table."""
    return _MARKUP.sub(r"\\\g<0>", escape(clean(text), quote=False))
