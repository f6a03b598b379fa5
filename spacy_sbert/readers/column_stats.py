"""Statistics of the columns of a table, and its malformed lines."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from .column_names import CLASS_NAMES, GOLD_NAMES, LABEL_NAMES, SCORE_NAMES, gold_key, normalized, only_scores
from .examples import from_boolean

SAID = 5  # lines of a kind that a message names


class BadLines:
    """The bad lines of a table.

    path (Path): the table.
    """

    def __init__(self, path: Path):
        self.path = path
        # By the message without its values: the message of the first, lines of others, how many there are.
        self._kinds: dict[str, tuple[str, list[int], int]] = {}

    def add(self, error: ValueError, line: int | None = None) -> None:
        """Note an error of a line, or one whose message names all its lines; of a kind the first is shown in full."""
        said = str(error)
        kind = re.sub(r"'[^']*'|[\d.,-]+", "", said)
        first, known, before = self._kinds.get(kind, (said, [], 0))
        others = [line] if before and line is not None and len(known) < SAID else []
        self._kinds[kind] = first, [*known, *others], before + 1

    def check(self) -> None:
        """Raise a ValueError if there are bad lines."""
        said = [
            f"{first} The same in {listed(others, count - 1)}." if others else first
            for first, others, count in self._kinds.values()
        ]
        if len(said) == 1:
            raise ValueError(said[0])
        if said:
            raise ValueError(
                "{path} has lines with {count} kinds of faults:\n{said}".format(
                    path=self.path, count=len(said), said="\n".join(said)
                )
            )


def listed(lines: Sequence[int], count: int) -> str:
    """Return the numbers of the first of so many lines."""
    named = ", ".join(map(str, lines[:SAID]))
    more = count - len(lines[:SAID])
    return f"line{'s' if count > 1 else ''} {named}{f' and {more} more' if more else ''}"


_CLASSES = 20  # the most different values of a column of labels, unless its name says that it has labels
MANY = 1000  # different values, beyond which a column has no labels
_MOSTLY = 0.5  # of the cells that are not blank: numbers, of a column of numbers in which some cells are bad
_NEARLY = 0.9  # the same of booleans written as words, in a column whose name says that it holds scores
NAMES = 2**16  # whole numbers of which none comes twice are names of rows: more need not be in memory
_NO_LABEL_NUMBER = -1.0  # as SNLI and its copies mark pairs without a gold label
# As spreadsheets, pandas, R and databases write a missing value, in lower case; "none" beside numbers alone.
NOT_GIVEN = frozenset(("-", "--", "---", "?", "na", "n/a", "#n/a", "#na", "<na>", "null", "nan", "\\n"))
_NONE = "none"
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")  # a number as some languages write it
_LETTERS = re.compile(r"[^\W\d_]+")
_URL = re.compile(r"(https?://|www\.|[\w.+-]+@[\w-]+\.)\S*", re.IGNORECASE)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ABBREVIATED = "jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun"
_ZONES = "am|pm|utc|gmt|cet|cest|est|edt|pst|pdt|t|z|st|nd|rd|th|h|of|at"
_DATE_WORDS = frozenset(f"{_MONTHS}|{_DAYS}|{_ABBREVIATED}|{_ZONES}".split("|"))
# Chinese characters, kana, Thai, Lao, Myanmar, Khmer, Tibetan: scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f]{2}")


def as_number(value: object) -> float:
    """Return a cell as a number; nan if it is none, or not finite. "True" and "yes" are 1, "False" and "no" 0."""
    try:
        number = float(cast(float, from_boolean(value)))
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _as_class(value: str) -> float:
    """Return a class that is written as a number; nan for words, of which "yes" is one here."""
    return math.nan if from_boolean(value) is not value else as_number(value)


def _is_word(text: str) -> bool:
    """Whether something between white space has a word in it, and is no URL and no part of a date."""
    return not _URL.match(text) and any(word.lower() not in _DATE_WORDS for word in _LETTERS.findall(text))


@dataclass
class ColumnFacts:
    """Statistics of the cells of a column.

    count: number of cells. blank: cells without a value. nested: the line of the first list or object, 0 for none.
    spaced: cells of several words, or of a script without spaces. worded: cells with a word that is no date, URL or id.
    odd: cells that are a date or a URL.
    numbers, low, high: cells that are finite numbers. like_numbers: cells that are numbers, or are with a comma for the
    point; booleans written as words do not count. bad: the first cells that are no numbers, each with its line.
    values: how often each value comes, for up to MANY + 1 values. words: number of words in all cells.
    repeats: whether a whole number comes twice, among the first NAMES.
    """

    name: str
    count: int = 0
    spaced: int = 0
    worded: int = 0
    words: int = 0
    odd: int = 0
    blank: int = 0
    nested: int = 0
    numbers: int = 0
    like_numbers: int = 0
    low: float = math.inf
    high: float = -math.inf
    is_whole: bool = True
    bad: list[tuple[int, object]] = field(default_factory=list)
    values: Counter[str] = field(default_factory=Counter)
    repeats: bool = False
    _seen: set[float] = field(default_factory=set)

    def add(self, line: int, value: object) -> None:
        """Look at a cell."""
        self.count += 1
        if isinstance(value, float) and math.isnan(value):  # as pandas has missing values
            value = None
        if value is not None and not isinstance(value, str | int | float):
            self.nested = self.nested or (line if isinstance(value, list | tuple | Mapping) else 0)
        text = "" if value is None else str(value).strip()
        if not text:
            self.blank += 1
        elif text in self.values or len(self.values) <= MANY:
            self.values[text] += 1
        number = as_number(value)
        if math.isnan(number):
            if text.lower() not in NOT_GIVEN:
                self._add_text(text)
            if len(self.bad) < SAID:
                self.bad.append((line, value))
            self.like_numbers += bool(_COMMA.fullmatch(text))
            return
        self.numbers += 1
        self.like_numbers += from_boolean(value) is value or isinstance(value, bool)
        self.is_whole = self.is_whole and number == int(number)
        self.low, self.high = min(self.low, number), max(self.high, number)
        if self.is_whole and not self.repeats and len(self._seen) < NAMES:
            self.repeats = number in self._seen
            self._seen.add(number)

    def _add_text(self, text: str) -> None:
        words = text.split()
        self.words += len(words)
        is_spaced = len(words) > 1 or not (text.isascii() or _UNSPACED.search(text) is None)
        self.spaced += is_spaced
        is_worded, has_digits = any(_is_word(word) for word in words), any(map(str.isdigit, text))
        self.worded += is_worded and (is_spaced or not has_digits)
        self.odd += bool(_URL.match(text)) or (not is_worded and has_digits and not text.isalnum())

    @property
    def key(self) -> str:
        """The name as lists of well-known names have it."""
        return normalized(self.name)

    @cached_property
    def gold_key(self) -> str:
        """The well-known name of gold that the name is, or is made of; else the same as key."""
        return gold_key(self.name)

    @property
    def filled(self) -> int:
        """The number of cells that are not blank."""
        return self.count - self.blank

    @property
    def is_number(self) -> bool:
        """Whether all cells are numbers."""
        return not self.bad

    @property
    def is_mostly_number(self) -> bool:
        """Whether cells are numbers, but for some that are blank or something else: a slip, or no gold."""
        is_named = self.gold_key in SCORE_NAMES and self.numbers > _NEARLY * self.filled
        return self.is_number or is_named or self.like_numbers > _MOSTLY * self.filled

    @property
    def has_words(self) -> bool:
        """Whether cells are words: no numbers, dates, URLs, ids, lists or objects."""
        return not self.nested and not self.is_mostly_number and self.worded > _MOSTLY * self.filled

    @property
    def is_text(self) -> bool:
        """Whether most cells have several words."""
        return self.has_words and self.spaced >= _MOSTLY * self.count

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The values that mark a row without gold: "-", "NA" and the like, and -1 beside words or classes from 0 on.

        -1 beside 0 and 1 alone may be a class: it is taken as missing if it is rarer than both. "None" is a class
        beside words, and so are all marks where another value has no letter or digit, such as "+" and "-".
        """
        if len(self.values) > (MANY if self.gold_key in LABEL_NAMES else _CLASSES) or only_scores(self.gold_key):
            return ()
        minus = {value for value in self.values if as_number(value) == _NO_LABEL_NUMBER}
        marks = {value for value in self.values if value.lower() in NOT_GIVEN}
        others = {value: n for value, n in self.values.items() if value not in minus | marks}
        none = {value for value in others if value.lower() == _NONE}
        if none and not any(map(math.isnan, map(_as_class, others.keys() - none))):
            marks |= none
            others = {value: n for value, n in others.items() if value not in none}
        is_signs = any(not any(map(str.isalnum, value)) for value in others)
        if len(others) < 2 or is_signs:
            return ()
        return tuple(sorted(marks | (minus if self._is_minus_missing(minus, others) else set())))

    def _is_minus_missing(self, minus: set[str], others: Mapping[str, int]) -> bool:
        """Whether -1 marks a row without gold. others: how often each value comes that may be a class."""
        numbers = [_as_class(value) for value in others]
        if not minus or all(map(math.isnan, numbers)):
            return bool(minus)
        if not all(number >= 0 and number.is_integer() for number in numbers):  # nan is not
            return False
        is_rare = sum(self.values[value] for value in minus) < min(others.values())
        return len(set(numbers)) > 2 or is_rare

    @cached_property
    def classes(self) -> dict[str, int]:
        """How often each value comes, without those that mark a missing label."""
        return {value: n for value, n in self.values.items() if value not in self.missing}

    @property
    def is_binary(self) -> bool:
        """Whether all values are 0 or 1, or booleans."""
        if len(self.values) > _CLASSES or {as_number(value) for value in self.classes} != {0.0, 1.0}:
            return False
        return not (self.blank and only_scores(self.gold_key))

    @property
    def repeats_values(self) -> bool:
        """Whether there are few different values, each of several examples."""
        return 0 < len(self.classes) <= _CLASSES and sum(self.classes.values()) >= 2 * len(self.classes)

    @property
    def may_be_class(self) -> bool:
        """Whether the values may be the classes of single texts: a label, 0 and 1, or few numbers."""
        return self.is_label or self.is_binary or (self.is_mostly_number and self.repeats_values)

    @property
    def is_label(self) -> bool:
        """Whether there are few values, each of several examples.

        Whole numbers, more values than 20, and values that come once are labels only under a name that says so.
        """
        if self.nested or self.is_binary or not self.classes or self.odd > _MOSTLY * self.filled:
            return False
        is_named = self.gold_key in LABEL_NAMES
        few, n_classes = self.repeats_values, len(self.classes)
        if is_named and len(self.values) <= MANY:
            is_few = n_classes <= _CLASSES and self.gold_key in CLASS_NAMES and not self.is_text
            few = few or is_few or sum(self.classes.values()) >= 2 * n_classes
        numbers = [as_number(value) for value in self.classes]
        if any(map(math.isnan, numbers)) and not self.is_mostly_number:
            return few and (is_named or n_classes > 1)
        return few and is_named and all(math.isnan(number) or number == int(number) for number in numbers)

    @property
    def is_score(self) -> bool:
        """Numbers that are no names of rows, which are whole and differ; some may be bad, which is to be repaired."""
        is_name = self.is_whole and not self.repeats and self.count > 1 and self.gold_key not in GOLD_NAMES
        return self.is_binary or (self.is_mostly_number and not self.is_label and not is_name)
