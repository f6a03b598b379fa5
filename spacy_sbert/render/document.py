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


Row = Sequence[Cell | str]


@dataclass(frozen=True)
class Table:
    """A table.

    title: above it. columns: names. rows: as wide as the names. caption: how to read it, below it.
        texts: how many columns, from the left, are text; the others are figures.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
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
        columns = enumerate(zip(*self.cells, strict=True))
        kept = [
            place
            for place, cells in columns
            if place < self.texts or any(c.text != absent for c in cells)
        ]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in kept], rows=rows)


@dataclass(frozen=True)
class Document:
    """A title, paragraphs, tables and plots.

    The notes on cells are numbered in the order in which they occur.

    remarks: paragraphs on how to read it. details: tables on how it came about; both stand at the
        end.
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
        cells = (cell for table in self.tables for row in table.cells for cell in row)
        return {
            note: i
            for i, note in enumerate(
                dict.fromkeys(note for cell in cells for note in cell.notes), 1
            )
        }

    def marks(self, cell: Cell) -> list[int]:
        """Return the numbers of the notes on a cell."""
        return sorted(self.notes[note] for note in cell.notes)

    def html(self) -> str:
        """Render the document as one page that loads nothing; equal documents give equal pages."""
        return render("render/document.html", title=self.title, lang="en", document=self)

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
            notes = (
                f"- \\[{number}\\] {escape_markdown(note)}" for note, number in self.notes.items()
            )
            blocks += ["## Notes", "\n".join(notes)]
        if self.remarks:
            blocks += ["## How to read it", *map(escape_markdown, self.remarks)]
        return "\n\n".join([*blocks, *self._sections(self.details)]) + "\n"

    def _sections(self, tables: Iterable[Table]) -> Iterator[str]:
        for table in tables:
            yield f"## {escape_markdown(table.title)}"
            rows = [list(map(escape_markdown, table.columns))]
            rows.append(
                ["---" if column < table.texts else "---:" for column in range(len(table.columns))]
            )
            for row in table.cells:
                marks = (
                    f" \\[{', '.join(map(str, self.marks(cell)))}\\]" if cell.notes else ""
                    for cell in row
                )
                rows.append(
                    [
                        escape_markdown(cell.text) + mark
                        for cell, mark in zip(row, marks, strict=True)
                    ]
                )
            yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
            if table.caption:
                yield escape_markdown(table.caption)

    def terminal(self, width: int) -> str:
        """Render the document as plain text for a terminal, without plots, remarks and details.

        width (int): the columns of the terminal. A wider table is transposed if that makes it
            narrower.
        """

        def wrapped(text: str) -> str:
            return textwrap.fill(clean(text), width, break_long_words=False, break_on_hyphens=False)

        def headed(title: str, lines: Iterable[str]) -> str:
            return "\n".join([clean(title), "=" * len(clean(title)), *lines])

        blocks = [wrapped(text) for text in (self.title, *self.paragraphs)]
        for table in self.tables:
            blocks.append(headed(table.title, self._aligned(table, width)))
            blocks += [wrapped(table.caption)] if table.caption else []
        if self.notes:
            blocks.append(
                headed(
                    "Notes", (wrapped(f"[{number}] {note}") for note, number in self.notes.items())
                )
            )
        return "\n\n".join(blocks) + "\n"

    def _aligned(self, table: Table, width: int) -> Iterator[str]:
        rows = [[clean(name) for name in table.columns]]
        for row in table.cells:
            marks = (
                f" [{', '.join(map(str, self.marks(cell)))}]" if cell.notes else "" for cell in row
            )
            rows.append([clean(cell.text) + mark for cell, mark in zip(row, marks, strict=True)])
        on_side, n_texts = [list(column) for column in zip(*rows, strict=True)], table.texts
        rules = [_GAP.join("-" * size for size in _widths(each)) for each in (rows, on_side)]
        if len(rules[0]) > max(width, len(rules[1])):
            rows, n_texts, rules = on_side, 1, rules[::-1]
        widths = _widths(rows)
        for number, texts in enumerate(rows):
            left = (text.ljust(size) for text, size in zip(texts[:n_texts], widths, strict=False))
            right = (
                text.rjust(size)
                for text, size in zip(texts[n_texts:], widths[n_texts:], strict=True)
            )
            yield _GAP.join([*left, *right]).rstrip()
            if not number:
                yield rules[0]


_GAP = "  "


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def render(template: str, /, **values: object) -> str:
    """Fill in a template. Every text in it is cleaned and escaped, unless it is Markup.

    template (str): its path in the package, such as "render/page.html". It may include and extend
        others.
    values: the variables of the template.
    RETURNS (str): HTML or CSS, plain text and not Markup, so that callers may cut and join it.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    # Which may be in a zip archive
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
    # Of the filter tojson
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "separators": (",", ":"),
    }
    return environment


# What Markdown, or HTML inside it, could read as markup; _ only at the edge of a word.
_MARKUP = re.compile(r"([\\`*\[\]|~#!])|(?<![^\W_])_|_(?![^\W_])")


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged, on one line, also inside a table."""
    return _MARKUP.sub(r"\\\g<0>", escape(clean(text), quote=False))
