"""Infer the delimiter of a table and whether its first row is a header."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from .text_lines import IN_QUOTES, SEPARATED, format_suffix, is_quoted, is_wide, read_lines, separated

END = re.compile(
    r".*\S\s+\S.*[.?!\u2026]['\")\u201d\u2019]?|.{3,}[\u3002\uff1f\uff01]['\")\u201d\u2019\u300d]?", re.DOTALL
)
LONG = 7  # words; names of columns have fewer, if they are no sentences
YEARS = range(1900, 2101)
CLASSES = 20  # the most values of a column of labels
BOOLEANS = frozenset(("yes", "no", "true", "false", "y", "n", "t", "f"))
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
# Words of which one tells that a row has the names of columns, be they several words or characters.
NAMED = frozenset(
    """id ids idx index nr text texts string sentence sentences question questions query queries answer answers phrase
    title titles headline body document documents doc passage paragraph context content description summary abstract
    name names label labels score scores rating grade similarity category class type topic tag gold premise hypothesis
    anchor positive negative source target src tgt prompt response claim evidence first second third left right
    column col field language lang date time year url link author paraphrase original
    translation reference
    satz frage antwort titel beschreibung quelle ziel wert texte titre r\u00e9ponse texto pregunta respuesta
    oraci\u00f3n frase""".split()  # noqa: SIM905
)
ALONE = frozenset(["a", "b", "c", "d", "one", "two", "three"])  # names if nothing is beside them
NAMED_CHARACTERS = re.compile(
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
    if any(name.lower() in BOOLEANS and all(cell.lower() in BOOLEANS for cell in cells) for name, cells in pairs):
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
    return len(text.split()) > 1 or bool(UNSPACED.search(text))


def _is_named(name: str) -> bool:
    """Return whether a cell has a word that is common in the names of columns."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = {re.sub(r"[\W\d_]+", "", word.lower()) for word in re.split(r"[\s_\-./]+", spaced)}
    is_short = len(words) <= 3 or any(mark in name for mark in "_()")
    return (
        (is_short and bool(words & NAMED)) or words <= ALONE or (len(name) < 8 and bool(NAMED_CHARACTERS.search(name)))
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


DIRECTIVE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel writes and reads it as the first line
RULE = re.compile(r"\s*[|+]?[\s:]*-{2,}[:\s]*([|+][\s:]*-{2,}[:\s]*)*[|+]?\s*")  # as Markdown draws a table
SAMPLE_LINES, SAMPLE_CHARACTERS = 200, 2**18
TAB = "\t"


@dataclass(frozen=True)
class Dialect:
    """How the columns of a table are written.

    quoted (bool): whether columns may be quoted as in RFC 4180; otherwise quotes belong to the text.
    start (int): how many lines are before the header. skip_spaces (bool): whether spaces follow the delimiters.
    """

    delimiter: str
    quoted: bool = True
    start: int = 0
    skip_spaces: bool = False


class Sample(NamedTuple):
    """The first lines of a file. is_cut (bool): whether there are more."""

    lines: list[str]
    is_cut: bool


class Shape(NamedTuple):
    """The columns of a sample by one delimiter.

    width: of the first record. is_common: whether half of the others have it, too. is_even: whether all have, and it is
    2 or more. is_narrow: whether all records have one column. is_pure: whether all quotes are those of columns.
    """

    width: int
    is_common: bool
    is_even: bool
    is_narrow: bool
    is_pure: bool
    skip_spaces: bool


def find_dialect(path: Path, *, header: bool = True) -> Dialect:
    """Return how the columns of a .csv, .tsv or .txt are written.

    A first line such as `sep=;` names the separator. Otherwise it is a tab in .tsv; in .csv a comma, or a semicolon, a
    tab or a pipe if it splits all of the first 200 lines into columns and the comma does not; in .txt a tab first.
    Columns are quoted, but with tabs only if all quotes balance, see is_quoted.

    header (bool): whether the first line names the columns.
    RAISES (ValueError): if two separators fit, quotes can be read in two ways, or the table is drawn, as in Markdown.
    """
    sample = _sample(path)
    _check_drawn(path, sample.lines)
    directive = DIRECTIVE.fullmatch(sample.lines[0]) if sample.lines else None
    if directive is not None:
        return Dialect(directive[1], start=1)
    is_sheet = is_wide(path)  # as spreadsheets write it, with tabs and quotes
    if format_suffix(path) == ".tsv":
        delimiter, skip_spaces = TAB, False
    else:
        preferred = TAB if is_sheet or format_suffix(path) == ".txt" else ","
        delimiter, skip_spaces = _separator(path, sample, preferred, header=header)
    return Dialect(delimiter, delimiter != TAB or is_quoted(path, header=header, is_sheet=is_sheet), 0, skip_spaces)


def _sample(path: Path) -> Sample:
    lines: list[str] = []
    size = 0
    for _, text in islice(read_lines(path), SAMPLE_LINES + 1):
        if len(lines) == SAMPLE_LINES or size > SAMPLE_CHARACTERS:
            return Sample(lines, True)
        lines.append(text)
        size += len(text)
    return Sample(lines, False)


def _check_drawn(path: Path, lines: Sequence[str]) -> None:
    """RAISES (ValueError): if the header has pipes, and a rule of hyphens and pipes is above or below it."""
    first = [(line, text) for line, text in enumerate(lines, 1) if text.strip() and not text.startswith("#")][:2]
    for (_, header), (_, rule) in (first, first[::-1]) if len(first) > 1 else ():
        if "|" in header and re.search(r"[|+]", rule) and RULE.fullmatch(rule):
            raise ValueError(
                f"{path}, line {first[0][0]}: a table in Markdown, or one that is drawn with hyphens and "
                "pipes. Save it as .csv, .tsv or .jsonl."
            )


def _separator(path: Path, sample: Sample, preferred: str, *, header: bool) -> tuple[str, bool]:
    shapes = {delimiter: _shape(sample, path, delimiter) for delimiter in SEPARATED}
    even = [delimiter for delimiter, shape in shapes.items() if shape.is_even]
    pure = [delimiter for delimiter in even if shapes[delimiter].is_pure]
    own = shapes[preferred]
    found = preferred
    if len(pure or even) == 1 and (header or not own.is_narrow or not _is_prose(sample.lines, even[0])):
        found = (pure or even)[0]
    elif len(even) > 1 and not (own.is_even and preferred == TAB):
        said = " and ".join(SEPARATED[one] for one in pure or even)
        raise ValueError(
            f"{path}, line {1}: {said} may both be the separator. Make the first line sep={(pure or even)[0]} "
            "(or the other one), or write .jsonl."
        )
    elif header and own.width == 1:  # the header may have another, and some other line be bad
        split = [one for one, shape in shapes.items() if shape.width > 1 and shape.is_common]
        found = split[0] if len(split) == 1 else preferred
    return found, shapes[found].skip_spaces


def _shape(sample: Sample, path: Path, delimiter: str) -> Shape:
    records, skip_spaces = _records(sample, path, delimiter), False
    if any(re.search(rf'{re.escape(delimiter)} +"', line) for line in sample.lines):
        spaced = _records(sample, path, delimiter, skip_spaces=True)
        if spaced is not None and (records is None or _stripped(spaced) != _stripped(records)):
            records, skip_spaces = spaced, True
    is_pure = skip_spaces or _is_pure(sample, delimiter)
    if delimiter == TAB and not _is_even(records):
        records, is_pure = [line.rstrip("\r\n").split(TAB) for line in sample.lines if line.strip()], True
    records = records or []
    width = len(records[0]) if records else 0
    is_common = 2 * (sum(len(record) == width for record in records) - 1) >= len(records) - 1
    is_narrow = all(len(record) == 1 for record in records)
    return Shape(width, is_common, _is_even(records), is_narrow, is_pure, skip_spaces)


def _is_pure(sample: Sample, delimiter: str) -> bool:
    text, mark = "".join(sample.lines), re.escape(delimiter)
    if '"' not in text:
        return True
    cell = rf'(?:"{IN_QUOTES}"|[^"\r\n{mark}]*+)'
    whole = re.match(rf"(?:{cell}(?:{mark}{cell})*+[\r\n]++)*+(?:{cell}(?:{mark}{cell})*+\Z)?", text)
    rest = text[whole.end() if whole else 0 :]
    return not rest or (sample.is_cut and bool(re.fullmatch(rf'(?:{cell}{mark})*+"{IN_QUOTES}', rest)))


def _records(sample: Sample, path: Path, delimiter: str, *, skip_spaces: bool = False) -> list[list[str]] | None:
    """Return the records of a sample, None if its quotes do not match."""
    found = []
    try:
        for _, columns in separated(sample.lines, path, delimiter, skip_spaces=skip_spaces):
            if any(column.strip() for column in columns):
                found.append(columns)
    except ValueError as error:
        if not (sample.is_cut and "unexpected end" in str(error.__cause__)):
            return None
    return found


def _is_even(records: Sequence[Sequence[str]] | None) -> bool:
    if not records or len(records[0]) < 2:
        return False
    width = len(records[0])
    return all(len(record) >= width and not any(record[width:]) for record in records)


def _stripped(records: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[column.lstrip(" ") for column in record] for record in records]


def _is_prose(lines: Sequence[str], delimiter: str) -> bool:
    """Whether a separator may be punctuation: there is one line, or a space follows it everywhere."""
    filled = [line for line in lines if line.strip()]
    return len(filled) < 2 or all(line.count(delimiter) == line.count(f"{delimiter} ") for line in filled)
