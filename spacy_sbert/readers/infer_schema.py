"""Infer the columns, the kind of gold and the range of scores of a user's own table.

The rule: options come first, then well-known names of columns; in a table without a header, two
columns of words and at most one of numbers are pairs and their scores. Otherwise an error lists the
columns and the options to give.
"""

import json
import math
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..files.tables import column_names, field_names, read_nameless, read_table
from ..files.text_lines import format_suffix, plain_label
from .column_names import PAIR, SINGLE, TRIPLET, UnclearColumns, gold_column, text_columns
from .examples import cell_text
from .formats import Columns
from .gold_cells import MANY, GoldCells, GoldColumn, cell_number, describe_gold
from .text_cells import find_nameless_texts, find_texts

# Characters of the name of a column in a list of them
_LONGEST = 40
_Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]


@dataclass(frozen=True)
class OwnTable:
    """Columns, kind and gold of a table.

    columns (Columns): which of its columns hold what. count (int): of its examples. unused: its
        other columns.
    kind (str): "graded" and "binary", pairs with scores, or with 0 and 1; "labelled", pairs with
        labels; "positives", pairs alone; "triplets"; "classes", single texts with labels.
    skipped (int): records without gold. gold (dict): how often each value of the gold comes, up to
        1,000 values.
    """

    columns: Columns
    kind: _Kind
    count: int
    unused: tuple[str, ...] = ()
    skipped: int = 0
    gold: Mapping[str, int] = field(default_factory=dict)

    def undefined(self) -> str | None:
        """Return why nothing can be measured or learned by the gold; None if it can."""
        column = self.columns.score or self.columns.label
        gold = self.labels() or self.gold
        if column is not None and len(gold) == 1:
            return f"all values in its column '{column}' are '{next(iter(gold))}'"
        if self.kind == "classes" and max(gold.values(), default=0) == 1:
            return f"no label in its column '{column}' comes twice"
        return None

    def labels(self) -> Counter[str]:
        """Return how often each label comes, as the reader spells it.

        None of a score, or of more than 1,000 labels.
        """
        counts: Counter[str] = Counter()
        if self.columns.label is not None and len(self.gold) <= MANY:
            for value, n in self.gold.items():
                counts[plain_label(value)] += n
        return counts

    def skipped_rows(self) -> str:
        """Return how many records were skipped, and by which values of their gold."""
        return f"{self.skipped} rows without gold ({self.columns.shown_missing}) are skipped"

    def reading(self) -> dict[str, Any]:
        """Return the columns as PairCorpus takes them, without its defaults."""
        columns = self.columns
        settings: dict[str, Any] = {"members": list(columns.members)}
        if columns.score is not None:
            settings["score"] = columns.score
        if columns.label is not None:
            settings["label"] = columns.label
        if columns.score is not None:
            settings["min_score"] = columns.min_score
            settings["max_score"] = columns.max_score
        if not columns.header:
            settings["header"] = False
        if columns.missing:
            settings["missing"] = list(columns.missing)
        return settings


def find_table(
    path: Path,
    *,
    members: Sequence[str] | None = None,
    score: str | None = None,
    label: str | None = None,
    min_score: float | None = None,
    max_score: float | None = None,
    header: bool = True,
    missing: Sequence[str] | None = None,
) -> OwnTable:
    """Read a whole table, and find out what it has.

    For the arguments that are known see PairCorpus.

    Records without a label ("-", "NA", blank, -1 beside words or three classes from 0 on) are
    skipped. Scores are scaled from the first of 0..1, 1..5, 0..5, -1..1, 1..10, 0..10 and 0..100
    that holds all of them.

    RAISES (ValueError): if the names do not tell the columns, with the options to give; for a bad
        record, with its line; for few scores that would make the range twice as wide as the others
        have it.

    Example:
        table = find_table(Path("pairs.csv"))
        corpus = PairCorpus("pairs.csv", format="table", **table.reading())

    """
    names = _all_names(path, header=header)
    if not names:
        raise _no_examples(path)
    given = GoldColumn(score, label, min_score, max_score, tuple(missing or ()))
    try:
        roles = _find_roles(path, names, members, given, header=header)
        gold = _read_gold(path, roles, given, header=header)
        if len(roles.texts) == SINGLE and gold.label is None:
            raise UnclearColumns("a single text needs a label")
        columns = _columns(roles, gold, header=header)
        count, skipped = _count(path, columns, is_given=roles.are_given)
    except UnclearColumns as unclear:
        raise _unclear(path, names, str(unclear)) from None
    table = OwnTable(
        columns,
        kind=_kind_of(columns, is_binary=gold.is_binary),
        count=count,
        unused=tuple(_others(names, columns.names)),
        skipped=skipped,
        gold=gold.values,
    )
    if not roles.are_given:
        check_unread_texts(path, table)
    return table


