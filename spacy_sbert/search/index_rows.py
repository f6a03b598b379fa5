"""Rows of an index: the text, the id and the other columns that are saved beside each vector."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import UnionType
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
    texts: Sequence[str] | None,
    ids: Sequence[RowId] | None,
    columns: Sequence[Mapping[str, object]] | None,
) -> list[IndexRow] | None:
    """Return the rows of texts, ids and other columns; None if none are given.

    RAISES (TypeError): if a text or an id is missing, or of another type. (ValueError): if counts
        differ, or columns are no dicts of JSON values.
    """
    given = (_column("texts", texts, str), checked_ids(ids), _checked_columns(columns))
    counts = [len(values) for values in given if values is not None]
    if not counts:
        return None
    check_row_count(min(counts), max(counts))
    rows = zip_longest(*(values or () for values in given))
    return [IndexRow(text, row_id, columns=record) for text, row_id, record in rows]


def checked_ids(ids: Iterable[RowId] | None) -> list[Any] | None:
    """Return ids as they are saved. RAISES (TypeError): if one is missing, or of another type."""
    return _column("ids", ids, str | int)


def _checked_columns(columns: Iterable[Any] | None) -> list[NamedRecord] | None:
    if columns is None:
        return None
    checked: list[NamedRecord] = []
    for number, record in enumerate(columns):
        check(f"columns[{number}]", record, dict[str, JsonValue])
        checked.append({**record})
    return checked


def _column(name: str, values: Iterable[Any] | None, kinds: type | UnionType) -> list[Any] | None:
    if values is None:
        return None
    expected = "a str" if kinds is str else "a str or a whole number"
    column: list[Any] = []
    for number, value in enumerate(one_column(values)):
        item = value
        if isinstance(value, numpy.generic):
            item = value.item()
        if not isinstance(item, kinds) or isinstance(item, bool):
            raise TypeError(
                f"Cannot index {name}[{number}] = {short_repr(item)}: expected {expected} for each "
                "vector."
            )
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
    names = [name for name in ("text", "id") if rows and getattr(rows[0], name) is not None]
    return " and ".join(f"{name}s" for name in names) or "neither texts nor ids"


def check_distinct(ids: Iterable[object], where: str) -> None:
    """Raise ValueError for an id that is there more than once. where (str): for the message."""
    doubled = [row_id for row_id, count in Counter(ids).items() if count > 1]
    if doubled:
        raise ValueError(
            f"The id {short_repr(doubled[0])} is {where} more than once. Only vectors with an id "
            "of their own can be added, replaced and deleted by id."
        )


def find_ids(rows: Sequence[IndexRow], ids: Sequence[RowId]) -> dict[RowId, int]:
    """Return the ids that rows have, with the numbers of these.

    RAISES (ValueError): if an id is in several rows, or given more than once.
    """
    if not ids:
        return {}
    check_distinct(ids, "given")
    check_distinct((row.id for row in rows), "in the index")
    wanted = set(ids)
    return {
        row.id: number for number, row in enumerate(rows) if row.id is not None and row.id in wanted
    }
