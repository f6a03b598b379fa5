"""What a report is made of before it is Markdown or HTML: tables of cells, and notes that stand beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..results import ABSENT, Figure, figure, mean

UNDEFINED = "undefined"
Marks = tuple[int, ...]


@dataclass(frozen=True)
class Cell:
    """A text, and the numbers of the notes on it."""

    text: str
    marks: Marks = ()


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


@dataclass(frozen=True)
class Document:
    """A report: title, paragraphs, tables, and notes, numbered from 1."""

    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    notes: Sequence[str]


@dataclass
class Notes:
    """Numbers notes in the order in which they are first met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def marks(self, task: Mapping[str, Any]) -> Marks:
        """The numbers of the notes on a task."""
        return tuple(self.numbers.setdefault(note, len(self.numbers) + 1) for note in task["notes"])


def as_cell(given: Cell | str) -> Cell:
    """A cell; a text has no notes on it."""
    return given if isinstance(given, Cell) else Cell(given)


def percent(value: Figure) -> str:
    """A figure x 100 with two decimals, and words for one that is not defined, or not there."""
    if value is None:
        return UNDEFINED
    return value if isinstance(value, str) else f"{round(100 * value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def interval_text(task: Mapping[str, Any], path: str) -> str:
    """The 95 % interval of a figure, x 100."""
    if path not in task["intervals"]:
        return ABSENT
    ends = task["intervals"][path]
    return UNDEFINED if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def score_text(entry: Mapping[str, Any], path: Sequence[str]) -> str:
    """The figure of a variant x 100, with its standard deviation over the seeds where there is one."""
    deviation = figure(entry.get("deviation", {}), path)
    text = percent(figure(entry["scores"], path))
    return text if deviation is None or isinstance(deviation, str) else f"{text} ± {percent(deviation)}"


def first(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """The variant that tables show."""
    return task["variants"][0]


def score_cell(task: Mapping[str, Any], path: Sequence[str], notes: Notes) -> Cell:
    """The figure of a task's first variant, with the notes on the task."""
    text = score_text(first(task), path)
    return Cell(text) if text == ABSENT else Cell(text, notes.marks(task))


def average(cells: Iterable[Cell], values: Iterable[Figure]) -> Cell:
    """The mean of figures, with the notes on all of them."""
    text = percent(mean(values))
    return Cell(text) if text == ABSENT else Cell(text, tuple(sorted({mark for cell in cells for mark in cell.marks})))


def trimmed(table: Table) -> Table:
    """A table without the columns of figures that hold none."""
    kept = [
        column
        for column in range(len(table.columns))
        if column < table.texts or any(as_cell(row[column]).text != ABSENT for row in table.rows)
    ]
    rows = [[row[column] for column in kept] for row in table.rows]
    return replace(table, columns=[table.columns[column] for column in kept], rows=rows)


def count(task: Mapping[str, Any]) -> str:
    """How many examples a task has: all of them, or by split."""
    counts = task["counts"]
    if "all" in counts:
        return str(counts["all"])
    if len(counts) == 1:
        return str(*counts.values())
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or ABSENT


def splits(task: Mapping[str, Any]) -> str:
    """How many examples each part of a task has."""
    parts = [f"{name} {number}" for name, number in task["counts"].items() if name != "all"]
    return ", ".join(parts) or count(task)


def variant_name(entry: Mapping[str, Any]) -> str:
    """What to call a variant."""
    return f"{entry['normalization']}, {entry['size']}"
