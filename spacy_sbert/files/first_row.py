"""Whether the first row of a table is data, where the names of columns are expected."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise

END = re.compile(
    r".*\S\s+\S.*[.?!\u2026]['\")\u201d\u2019]?|.{3,}[\u3002\uff1f\uff01]['\")\u201d\u2019\u300d]?", re.DOTALL
)
LONG = 7  # words; names of columns have fewer, if they are no sentences
YEARS = range(1900, 2101)
CLASSES = 20  # the most values of a column of labels


def is_data(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is like those below it, and not the names of the columns.

    It is data if it has a number over numbers (but not years, or 0, 1, 2, ...), or a cell that is repeated in a column
    of few values, or if all columns of several words begin with a sentence. It is a header if a column of numbers
    begins with anything else.
    rows: some of those below it, of at least as many cells.
    """
    rows = [row for row in rows if len(row) >= len(first)]
    names = [name.strip() for name in first]
    columns = [[row[place].strip() for row in rows] for place in range(len(first))]
    numeric = {place for place, cells in enumerate(columns) if _are_numbers(cells)}
    if any(names[place] and not _is_number(names[place]) for place in numeric):
        return False
    if numeric and not _are_names([name for name in names if _is_number(name)]):
        return True
    if any(_is_class(name, cells) for name, cells in zip(names, columns, strict=True)):
        return True
    texts = {
        place for place, cells in enumerate([*columns] if rows else [[name] for name in names]) if _are_texts(cells)
    }
    others = set(range(len(first))) - texts - numeric
    return (
        bool(texts)
        and all(_is_sentence(names[place]) for place in texts)
        and all(_is_coded(names[place], columns[place]) for place in others)
    )


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ".", 1))
    except ValueError:
        return math.nan


def _is_number(text: str) -> bool:
    return math.isfinite(_number(text))


def _are_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(map(_is_number, filled))


def _are_names(numbers: Sequence[str]) -> bool:
    """Return whether numbers are names of columns: none, years, or 0, 1, 2, ..."""
    if not numbers or all(number.isdecimal() and int(number) in YEARS for number in numbers):
        return True
    follow = all(number.isdecimal() for number in numbers) and int(numbers[0]) in (0, 1)
    return follow and len(numbers) > 1 and all(int(after) == int(before) + 1 for before, after in pairwise(numbers))


def _is_class(name: str, cells: Sequence[str]) -> bool:
    """Return whether a name is a label that comes again."""
    return cells.count(name) > 1 and bool(name) and not _is_number(name) and len(set(cells)) <= CLASSES


def _are_texts(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return 2 * sum(len(cell.split()) > 1 or bool(END.fullmatch(cell)) for cell in filled) > len(filled)


def _is_sentence(name: str) -> bool:
    return len(name.split()) >= LONG or bool(END.fullmatch(name))


def _is_coded(name: str, cells: Sequence[str]) -> bool:
    """Return whether a cell has digits, as those below, such as a date; or is one of them; or all are empty."""
    filled = [cell for cell in cells if cell]
    return not (name or filled) or name in cells or (_has_digit(name) and all(map(_has_digit, filled)))


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)
