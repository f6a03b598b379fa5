"""How a column of gold is read, by its cells: as a score or a label, and what marks a blank."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy

from ..files.tables import read_table
from .column_names import SINGLE, is_label_name
from .examples import as_number, cell_text, from_boolean

# Different values of gold that are counted
MANY = 1000
# As spreadsheets, pandas, R and databases write a missing value, in lower case
_NOT_GIVEN = frozenset(
    ("", "-", "--", "---", "?", "na", "n/a", "#n/a", "#na", "<na>", "null", "nan", "\\n")
)
# Beside numbers, True and False only: beside other words it is a class
_NONE = "none"
_TRUTHS = {"true", "false"}
_RANGES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (-1.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))


@dataclass(frozen=True)
class GoldColumn:
    """How a column of gold is read; None is what options do not say.

    score, label (str): its name, as one of the two. min_score, max_score (float): what is scaled to
        0..1. missing: the values that mark rows without gold.
    is_binary: whether all other values are 0 and 1. values (dict): how often each of them comes, up
        to 1,000.
    """

    score: str | None = None
    label: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    missing: tuple[str, ...] = ()
    is_binary: bool = False
    values: Mapping[str, int] = field(default_factory=dict)


def cell_number(value: object) -> float:
    """Return a cell as a number, or nan. "True" and "yes" are 1, "False" and "no" 0."""
    return as_number(from_boolean(value))


class GoldCells:
    """The cells of a column of gold.

    values: how often each value comes, for up to MANY + 1 values; "" is a blank cell.
    scores: float64 (records,), nan for other cells. lines: int64 (records,).
    first_bad: line and text of the first cell that is no number.
    """

    def __init__(self, path: Path, name: str, *, header: bool):
        self.path = path
        self.name = name
        self.values: Counter[str] = Counter()
        self.first_bad: tuple[int, str] | None = None
        scores = []
        lines = []
        for line, (cell,) in read_table(path, [name], header=header, optional=[name]):
            text = cell_text(cell)
            if not text or text in self.values or len(self.values) <= MANY:
                self.values[text] += 1
            score = cell_number(cell)
            if math.isnan(score) and self.first_bad is None:
                self.first_bad = line, text
            scores.append(score)
            lines.append(line)
        self.scores = numpy.asarray(scores)
        self.lines = numpy.asarray(lines)

    @property
    def is_empty(self) -> bool:
        """Whether there are records, and no value but those that mark one without gold."""
        return bool(self.values) and all(value.lower() in _NOT_GIVEN for value in self.values)

    @property
    def missing(self) -> tuple[str, ...]:
        """The values that mark records without a label, if two other values are left.

        These are "-", "NA" and the like, and "", which is always one of them.
        """
        marks = self._marks()
        if len(self.values.keys() - marks - {""}) < 2:
            marks = set()
        blank = [""] if "" in self.values else []
        return (*sorted(marks), *blank)

    def _marks(self) -> set[str]:
        """Return the values that mark records without a label, except "".

        -1 is one of them beside words or three classes from 0 on, as SNLI and its copies have it,
        and None beside numbers, True and False.
        """
        marks = {value for value in self.values if value and value.lower() in _NOT_GIVEN}
        others = self.values.keys() - marks - {""}
        none = {value for value in others if value.lower() == _NONE}
        minus = {value for value in others if as_number(value) == -1}
        numbers = {as_number(value) for value in others - none - minus}
        words = {value.lower() for value in others - none if math.isnan(as_number(value))}
        if words:
            return marks | minus | (none if words <= _TRUTHS else set())
        are_classes = len(numbers) > 2 and all(
            number >= 0 and number.is_integer() for number in numbers
        )
        return marks | none | minus if are_classes else marks | none

    def is_binary(self, marks: Iterable[str]) -> bool:
        """Return whether all values but the marks are 0 and 1, or booleans, and both are there."""
        return {cell_number(value) for value in self.values if value not in marks} == {0.0, 1.0}

    @property
    def is_score(self) -> bool:
        """Whether the gold of pairs is a score.

        By its name, or as a label that is 0 and 1, or fractions.
        """
        if not is_label_name(self.name):
            return True
        missing = self.missing
        numbers = {cell_number(value) for value in self.values if value not in missing}
        if numbers <= {0.0, 1.0}:
            return True
        if any(map(math.isnan, numbers)):
            return False
        return not all(number.is_integer() for number in numbers)


def describe_gold(cells: GoldCells, n_texts: int, given: GoldColumn) -> GoldColumn:
    """Find out whether gold is a score or a label, what marks a blank, and the range of scores.

    n_texts (int): of an example. given: what options say.
    RAISES (ValueError): for scores that are no numbers, or far from all others.
    """
    gold = given
    if given.score is None and given.label is None:
        is_score = n_texts != SINGLE and cells.is_score
        gold = replace(gold, score=cells.name) if is_score else replace(gold, label=cells.name)
    missing = gold.missing
    if gold.label == cells.name or is_label_name(cells.name):
        missing = tuple(dict.fromkeys((*missing, *cells.missing)))
    low = gold.min_score
    high = gold.max_score
    if gold.score == cells.name:
        low, high = _score_range(cells, missing, low, high)
    return replace(
        gold,
        min_score=low,
        max_score=high,
        missing=missing,
        is_binary=cells.is_binary(missing),
        values={value: n for value, n in cells.values.items() if value not in missing},
    )


def _score_range(
    cells: GoldCells, missing: Sequence[str], low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """Return the range of scores, of which either end may be given.

    RAISES (ValueError): for bad scores, and for few that are far away: 1 of 100, or one of ten and
        more, that doubles the range or makes it an unusual one.
    """
    if cells.first_bad is not None and not missing:
        raise _not_a_number(cells, *cells.first_bad)
    scores = numpy.sort(cells.scores[~numpy.isnan(cells.scores)])
    is_given = low is not None and high is not None
    if not len(scores) or is_given or cells.is_binary(missing):
        return low, high
    n_few = max(len(scores) // 100, int(len(scores) >= 10))
    n_low = n_few if low is None else 0
    n_high = n_few if high is None else 0
    inner_low, inner_high = _usual_range(scores[n_low : len(scores) - n_high])
    first, last = _usual_range(scores)
    is_wider = last - first >= 2 * (inner_high - inner_low) > 0
    is_unusual = (first, last) not in _RANGES and (inner_low, inner_high) in _RANGES
    distances = numpy.maximum(inner_low - cells.scores, cells.scores - inner_high)
    is_outside = distances > 0
    if (is_wider or is_unusual) and is_outside.any():
        farthest = numpy.nanargmax(distances)
        raise ValueError(
            f"{cells.path}, line {cells.lines[farthest]}: the score {cells.scores[farthest]:g} in "
            f"the column '{cells.name}' is far from the others: {is_outside.sum()} of "
            f"{len(scores)} are outside of {inner_low:g} to {inner_high:g}, and all would be "
            f"scaled from {first:g} to {last:g}. Repair the line; if it is right, give the range: "
            f"--min-score {first:g} --max-score {last:g}."
        )
    return (first if low is None else low), (last if high is None else high)


def _not_a_number(cells: GoldCells, line: int, text: str) -> ValueError:
    return ValueError(
        f"{cells.path}, line {line}: expected a number in the column of scores '{cells.name}', got "
        f"'{text}' ({numpy.isnan(cells.scores).sum()} of its {len(cells.scores)} cells are no "
        "numbers). Repair the line, and write decimals with a point. If it holds labels, give "
        "--label."
    )


def _usual_range(scores: numpy.ndarray) -> tuple[float, float]:
    """Return the first of the usual ranges that holds sorted scores, or the lowest and highest."""
    lowest = float(scores[0])
    highest = float(scores[-1])
    for low, high in _RANGES:
        if low <= lowest and highest <= high:
            return low, high
    return lowest, highest
