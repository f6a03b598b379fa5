"""A document before it is Markdown or HTML: tables of cells, and the notes that stand beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace


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
        """The table without the columns of figures in which every cell is absent."""
        kept = [
            column
            for column in range(len(self.columns))
            if column < self.texts or any(row[column].text != absent for row in self.cells)
        ]
        rows = [[row[column] for column in kept] for row in self.rows]
        return replace(self, columns=[self.columns[column] for column in kept], rows=rows)


@dataclass
class Notes:
    """Numbers notes in the order in which they are first met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def marks(self, notes: Iterable[str]) -> tuple[int, ...]:
        """The numbers of notes."""
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
