"""Whether the first row of a table is a header or data."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

_END = re.compile(
    r".*\S\s+\S.*[.?!\u2026]['\")\u201d\u2019]?|.{3,}[\u3002\uff1f\uff01]['\")\u201d\u2019\u300d]?", re.DOTALL
)
_LONG = 7  # words; names of columns have fewer, if they are no sentences
_YEARS = range(1900, 2101)
_CLASSES = 20  # the most values of a column of labels
_BOOLEANS = frozenset(("yes", "no", "true", "false", "y", "n", "t", "f"))
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
# Words of which one tells that a row has the names of columns, be they several words or characters.
_NAMED = frozenset(
    """id ids idx index nr text texts string sentence sentences question questions query queries answer answers phrase
    title titles headline body document documents doc passage paragraph context content description summary abstract
    name names label labels score scores rating grade similarity category class type topic tag gold premise hypothesis
    anchor positive negative source target src tgt prompt response claim evidence first second third left right
    column col field language lang date time year url link author paraphrase original
    translation reference
    satz frage antwort titel beschreibung quelle ziel wert texte titre r\u00e9ponse texto pregunta respuesta
    oraci\u00f3n frase""".split()  # noqa: SIM905
)
_ALONE = frozenset(["a", "b", "c", "d", "one", "two", "three"])  # names if nothing is beside them
_NAMED_CHARACTERS = re.compile(
    "[\u53e5\u554f\u95ee\u7b54\u6807\u6a19\u9898\u984c\u7b7e\u5206\u6587\u6bb5\u7c7b\u540d\u5217\u5e8f]"
)


def is_data(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is like those below it, and not the names of the columns.

    It is data if it has a number over numbers (but not years, or 0, 1, 2, ...), or a cell that is repeated in a column
    of few values, or if all columns of several words begin with a sentence. It is a header if a column of numbers
    begins with anything else. It is taken as data, too, if it has no word that is common in headers, and is of the kind
    of the others: it has a boolean over booleans, a value that comes again, or phrases over phrases as long.
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
    is_coded = all(_is_coded(names[place], columns[place]) for place in others)
    if texts and is_coded and all(_is_sentence(names[place]) for place in texts):
        return True
    return not numeric and not any(map(_is_named, names)) and _is_alike(names, columns)


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has a common name of a column, or another name over numbers."""
    rows = [row for row in rows if len(row) >= len(first)]
    names = [name.strip() for name in first]
    columns = [[row[place].strip() for row in rows] for place in range(len(first))]
    is_over = any(
        name and not _is_number(name) and _are_numbers(cells) for name, cells in zip(names, columns, strict=True)
    )
    is_named = any(map(_is_named, names)) and not any(map(_is_sentence, names))
    return is_over or (is_named and not is_data(first, rows))


def _is_alike(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Return whether words or phrases of the first row are as those below it."""
    filled = [[cell for cell in cells if cell] for cells in columns]
    pairs = [(name, cells) for name, cells in zip(names, filled, strict=True) if name and cells]
    if any(name.lower() in _BOOLEANS and all(cell.lower() in _BOOLEANS for cell in cells) for name, cells in pairs):
        return True
    phrases = [(name, cells) for name, cells in pairs if 2 * sum(map(_is_phrase, cells)) > len(cells)]
    if len(names) > 1 and any(name in cells for name, _ in pairs for _, cells in pairs):
        return True
    return bool(phrases) and all(_is_phrase(name) and _is_as_long(name, cells) for name, cells in phrases)


def _is_as_long(name: str, cells: Sequence[str]) -> bool:
    """Return whether a phrase is about as long as others, and begins with a capital only if most of them do."""
    capitals = sum(cell[0].isupper() for cell in cells)
    return 2 * len(name) >= median(map(len, cells)) and (not name[0].isupper() or 2 * capitals >= len(cells))


def _is_phrase(text: str) -> bool:
    return len(text.split()) > 1 or bool(_UNSPACED.search(text))


def _is_named(name: str) -> bool:
    """Return whether a cell has a word that is common in the names of columns."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = {re.sub(r"[\W\d_]+", "", word.lower()) for word in re.split(r"[\s_\-./]+", spaced)}
    is_short = len(words) <= 3 or any(mark in name for mark in "_()")
    return (
        (is_short and bool(words & _NAMED))
        or words <= _ALONE
        or (len(name) < 8 and bool(_NAMED_CHARACTERS.search(name)))
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
    if not numbers or all(number.isdecimal() and int(number) in _YEARS for number in numbers):
        return True
    follow = all(number.isdecimal() for number in numbers) and int(numbers[0]) in (0, 1)
    return follow and len(numbers) > 1 and all(int(after) == int(before) + 1 for before, after in pairwise(numbers))


def _is_class(name: str, cells: Sequence[str]) -> bool:
    """Return whether a name is a label that comes again."""
    return cells.count(name) > 1 and bool(name) and not _is_number(name) and len(set(cells)) <= _CLASSES


def _are_texts(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return 2 * sum(len(cell.split()) > 1 or bool(_END.fullmatch(cell)) for cell in filled) > len(filled)


def _is_sentence(name: str) -> bool:
    return len(name.split()) >= _LONG or bool(_END.fullmatch(name))


def _is_coded(name: str, cells: Sequence[str]) -> bool:
    """Return whether a cell has digits, as those below, such as a date; or is one of them; or all are empty."""
    filled = [cell for cell in cells if cell]
    return not (name or filled) or name in cells or (_has_digit(name) and all(map(_has_digit, filled)))


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)
