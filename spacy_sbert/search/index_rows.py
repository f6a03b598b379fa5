"""Rows of an index: the text, the id and the other columns that are saved beside each vector."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy
from pydantic import JsonValue

from ..files.tables import NamedRecord
from ..validation import check, one_column, short_repr

RowId = str | int


class IndexRow(NamedTuple):
    """Row that is saved beside a vector: its text, an id, and the row in its file.

    columns (dict): the other columns of its table, values of JSON by name. All are None if not
        known.
    """

    text: str | None
    id: RowId | None
    row: int | None = None
    columns: NamedRecord | None = None


def check_row_count(given: int, expected: int) -> None:
    """Raise ValueError if there is not one row for each vector."""
    if given != expected:
        raise ValueError(
            f"Given {given} texts or ids for {expected} vectors: expected one for each."
        )


def checked_rows(
    texts: Iterable[str] | None,
    ids: Iterable[RowId] | None,
    columns: Iterable[Mapping[str, object]] | None,
) -> list[IndexRow] | None:
    """Return the rows of texts, ids and other columns; None if none are given.

    RAISES (ValueError): if a text or an id is missing, or of another type, columns are no dicts of
        JSON values, or counts differ. (TypeError): if they are no collections in an order.
    """
    given = (
        _column("texts", texts, str),
        checked_ids(ids),
        _column("columns", columns, dict[str, JsonValue]),
    )
    counts = [len(values) for values in given if values is not None]
    if not counts:
        return None
    check_row_count(min(counts), max(counts))
    rows = zip_longest(*(values or () for values in given))
    return [IndexRow(text, row_id, columns=record) for text, row_id, record in rows]


def checked_ids(ids: Iterable[RowId] | None) -> list[Any] | None:
    """Return ids as they are saved; for errors see checked_rows."""
    return _column("ids", ids, str | int)


def _column(name: str, values: Iterable[Any] | None, kind: object) -> list[Any] | None:
    if values is None:
        return None
    if name != "columns":
        values = one_column(values)
    column: list[Any] = []
    for number, value in enumerate(values):
        # The caller's dict may change
        item = copy(value)
        if isinstance(value, numpy.generic):
            item = value.item()
        check(f"{name}[{number}]", item, kind)
        column.append(item)
    return column


def check_alike(rows: Sequence[IndexRow], new: Sequence[IndexRow]) -> None:
    """Raise ValueError if new rows have other fields than those of an index: texts, ids."""
    theirs = _fields(rows)
    ours = _fields(new)
    if theirs != ours:
        raise ValueError(
            f"The vectors of the index have {theirs}, the new ones {ours}. Give new ones the same, "
            "or build the index again."
        )


def _fields(rows: Sequence[IndexRow]) -> str:
    if not rows:
        return "neither texts nor ids"
    names = [f"{name}s" for name in ("text", "id") if getattr(rows[0], name) is not None]
    return " and ".join(names) or "columns"


def check_distinct(ids: Iterable[object], where: str) -> None:
    """Raise ValueError for an id that is there more than once. where (str): for the message.

    1 and "1" are one id: it may be a number in one file and digits in another.
    """
    doubled = [row_id for row_id, count in Counter(map(str, ids)).items() if count > 1]
    if doubled:
        raise ValueError(
            f"The id {short_repr(doubled[0])} is {where} more than once. Vectors are added, "
            "replaced and deleted by ids that are unique: give each its own."
        )


def find_ids(rows: Sequence[IndexRow], ids: Sequence[RowId]) -> dict[str, int]:
    """Return the ids that rows have, as strings, with the numbers of these.

    RAISES (ValueError): if an id is in several rows, or given more than once.
    """
    if not ids:
        return {}
    check_distinct(ids, "given")
    numbers = {number: row.id for number, row in enumerate(rows) if row.id is not None}
    check_distinct(numbers.values(), "in the index")
    wanted = set(map(str, ids))
    return {str(row_id): number for number, row_id in numbers.items() if str(row_id) in wanted}
