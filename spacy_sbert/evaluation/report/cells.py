"""Results of evaluations as cells of tables: figures x 100, intervals, counts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...render.document import Cell, Notes
from ...render.plots import UNDEFINED
from ..results import ABSENT, MSE, Figure, figure, mean

RATES = ("speed",)  # suites whose figures are not shares, and are printed as they are
Results = Mapping[str, Any]  # JSON: what evaluate_suites gives, or a part of it


def percent(value: Figure) -> str:
    """A figure x 100 with two decimals, or words where it is not defined or not measured."""
    if value is None:
        return UNDEFINED
    return value if isinstance(value, str) else f"{round(100 * value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def rate(value: Figure) -> str:
    """A figure as it is, such as sentences a second, with two decimals; see RATES."""
    return f"{value:,.2f}" if isinstance(value, int | float) else percent(value)


def squared(value: Figure) -> str:
    """A mean squared error as it is, with four decimals."""
    return f"{value:.4f}" if isinstance(value, int | float) else percent(value)


def interval_text(task: Results, path: str) -> str:
    """The 95 % interval of a figure, x 100."""
    if path not in task["intervals"]:
        return ABSENT
    ends = task["intervals"][path]
    return UNDEFINED if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def score_text(entry: Results, path: Sequence[str]) -> str:
    """The figure of a variant x 100, a mean squared error as it is; with its standard deviation over the seeds where
    there is one."""
    deviation, show = figure(entry.get("deviation", {}), path), squared if path[-1] == MSE else percent
    text = show(figure(entry["scores"], path))
    return text if deviation is None or isinstance(deviation, str) else f"{text} ± {show(deviation)}"


def first(task: Results) -> Results:
    """The variant that tables show."""
    return task["variants"][0]


def score_cell(task: Results, path: Sequence[str], notes: Notes) -> Cell:
    """The figure of a task's first variant, with the notes on the task."""
    text = score_text(first(task), path)
    return Cell(text) if text == ABSENT else Cell(text, notes.marks(task["notes"]))


def average(cells: Iterable[Cell], values: Iterable[Figure]) -> Cell:
    """The mean of figures, with the notes on all of them."""
    text = percent(mean(values))
    return Cell(text) if text == ABSENT else Cell(text, tuple(sorted({mark for cell in cells for mark in cell.marks})))


def count(task: Results) -> str:
    """How many examples a task has: all of them, or by split."""
    counts = task["counts"]
    if "all" in counts:
        return str(counts["all"])
    if len(counts) == 1:
        return str(*counts.values())
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or ABSENT


def splits(task: Results) -> str:
    """How many examples each part of a task has."""
    parts = [f"{name} {number}" for name, number in task["counts"].items() if name != "all"]
    return ", ".join(parts) or count(task)


def variant_name(entry: Results) -> str:
    """The name of a variant."""
    return f"{entry['normalization']}, {entry['size']}"
