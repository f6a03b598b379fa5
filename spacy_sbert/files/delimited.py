"""Records of separated columns: .csv, .tsv and tables in .txt."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from ..errors import Errors
from .dialect import Dialect, find_dialect, parse_records
from .header import is_data, is_header
from .text_lines import BOM, format_suffix, read_lines

_NO_HEADER_HINT = "; a table without a header needs --no-header"
DELIMITED = (".csv", ".tsv", ".txt")
_SAMPLE = 1000  # rows that are compared with the first
Records = Iterator[tuple[int, list[str]]]


def read_delimited(path: Path, *, header: bool = True, keep_blank: bool = False) -> Records:
    """Read the records of a table, by the separator and the quotes that it has.

    header (bool), keep_blank (bool): see tables.read_table.
    YIELDS (int, list): the number of the line where a record starts, and its columns.
    RAISES (ValueError): if separator or quotes can be read in two ways, see find_dialect; for quotes that do not match,
        a NUL character, or what is not text.
    """
    dialect = find_dialect(path, header=header)
    if dialect.quoted:
        yield from _quoted(path, dialect, keep_blank=keep_blank)
    else:
        yield from _split(path, dialect.delimiter, dialect.start, keep_blank=keep_blank)


def read_tabs(path: Path, *, keep_blank: bool = False) -> Records:
    """Read tab-separated columns without quoting, as the official layouts of many data sets have them.

    keep_blank (bool): see tables.read_table.
    YIELDS (int, list): the number of the line and its columns.
    """
    for line, text in read_lines(path):
        if keep_blank or text.strip():
            yield line, text.rstrip("\r\n").split("\t")


def read_commas(path: Path, *, keep_blank: bool = False) -> Records:
    """Read comma-separated columns, quoted where need be (RFC 4180).

    keep_blank (bool): see tables.read_table.
    YIELDS (int, list): the number of the line where the record starts, and its columns.
    RAISES (ValueError): for quotes that do not match, or a column longer than 16 MiB.
    """
    return _quoted(path, Dialect(","), keep_blank=keep_blank)


def by_name(records: Records, names: Sequence[str], path: Path, *, header: bool = True) -> Records:
    """Read columns by the names in the first record, or without a header by number, see tables.read_table.

    RAISES (ValueError): for a missing or repeated name, a record that has more or fewer columns than the first, or a
        second header.
    """
    for name in () if header else names:
        if not name.isdecimal():
            raise ValueError(
                f"{path} is read without a header, but a column was named '{name}': expected a number counted "
                'from 0, such as --column 1 or members = ["1", "2"]. To go by names, leave --no-header out, or '
                "set header = true."
            )
    line, first = next(records, (1, []))
    if not first:
        return
    if header:
        places = _places(records, first, names, path, line)
    else:
        places = [int(name) for name in names]
        yield line, pick(first, places, names, path, line)
    width = len(first)
    if header:
        records = _check_row_names(records, width, path)
    for line, record in without_blank_end(records) if width > 1 else records:
        if len(record) != width:
            pick(record, places, names, path, line)
            check_width(record, width, path, line)
        if header and _is_same_header(record, first):
            raise ValueError(
                f"{path}, line {line}: the header comes again. Remove the line, or rename the columns in the header."
            )
        yield line, [record[place] for place in places]


def without_blank_end(records: Records) -> Records:
    """Leave out the blank lines behind the last record."""
    blank: list[tuple[int, list[str]]] = []
    for line, record in records:
        if len(record) == 1 and not record[0].strip():
            blank.append((line, record))
            continue
        yield from blank
        blank.clear()
        yield line, record


def find_columns(header: Sequence[str], names: Iterable[str], path: Path, line: int, *, hint: str = "") -> list[int]:
    """Return the places of columns in a header.

    hint (str): added to the message about a missing name.
    RAISES (ValueError): if the header does not have all of them, or one of them twice.
    """
    header = [name.strip() for name in header]
    for name in names:
        if name not in header:
            given = ", ".join(header)
            raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, column=name, given=given, hint=hint))
        if header.count(name) > 1:
            raise ValueError(f"{path}, line {line}: two columns are named '{name}'. Rename one of them.")
    return [header.index(name) for name in names]


def pick(record: Sequence[str], columns: Sequence[int], names: Sequence[str], path: Path, line: int) -> list[str]:
    """Return some columns of a record. RAISES (ValueError): if the record is too short."""
    for column, name in zip(columns, names, strict=True):
        if column >= len(record):
            raise ValueError(Errors.SHORT_LINE.format(path=path, line=line, column=name, given=len(record)))
    return [record[column] for column in columns]


def check_width(record: Sequence[str], width: int, path: Path, line: int) -> None:
    """Refuse a record that has fewer columns than expected, or more of which one is not empty."""
    if len(record) < width or any(column.strip() for column in record[width:]):
        raise ValueError(
            f"{path}, line {line}: {len(record)} columns, but the first line has {width}. Quote a text that "
            "has the separator or a line end in it, or repair the line."
        )


def check_first_row(path: Path, names: Sequence[str] = ()) -> None:
    """Refuse a .csv, .tsv or .txt whose first row is data, and not the names of its columns.

    names (Sequence[str]): some of the columns, if they are known; a row that has one is a header.
    """
    if format_suffix(path) not in DELIMITED:
        return
    records = read_delimited(path)
    line, first = next(records, (1, []))
    if not {*names} & {name.strip() for name in first}:
        _check_first(first, records, path, line)


def _check_row_names(records: Records, width: int, path: Path) -> Records:
    """Return the records. RAISES (ValueError): if a column without a name, of names of rows, may come before others.

    R writes such tables: all rows are longer than the header by one. Where the last column is empty in all of them,
    there may as well be a separator at their ends.
    """
    first = next(records, None)
    if first is None or len(first[1]) != width + 1:
        return records if first is None else chain([first], records)
    ahead = [first, *islice(records, _SAMPLE)]
    names = [record[0] for _, record in ahead]
    is_longer = all(len(record) == width + 1 and not record[-1].strip() for _, record in ahead)
    if is_longer and len(set(names)) == len(names) > 1:
        raise ValueError(
            f"{path}, line {first[0]}: {width + 1} columns as in all rows, but the header has {width}. Name "
            "the first column in the header, or remove the separators at the ends of the rows."
        )
    return chain(ahead, records)


def _is_same_header(record: Sequence[str], first: Sequence[str]) -> bool:
    """Return whether a record is the header again; of one column only if it is written the same."""
    named, again = _header(first), _header(record)
    if len(named) == 1:
        return again == named
    return len(named) > 1 and [name.lower() for name in again] == [name.lower() for name in named]


def _header(record: Sequence[str]) -> list[str]:
    """Return the names of a header, without blank ones at its end."""
    names = [name.strip().lstrip(BOM).strip(' "') for name in record]
    while names and not names[-1]:
        names.pop()
    return names


def has_header(path: Path) -> bool:
    """Whether the first row of a .csv, .tsv or .txt has the names of its columns beyond doubt."""
    records = read_delimited(path, header=False)
    _, first = next(records, (1, []))
    return is_header(first, [record for _, record in islice(records, _SAMPLE)])


def _places(records: Records, first: list[str], names: Sequence[str], path: Path, line: int) -> list[int]:
    if not set(names) <= {name.strip() for name in first}:
        _check_first(first, records, path, line)
    return find_columns(first, names, path, line, hint=_NO_HEADER_HINT)


def _check_first(first: list[str], records: Records, path: Path, line: int) -> None:
    if is_data(first, [record for _, record in islice(records, _SAMPLE)]):
        given = ", ".join(repr(name) for name in first[:3])
        raise ValueError(
            f"{path}, line {line}: the first row ({given}) looks like data. Read a table without a header with "
            "--no-header (header = false in Python and configs); if it is the header, name its columns: "
            "--members or --column."
        )


def _lines(path: Path, start: int = 0) -> Iterator[str]:
    for line, text in islice(read_lines(path), start, None):
        if "\0" in text:
            raise ValueError(
                f"{path}, line {line}: has a NUL character. Save the file as UTF-8 again, or remove the line."
            )
        yield text


def _quoted(path: Path, dialect: Dialect, *, keep_blank: bool) -> Records:
    start = dialect.start
    lines = _lines(path, start)
    for line, columns in parse_records(lines, path, dialect.delimiter, start, skip_spaces=dialect.skip_spaces):
        if keep_blank or any(column.strip() for column in columns):
            yield line, columns or [""]


def _split(path: Path, delimiter: str, start: int, *, keep_blank: bool) -> Records:
    for line, text in enumerate(_lines(path, start), start + 1):
        if keep_blank or text.strip():
            yield line, text.rstrip("\r\n").split(delimiter)
