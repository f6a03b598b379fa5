"""A table of one's own: which columns are the texts, which is the gold, and what can be learned from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from ..errors.checks import validated
from ..files.tables import column_names, read_table
from .errors import Errors
from .table import Columns, table_rows

Kind = Literal["graded", "binary", "labelled", "positives", "triplets"]
PAIR, TRIPLET = 2, 3
CLASSES = 20  # the most different values of a column of labels
LABEL_NAMES = ("label", "class", "category", "relation", "gold_label", "entailment")
RANGES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (-1.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
SPACED = 0.5  # of the values of a column of texts have several words


@dataclass(frozen=True)
class OwnTable:
    """What a table has.

    columns (Columns): which of its columns hold what. count (int): of its examples.
    kind (str): "graded", pairs with scores; "binary", pairs with scores of 0 or 1; "labelled", pairs with labels;
        "positives", pairs alone; "triplets".
    """

    columns: Columns
    kind: Kind
    count: int

    def reading(self) -> dict[str, Any]:
        """The columns as PairCorpus takes them, but for what it has by default."""
        columns = self.columns
        found: dict[str, Any] = {"members": list(columns.members), "score": columns.score, "label": columns.label}
        if columns.score is not None:
            found |= {"min_score": columns.min_score, "max_score": columns.max_score}
        found |= {} if columns.header else {"header": False}
        return {name: value for name, value in found.items() if value is not None}


@dataclass
class Facts:
    """What the values of a column are. values: the different ones, up to one more than a column of labels has."""

    name: str
    count: int = 0
    spaced: int = 0
    low: float = math.inf
    high: float = -math.inf
    is_number: bool = True
    is_whole: bool = True
    values: set[str] = field(default_factory=set)

    def add(self, value: object) -> None:
        self.count += 1
        self.spaced += len(str(value).split()) > 1
        if len(self.values) <= CLASSES:
            self.values.add(str(value))
        if self.is_number:
            try:
                number = float(cast(float, value))
            except (TypeError, ValueError, OverflowError):
                self.is_number = False
                return
            self.is_number, self.is_whole = math.isfinite(number), self.is_whole and number == int(number)
            self.low, self.high = min(self.low, number), max(self.high, number)

    @property
    def is_text(self) -> bool:
        return not self.is_number and self.spaced >= SPACED * self.count

    @property
    def is_binary(self) -> bool:
        return self.is_number and self.is_whole and (self.low, self.high) == (0, 1)

    @property
    def is_label(self) -> bool:
        """Few values, each of several examples; whole numbers only under a name that says so."""
        few = 1 < len(self.values) <= CLASSES and self.count >= 2 * len(self.values)
        if self.is_number:
            return few and self.is_whole and not self.is_binary and self.name.lower() in LABEL_NAMES
        return few and not self.is_text

    @property
    def is_score(self) -> bool:
        """Numbers that are no names of rows, which are whole and differ."""
        is_name = self.is_whole and len(self.values) == min(self.count, CLASSES + 1) and self.count > 1
        return self.is_number and not self.is_label and not is_name


@validated
def find_table(
    path: Path,
    *,
    members: Sequence[str] | None = None,
    score: str | None = None,
    label: str | None = None,
    min_score: float | None = None,
    max_score: float | None = None,
    header: bool = True,
) -> OwnTable:
    """Read a whole table, and find out what it has.

    Texts are the columns most of whose values have several words; a label has at most 20 values; a score is another
    number. Scores are scaled from the first of 0..1, 1..5, 0..5, -1..1, 1..10, 0..10 and 0..100 that holds all of them.

    path (Path): see PairCorpus.
    members (list[str]), score, label (str), min_score, max_score (float): columns and range, where they are known.
    header (bool): whether .csv and .tsv have one.
    RETURNS (OwnTable): what it has.
    RAISES (ValueError): if columns cannot be told apart, and which options name them; for a bad row, with its line.
    """
    names = column_names(path, header=header)
    facts = {name: Facts(name) for name in names}
    for _, record in read_table(path, names, header=header):
        for one, value in zip(facts.values(), record, strict=True):
            one.add(value)
    texts = list(members) if members else [name for name, one in facts.items() if one.is_text]
    others = [one for name, one in facts.items() if name not in texts]
    if len(texts) not in (PAIR, TRIPLET):
        found = ", ".join(texts) or "none"
        raise ValueError(Errors.TABLE_NO_PAIR.format(path=path, given=found, columns=", ".join(names)))
    if score is None and label is None and len(texts) == PAIR:
        score, label = _gold(path, others)
    graded = facts.get(score) if score is not None else None
    low, high = _range(graded, min_score, max_score)
    columns = Columns(tuple(texts), score, label, low, high, header)
    count = sum(1 for _ in table_rows(path, columns))
    if not count:
        raise ValueError(Errors.TABLE_EMPTY.format(path=path))
    return OwnTable(columns, _kind(texts, graded, label), count)


def _gold(path: Path, columns: Sequence[Facts]) -> tuple[str | None, str | None]:
    """The names of the columns of score and label, of which there is one at most."""
    scores, labels = [one.name for one in columns if one.is_score], [one.name for one in columns if one.is_label]
    if len(scores) + len(labels) > 1:
        raise ValueError(Errors.TABLE_MANY_GOLD.format(path=path, scores=", ".join(scores), labels=", ".join(labels)))
    return next(iter(scores), None), next(iter(labels), None)


def _range(score: Facts | None, low: float | None, high: float | None) -> tuple[float, float]:
    if score is None or not score.is_number:  # which reading the rows reports
        return (0.0 if low is None else low), (1.0 if high is None else high)
    fitting = (each for each in RANGES if each[0] <= score.low and score.high <= each[1])
    found = next(fitting, (score.low, score.high))
    return (found[0] if low is None else low), (found[1] if high is None else high)


def _kind(texts: Sequence[str], score: Facts | None, label: str | None) -> Kind:
    if len(texts) == TRIPLET:
        return "triplets"
    if label is not None:
        return "labelled"
    if score is None:
        return "positives"
    return "binary" if score.is_binary else "graded"
