"""All columns of a table, for results that keep them."""

from collections.abc import Iterator
from pathlib import Path

from .delimited import read_delimited, without_blank_end
from .lines import format_suffix
from .tables import column_names, read_objects, read_table

Columns = dict[str, object]  # a row of a table


def read_columns(path: Path, *, header: bool = True) -> Iterator[Columns]:
    """Read every row of a table with all its columns, in the order of read_text_rows.

    path (Path), header (bool): see read_table.
    YIELDS (dict): the values by name; a blank line of .csv or .tsv has one, and those at the end are left out.
    RAISES (ValueError): as read_table.
    """
    suffix = format_suffix(path)
    if suffix == ".jsonl":
        yield from (record for _, record in read_objects(path, keep_blank=True))
        return
    names = distinct(column_names(path, header=header))
    if suffix == ".parquet":
        yield from (dict(zip(names, record, strict=True)) for _, record in read_table(path, names))
        return
    records = read_delimited(path, header=header, keep_blank=True)
    if header:
        next(records, None)
    for _, record in without_blank_end(records) if len(names) > 1 else records:
        yield dict(zip(names, record, strict=False))


def distinct(names: list[str], taken: tuple[str, ...] = ()) -> list[str]:
    """Return the names, with _2, _3 and so on behind those that come again, or are taken."""
    found = list(taken)
    for name in names:
        other, number = name, 1
        while other in found:
            number += 1
            other = f"{name}_{number}"
        found.append(other)
    return found[len(taken) :]