def _all_names(path: Path, *, header: bool) -> list[str]:
    """Return the names of all columns, without blank ones."""
    if format_suffix(path) == ".jsonl":
        return [name for name in field_names(path) if name.strip()]
    return [name for name in column_names(path, header=header) if name]


def _others(names: Sequence[str], taken: Collection[str | None]) -> list[str]:
    return [name for name in names if name not in taken]


def _no_examples(path: Path) -> ValueError:
    return ValueError(f"{path} holds no examples. Give a table with a row for each.")


def _unclear(path: Path, names: Sequence[str], reason: str) -> ValueError:
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        return ValueError(
            f"Cannot tell which columns of {path} to read: two columns are named '{doubled}'. "
            "Rename one of them."
        )
    columns = ", ".join(map(_cut, names))
    return ValueError(
        f"Cannot tell which columns of {path} to read: {reason}. Its columns are: {columns}. Name "
        "them: --members first,second --score COLUMN (or --label COLUMN), or --members "
        "anchor,positive,negative; for a table without a header 0, 1, ... with --no-header."
    )


def _cut(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}..."


@dataclass(frozen=True)
class _Roles:
    """The columns of the texts, and the column of the gold if there is one.

    are_given: whether options name the texts.
    """

    texts: tuple[str, ...]
    gold: str | None
    are_given: bool = False


def _find_roles(
    path: Path,
    names: Sequence[str],
    members: Sequence[str] | None,
    given: GoldColumn,
    *,
    header: bool,
) -> _Roles:
    """Return which columns are read. members, given: what options say."""
    gold = given.score or given.label
    if members:
        texts = tuple(members)
    elif header:
        texts = text_columns(_others(names, [gold]))
    else:
        return _roles_by_type(path, names, gold)
    if gold is None and header and len(texts) < TRIPLET:
        others = _others(names, texts)
        gold = gold_column(others, is_single=len(texts) == SINGLE, is_given=bool(members))
        if gold is None and not members:
            _check_nameless_values(path)
    return _Roles(texts, gold, are_given=bool(members))


def _check_nameless_values(path: Path) -> None:
    """Refuse a column without a name, unless it numbers the rows, as pandas writes its index.

    The numbers of rows are whole, and no two are equal.
    """
    labels, records = read_nameless(path)
    filled: dict[str, list[str]] = {label: [] for label in labels}
    for cells in records:
        for label, cell in zip(labels, cells, strict=True):
            text = cell_text(cell)
            if text:
                filled[label].append(text)
    for label, texts in filled.items():
        numbers_rows = all(map(str.isdecimal, texts)) and len(set(texts)) == len(texts)
        if not numbers_rows:
            raise UnclearColumns(
                f"{label} has no name, and may be the gold, or nothing that is read"
            )


def _roles_by_type(path: Path, names: Sequence[str], gold: str | None) -> _Roles:
    """Return the columns of a table without a header: two of words, and one of numbers at most."""
    numbers = _columns_of_numbers(path, names)
    texts = _others(names, [gold, *numbers])
    if gold is None and len(numbers) == 1:
        gold = numbers[0]
    is_unclear = gold is None and bool(numbers)
    if len(texts) != PAIR or is_unclear:
        raise UnclearColumns(
            "without a header, two columns of words and one of numbers are expected"
        )
    return _Roles(tuple(texts), gold)


