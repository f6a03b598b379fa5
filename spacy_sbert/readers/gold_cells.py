"""How a column of gold is read, by its cells: as a score or a label, and what marks a blank."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

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


class _Range(NamedTuple):
    """The lowest and the highest of scores."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


_RANGES = (
    _Range(0.0, 1.0),
    _Range(1.0, 5.0),
    _Range(0.0, 5.0),
    _Range(-1.0, 1.0),
    _Range(1.0, 10.0),
    _Range(0.0, 10.0),
    _Range(0.0, 100.0),
)


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
        marks = _find_marks(self.values)
        blank = {""} & self.values.keys()
        if len(self.values.keys() - marks - blank) < 2:
            return tuple(blank)
        return (*sorted(marks), *blank)

    def is_binary(self, marks: Collection[str]) -> bool:
        """Return whether all values but the marks are 0 and 1, or booleans, and both are there."""
        return self._numbers(marks) == {0.0, 1.0}

    @property
    def is_score(self) -> bool:
        """Whether the gold of pairs is a score.

        By its name, or as a label that is 0 and 1, or fractions.
        """
        if not is_label_name(self.name):
            return True
        numbers = self._numbers(self.missing)
        if numbers <= {0.0, 1.0}:
            return True
        if any(map(math.isnan, numbers)):
            return False
        return not all(number.is_integer() for number in numbers)

    def _numbers(self, marks: Collection[str]) -> set[float]:
        """Return all values but the marks as numbers, nan for those that are none."""
        return {cell_number(value) for value in self.values if value not in marks}


def _find_marks(values: Iterable[str]) -> set[str]:
    """Return the values that mark records without a label, except "".

    -1 is one of them beside words or three classes from 0 on, as SNLI and its copies have it, and
    None beside numbers, True and False.
    """
    filled = set(filter(None, values))
    marks = {value for value in filled if value.lower() in _NOT_GIVEN}
    none = {value for value in filled if value.lower() == _NONE}
    minus = {value for value in filled if as_number(value) == -1}
    labels = filled - marks - none - minus
    words = {value.lower() for value in labels if math.isnan(as_number(value))}
    if words <= _TRUTHS:
        marks |= none
    if words or _are_classes(set(map(as_number, labels))):
        marks |= minus
    return marks


def _are_classes(numbers: Collection[float]) -> bool:
    """Return whether numbers are those of three classes or more, from 0 on."""
    return len(numbers) > 2 and all(number >= 0 and number.is_integer() for number in numbers)


def describe_gold(cells: GoldCells, n_texts: int, given: GoldColumn) -> GoldColumn:
    """Find out whether gold is a score or a label, what marks a blank, and the range of scores.

    n_texts (int): of an example. given: what options say.
    RAISES (ValueError): for scores that are no numbers, or far from all others.
    """
    gold = given
    if given.score is None and given.label is None:
        if n_texts != SINGLE and cells.is_score:
            gold = replace(given, score=cells.name)
        else:
            gold = replace(given, label=cells.name)
    missing = gold.missing
    if gold.label == cells.name or is_label_name(cells.name):
        missing = tuple(dict.fromkeys((*missing, *cells.missing)))
    gold = replace(
        gold,
        missing=missing,
        is_binary=cells.is_binary(missing),
        values={value: n for value, n in cells.values.items() if value not in missing},
    )
    if gold.score == cells.name:
        return _with_range(gold, cells)
    return gold


def _with_range(gold: GoldColumn, cells: GoldCells) -> GoldColumn:
    """Return gold with the range of its scores, of which either end may be given.

    RAISES (ValueError): for bad scores, and for few that are far away, see _check_far_scores.
    """
    if cells.first_bad is not None and not gold.missing:
        raise _not_a_number(cells, *cells.first_bad)
    low = gold.min_score
    high = gold.max_score
    is_given = low is not None and high is not None
    scores = numpy.sort(cells.scores[~numpy.isnan(cells.scores)])
    if is_given or gold.is_binary or not len(scores):
        return gold
    n_few = _n_few(len(scores))
    n_low = n_few if low is None else 0
    n_high = n_few if high is None else 0
    inner = scores[n_low : len(scores) - n_high]
    whole = _usual_range(scores)
    _check_far_scores(cells, whole, _usual_range(inner))
    if low is None:
        low = whole.low
    if high is None:
        high = whole.high
    return replace(gold, min_score=low, max_score=high)


def _n_few(n_scores: int) -> int:
    """Return how many scores at an end do not decide the range: 1 of 100, or one of ten or more."""
    if n_scores < 10:
        return 0
    return max(n_scores // 100, 1)


def _check_far_scores(cells: GoldCells, whole: _Range, inner: _Range) -> None:
    """Refuse few scores that double the range of the others, or make it an unusual one.

    whole: the range of all scores. inner: that of all but the few at each end that was not given.
    """
    is_wider = whole.width >= 2 * inner.width > 0
    is_unusual = inner in _RANGES and whole not in _RANGES
    if not is_wider and not is_unusual:
        return
    distances = numpy.maximum(inner.low - cells.scores, cells.scores - inner.high)
    n_far = numpy.count_nonzero(distances > 0)
    if not n_far:
        return
    n_scores = numpy.count_nonzero(~numpy.isnan(cells.scores))
    farthest = numpy.nanargmax(distances)
    raise ValueError(
        f"{cells.path}, line {cells.lines[farthest]}: the score {cells.scores[farthest]:g} in the "
        f"column '{cells.name}' is far from the others: {n_far} of {n_scores} are outside of "
        f"{inner.low:g} to {inner.high:g}, and all would be scaled from {whole.low:g} to "
        f"{whole.high:g}. Repair the line; if it is right, give the range: --min-score "
        f"{whole.low:g} --max-score {whole.high:g}."
    )


def _not_a_number(cells: GoldCells, line: int, text: str) -> ValueError:
    return ValueError(
        f"{cells.path}, line {line}: expected a number in the column of scores '{cells.name}', got "
        f"'{text}' ({numpy.isnan(cells.scores).sum()} of its {len(cells.scores)} cells are no "
        "numbers). Repair the line, and write decimals with a point. If it holds labels, give "
        "--label."
    )


def _usual_range(scores: numpy.ndarray) -> _Range:
    """Return the first of the usual ranges that holds sorted scores, or the lowest and highest."""
    found = _Range(float(scores[0]), float(scores[-1]))
    for usual in _RANGES:
        if usual.low <= found.low and found.high <= usual.high:
            return usual
    return found
