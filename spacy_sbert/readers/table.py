"""Tables whose columns the config names: .jsonl, .csv, .tsv and .parquet."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path

from spacy.util import logger

from ..files.lines import check_label, plain_label
from ..files.tables import Record, read_table
from .errors import Errors
from .rows import Row, check_members, check_score, from_boolean


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what, see PairCorpus."""

    members: tuple[str, ...] = ()
    score: str | None = None
    label: str | None = None
    min_score: float = 0.0
    max_score: float = 1.0
    header: bool = True
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.min_score < self.max_score:  # also refuses nan
            raise ValueError(Errors.BAD_RANGE.format(low=self.min_score, high=self.max_score))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read: members, score, label."""
        return (*self.members, *(name for name in (self.score, self.label) if name is not None))

    @property
    def given(self) -> tuple[str, ...]:
        """All that is set: names of columns, and other settings that are not the default."""
        own = ("min_score", "max_score", "header", "missing")
        return (*self.names, *(name for name in own if getattr(self, name) != getattr(Columns, name)))

    def is_missing(self, record: Record) -> bool:
        """Whether the score or the label of a row is one of the values that mark a row without gold."""
        gold = record[1][len(self.members) :] if self.missing else ()
        return any(("" if _is_none(value) else plain_label(str(value).strip())) in self._marks for value in gold)

    @cached_property
    def _marks(self) -> set[str]:
        return set(map(plain_label, self.missing))

    @property
    def optional(self) -> tuple[str, ...]:
        """The columns of gold that an object of JSON may leave out: a blank cell marks a row without gold."""
        return self.names[len(self.members) :] if "" in self.missing else ()


def _is_none(value: object) -> bool:
    """Whether a cell has no value; pandas writes NaN for it."""
    return value is None or (isinstance(value, float) and isnan(value))


def table_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """Read a table by the names of its columns.

    path (Path): .jsonl, .csv (quoted), .tsv (not quoted), each of them .gz or not, or .parquet.
    columns (Columns): which of its columns hold what.
    YIELDS (Row): as many members as there are columns for them, and gold where a column is named for it. In a .parquet
        file, line is the number of the record. Rows without gold, see Columns.missing, are skipped, and their number is
        logged at the end of the file.
    RAISES (ValueError): for an unknown suffix, a missing column, an empty member or label, a score out of range, or a
        triplet with two equal members.
    RAISES (ImportError): for .parquet without pyarrow.
    """
    if not columns.members:
        raise ValueError(Errors.NO_MEMBER_COLUMNS.format(path=path))
    skipped = 0
    for record in read_table(path, columns.names, header=columns.header, optional=columns.optional):
        if columns.is_missing(record):
            skipped += 1
            continue
        yield table_row(record, columns, path)
    if skipped:
        logger.info("%s: skipped %d rows without gold (%s)", path, skipped, shown_values(columns.missing))


def shown_values(values: tuple[str, ...]) -> str:
    """The values that mark rows without gold, as messages have them."""
    return ", ".join(value or "blank" for value in values)


def table_row(record: Record, columns: Columns, path: Path) -> Row:
    """One row of table_rows, from its line and the columns that are read. RAISES (ValueError): if it is bad."""
    line, cells = record
    size = len(columns.members)
    members = check_members(cells[:size], columns.members, path, line)
    gold = list(cells[size:])
    score = label = None
    if columns.score is not None:
        score = check_score(from_boolean(gold.pop(0)), columns.min_score, columns.max_score, path, line, columns.score)
    if columns.label is not None:
        label = check_label(gold.pop(0), columns.label, path, line)
    return Row(members, line, score=score, label=label)