def _columns_of_numbers(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns of a table without a header in which every cell is a number."""
    words: set[str] = set()
    for _, cells in read_table(path, names, header=False):
        for name, cell in zip(names, cells, strict=True):
            if math.isnan(cell_number(cell)):
                words.add(name)
    return _others(names, words)


def _read_gold(path: Path, roles: _Roles, given: GoldColumn, *, header: bool) -> GoldColumn:
    """Return how the gold is read; what is given if there is none."""
    if roles.gold is None:
        return given
    cells = GoldCells(path, roles.gold, header=header)
    if not cells.is_empty:
        return describe_gold(cells, len(roles.texts), given)
    is_named = given.score is not None or given.label is not None
    if roles.are_given and not is_named:
        return given
    raise ValueError(
        f"{path}: the column '{cells.name}' has no gold in any of {len(cells.scores)} rows: all "
        "are blank or '-'. Fill it, or name the columns to read without it: --members first,second."
    )


def _columns(roles: _Roles, gold: GoldColumn, *, header: bool) -> Columns:
    scale = {"min_score": gold.min_score, "max_score": gold.max_score}
    found: dict[str, Any] = {name: value for name, value in scale.items() if value is not None}
    return Columns(
        roles.texts, gold.score, gold.label, header=header, missing=gold.missing, **found
    )


def _count(path: Path, columns: Columns, *, is_given: bool) -> tuple[int, int]:
    """Return how many examples there are, and how many records without gold.

    RAISES (ValueError): for a bad record, no examples, or, unless options name the columns, texts
        that are all numbers.
    """
    count = 0
    skipped = 0
    only_numbers = set(columns.members)
    for row in columns.rows(path):
        if row is None:
            skipped += 1
            continue
        count += 1
        for name, text in zip(columns.members, row.members, strict=True):
            if math.isnan(cell_number(text)):
                only_numbers.discard(name)
    if not count:
        raise _no_examples(path)
    if only_numbers and not is_given:
        raise UnclearColumns(
            f"by its name {sorted(only_numbers)[0]} is a text, but it holds numbers"
        )
    return count, skipped


def _kind_of(columns: Columns, *, is_binary: bool) -> _Kind:
    n_texts = len(columns.members)
    if n_texts == SINGLE:
        return "classes"
    if n_texts >= TRIPLET:
        return "triplets"
    if columns.label is not None:
        return "labelled"
    if columns.score is None:
        return "positives"
    return "binary" if is_binary else "graded"


def check_unread_texts(path: Path, table: OwnTable) -> None:
    """Refuse a table with a column of texts that is not read: it may be half of each pair."""
    columns = table.columns
    nameless: list[str] = []
    if columns.header:
        nameless = find_nameless_texts(path)
    if nameless:
        raise ValueError(
            f"{path}: {nameless[0]} holds texts, and has no name in the header. Name it there to "
            f"read it, or give {_members_option(columns.members)} to leave it out."
        )
    unread = find_texts(path, table.unused, header=columns.header)
    if unread:
        read = _members_option(columns.members)
        both = _members_option((*columns.members, unread[0]))
        raise ValueError(
            f"{path}: the column '{unread[0]}' holds texts, and would not be read beside "
            f"{', '.join(columns.members)}. Name the columns of texts: {both} to read it, or "
            f"{read} to leave it out, and the gold by --score or --label."
        )


def _members_option(names: Sequence[str]) -> str:
    """Return the option that names some columns, as a shell and the command read it."""
    quoted = []
    for name in names:
        needs_quotes = "," in name or '"' in name
        quoted.append(f'"{name}"' if needs_quotes else name)
    return f"--members {shlex.quote(','.join(quoted))}"


def check_missing_labels(corpora: Mapping[str, Any], name: str = "corpora") -> None:
    """Refuse tables with labels such as "-" and "-1" beside others.

    Unless their reader's `missing` has them; `missing = []` reads them as they are.

    corpora: the section of a config, interpolated, called `name`.
    """
    for block_name, block in corpora.items():
        if not isinstance(block, Mapping):
            continue
        if block.get("@readers") != "spacy-sbert.PairCorpus.v1":
            check_missing_labels(block, f"{name}.{block_name}")
        elif block.get("label") and block.get("missing") != []:
            _check_missing_of(block, f"{name}.{block_name}")


def _check_missing_of(block: Mapping[str, Any], name: str) -> None:
    given = block.get("missing") or []
    paths = block.get("path") or []
    if isinstance(paths, str):
        paths = [paths]
    for path in paths:
        unknown: list[str] = []
        # Bad files are reported by the reader
        with suppress(ValueError, OSError):
            gold = GoldCells(Path(path), block["label"], header=block.get("header", True))
            unknown = [value for value in gold.missing if value and value not in given]
        if unknown:
            raise ValueError(
                f"{path}: values of the column '{block['label']}' mark rows without a label "
                f"({', '.join(unknown)}). Set missing = {json.dumps([*given, *unknown])} in "
                f"[{name}], or missing = [] if they are labels."
            )
