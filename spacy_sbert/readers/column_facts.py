"""What the values of one column of a table show: texts, scores, labels, or neither."""

import math
import re
from dataclasses import dataclass, field
from typing import cast

from .bad_lines import SAID

CLASSES = 20  # the most different values of a column of labels
SCORE_NAMES = ("score", "similarity", "sim", "rating", "grade", "gold", "gold_score", "relatedness")
LABEL_NAMES = ("label", "class", "category", "relation", "gold_label", "entailment")
SPACED = 0.5  # of the values of a column of texts have several words
MOSTLY = 0.5  # of the cells that are not blank: numbers, of a column of numbers in which some cells are bad
NAMES = 2**16  # whole numbers of which none comes twice are names of rows: more need not be in memory
COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")  # a number as some languages write it


def as_number(value: object) -> float:
    """A cell as a number; nan where it is none, or not finite."""
    try:
        number = float(cast(float, value))
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


@dataclass
class ColumnFacts:
    """What the cells of a column are.

    count: of its cells. spaced: of those with several words. blank: of those without a value. numbers, low, high: of
    those that are finite numbers. like_numbers: of those that are numbers, or are with a comma for the point. bad: the
    first cells that are no numbers, each with its line. values: the different ones, but for blanks, up to one more than
    a column of labels has.
    repeats: whether a whole number comes twice, among the first so many.
    """

    name: str
    count: int = 0
    spaced: int = 0
    blank: int = 0
    numbers: int = 0
    like_numbers: int = 0
    low: float = math.inf
    high: float = -math.inf
    is_whole: bool = True
    bad: list[tuple[int, object]] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    repeats: bool = False
    _seen: set[float] = field(default_factory=set)

    def add(self, line: int, value: object) -> None:
        """Look at a cell."""
        self.count += 1
        text = "" if value is None else str(value)
        self.spaced += len(text.split()) > 1
        if not text.strip():
            self.blank += 1
        elif len(self.values) <= CLASSES:
            self.values.add(text)
        number = as_number(value)
        if math.isnan(number):
            if len(self.bad) < SAID:
                self.bad.append((line, value))
            self.like_numbers += bool(COMMA.fullmatch(text))
            return
        self.numbers += 1
        self.like_numbers += 1
        self.is_whole = self.is_whole and number == int(number)
        self.low, self.high = min(self.low, number), max(self.high, number)
        if self.is_whole and not self.repeats and len(self._seen) < NAMES:
            self.repeats = number in self._seen
            self._seen.add(number)

    @property
    def is_number(self) -> bool:
        """Whether all cells are numbers."""
        return not self.bad

    @property
    def is_mostly_number(self) -> bool:
        """Whether cells are numbers, but for some that are blank or something else: a slip, or no gold."""
        return self.like_numbers > MOSTLY * (self.count - self.blank)

    @property
    def is_text(self) -> bool:
        return not self.is_number and self.spaced >= SPACED * self.count

    @property
    def is_binary(self) -> bool:
        return self.is_number and self.is_whole and (self.low, self.high) == (0, 1)

    @property
    def is_label(self) -> bool:
        """Few values, each of several examples; whole numbers only under a name that says so."""
        few = 1 < len(self.values) <= CLASSES and self.count >= 2 * len(self.values)
        if self.is_number:
            return few and self.is_whole and not self.is_binary and self.name.lower() in LABEL_NAMES
        if self.is_mostly_number:
            return few and self.name.lower() in LABEL_NAMES
        return few and not self.is_text

    @property
    def is_score(self) -> bool:
        """Numbers that are no names of rows, which are whole and differ; some may be bad, which is to be repaired."""
        is_name = self.is_whole and not self.repeats and self.count > 1 and self.name.lower() not in SCORE_NAMES
        return self.is_mostly_number and not self.is_label and not is_name
