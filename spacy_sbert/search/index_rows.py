"""Rows of an index: the text, the id and the other columns that are saved beside each vector."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import UnionType
from typing import Any, NamedTuple

import numpy

from ..files.tables import NamedRecord
from ..validation import one_column, short_repr

RowId = str | int


class IndexRow(NamedTuple):
    """Row that is saved beside a vector. Its fields are None if not known.

    text (str), id (str or int): see VectorIndex.build. row (int): the row in its file. columns
        (dict): the other columns of its table, values of JSON by name.
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
    """Return the rows of texts, ids and columns; None if none of them is given.

    RAISES (TypeError): if one is missing, or of another type. (ValueError): if counts differ.
    """
    given = (_texts(texts), checked_ids(ids), _columns(columns))
    counts = [len(values) for values in given if values is not None]
    if not counts:
        return None
    for count in counts:
        check_row_count(count, counts[0])
    return [
        IndexRow(text, row_id, columns=own)
        for text, row_id, own in zip_longest(*(values or () for values in given))
    ]


def _texts(values: Iterable[Any] | None) -> list[str] | None:
    return _column("texts", values, str, "a str")


def checked_ids(values: Iterable[Any] | None) -> list[RowId] | None:
    """Return ids as they are saved; None if there are none. RAISES (TypeError): if one is wrong."""
    return _column("ids", values, str | int, "a str or a whole number")


def _columns(values: Iterable[Any] | None) -> list[NamedRecord] | None:
    """Return the other columns as they are read again: tuples are lists, for example."""
    given = _column("columns", values, Mapping, "a dict of JSON values")
    if given is None:
        return None
    columns: list[NamedRecord] = []
    for number, record in enumerate(given):
        try:
            columns.append(json.loads(json.dumps({**record}, allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Cannot index columns[{number}] = {short_repr(record)} ({error}): expected a dict "
                "of JSON values for each vector."
            ) from error
    return columns


def _column(
    name: str, values: Iterable[Any] | None, kinds: type | UnionType, expected: str
) -> list[Any] | None:
    if values is None:
        return None
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
