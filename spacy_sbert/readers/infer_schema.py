"""Infer columns, labels and ranges of a user's own table."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy

from ..files.delimited import check_first_row
from ..files.tables import column_names, read_objects, read_table
from ..files.text_lines import format_suffix, plain_label
from .column_names import CLASS_NAMES, SCORE_NAMES
from .column_roles import RANGES, SINGLE, TRIPLET, Given, find_roles
from .column_stats import MANY, NOT_GIVEN, BadLines, ColumnFacts, as_number, listed
from .formats import Columns, shown_values, table_row

_Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]
_FEW = 100  # a score of so many, or one of a smaller table, is not to decide the range
_LEAST = 10  # scores, of which one is few
_WIDER = 2.0  # times the range of the others: what few scores must not make of it


@dataclass(frozen=True)
class OwnTable:
    """What a table has.

    columns (Columns): which of its columns hold what. count (int): of its examples. unused: its other columns.
    kind (str): "graded", pairs with scores; "binary", pairs with scores of 0 or 1; "labelled", pairs with labels;
        "positives", pairs alone; "triplets"; "classes", single texts with labels.
    skipped (int): rows without gold. gold (dict): how often each value of the gold comes, up to 1,000 values.
    """

    columns: Columns
    kind: _Kind
    count: int
    unused: tuple[str, ...] = ()
    skipped: int = 0
    gold: Mapping[str, int] = field(default_factory=dict)

    def undefined(self) -> str | None:
        """Return why nothing can be measured or learned by the gold, None if it can: there are two values at least."""
        column = self.columns.score or self.columns.label
        gold = self.labels() or self.gold
        if column is not None and len(gold) == 1:
            return f"all values in its column '{column}' are '{next(iter(gold))}'"
        if self.kind == "classes" and max(gold.values(), default=0) == 1:
            return f"no label in its column '{column}' comes twice"
        return None

    def labels(self) -> Counter[str]:
        """Return how often each label comes, as the reader spells it; none of a score, or of more than 1,000 labels."""
        found: Counter[str] = Counter()
        if self.columns.label is not None and len(self.gold) <= MANY:
            for value, n in self.gold.items():
                found[plain_label(value)] += n
        return found

    def skipped_rows(self) -> str:
        """Return how many rows were skipped, and by which values of their gold."""
        return f"{self.skipped} rows without gold ({shown_values(self.columns.missing)}) are skipped"

    def reading(self) -> dict[str, Any]:
        """Return the columns as PairCorpus takes them, without its defaults."""
        columns = self.columns
        found: dict[str, Any] = {"members": list(columns.members), "score": columns.score, "label": columns.label}
        if columns.score is not None:
            found |= {"min_score": columns.min_score, "max_score": columns.max_score}
        found |= {} if columns.header else {"header": False}
        found |= {"missing": list(columns.missing)} if columns.missing else {}
        return {name: value for name, value in found.items() if value is not None}


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

    Columns are known by options, by well-known names, and else by content, see find_roles. Rows without gold ("-",
    "NA", a blank label, -1 beside other classes) are skipped.

    Scores are scaled from the first of 0..1, 1..5, 0..5, -1..1, 1..10, 0..10 and 0..100 that holds all of them.

    path (Path): see PairCorpus.
    members (list[str]), score, label (str), min_score, max_score (float): columns and range, where they are known.
    header (bool): whether .csv and .tsv have one.
    missing (list[str]): values that mark rows without gold, beside those that are found.
    RETURNS (OwnTable): what it has.
    RAISES (ValueError): if columns cannot be told apart, and which options name them; for bad rows, all kinds of them
        in one message, with their lines; a bad score is one that is no number, or one of few that make the range twice
        as wide as the others have it.
    """
    if header and not members:
        check_first_row(path, [name for name in (score, label) if name is not None])
    facts = {name: ColumnFacts(name) for name in _names(path, header)}
    for line, record in _records(path, list(facts), header):
        for one, value in zip(facts.values(), record, strict=True):
            one.add(line, value)
    blank = [] if members or score or label else [one for one in facts.values() if _is_blank_gold(one)]
    has_range = min_score is not None or max_score is not None
    try:
        roles = find_roles(path, facts, Given(tuple(members or ()), score, label, has_range), header=header)
    except ValueError as error:
        if blank:
            raise _no_gold(path, blank[0]) from error
        raise
    gold = facts.get(roles.score or roles.label or "")
    if gold is not None and _has_no_value(gold):
        raise _no_gold(path, gold)
    if gold is None and blank and len(roles.members) < TRIPLET:
        raise _no_gold(path, blank[0])
    marks = tuple(dict.fromkeys((*(missing or ()), *_missing(gold, roles.label is not None))))
    graded = facts.get(roles.score) if roles.score is not None else None
    bad = BadLines(path)
    columns = Columns(roles.members, roles.score, roles.label, header=header, missing=marks)
    columns = _scaled(path, columns, graded, (min_score, max_score), bad)
    count, skipped = _count(path, columns, bad)
    bad.check()
    if not count:
        raise ValueError(f"{path} holds no examples. Give a table with a row for each.")
    unused = tuple(name for name in facts if name not in columns.names)
    values = {} if gold is None else {value: n for value, n in gold.values.items() if value not in marks}
    return OwnTable(columns, _kind(roles.members, graded, roles.label), count, unused, skipped, values)


def _is_blank_gold(facts: ColumnFacts) -> bool:
    """Whether a column has the name of gold, and no value but those that mark a row without gold."""
    return facts.gold_key in CLASS_NAMES | SCORE_NAMES and _has_no_value(facts)


def _has_no_value(facts: ColumnFacts) -> bool:
    return facts.count > 0 and not {value.lower() for value in facts.values} - NOT_GIVEN


def _no_gold(path: Path, facts: ColumnFacts) -> ValueError:
    return ValueError(
        f"{path}: the column '{facts.name}' has no gold in any of {facts.count} rows: all are blank or '-'. "
        "Fill it, or name the columns to read without it: --members first,second."
    )


def _missing(gold: ColumnFacts | None, is_label: bool) -> tuple[str, ...]:
    """Return the values that mark rows without gold, of labels and of scores of 0 and 1."""
    if gold is None or not (is_label or gold.is_binary):
        return ()
    return (*gold.missing, *([""] if gold.blank else []))


def _names(path: Path, header: bool) -> list[str]:
    """Return the names of all columns; a field of JSON may be missing in the first object."""
    if format_suffix(path) != ".jsonl":
        return [name for name in column_names(path, header=header) if name]
    return list(dict.fromkeys(name for _, record in read_objects(path) for name in record))


def _records(path: Path, names: Sequence[str], header: bool) -> Iterator[tuple[int, Sequence[object]]]:
    """Yield the line and the columns of each row; None for a field that JSON leaves out."""
    if format_suffix(path) != ".jsonl":
        return read_table(path, names, header=header)
    return ((line, [record.get(name) for name in names]) for line, record in read_objects(path))


def _check_numbers(path: Path, score: ColumnFacts) -> None:
    if score.is_number or score.is_binary:
        return
    line, value = score.bad[0]
    count = score.count - score.numbers
    given = {"given": "" if value is None else value, "count": count, "all": score.count}
    given["lines"] = listed([line for line, _ in score.bad], count)
    raise ValueError(
        (
            "{path}, line {line}: expected a number in the column of scores '{column}', got '{given}' ({count} of "
            "its {all} cells are no numbers: {lines}). Repair or remove the line; write decimals with a point. If "
            "'{column}' holds no scores, name what does: --score COLUMN or --label COLUMN."
        ).format(path=path, line=line, column=score.name, **given)
    )


def _scaled(
    path: Path, columns: Columns, graded: ColumnFacts | None, ends: tuple[float | None, float | None], bad: BadLines
) -> Columns:
    """Return the columns with the range of the scores, without scores if they are bad, which is noted."""
    try:
        if graded is not None:
            _check_numbers(path, graded)
        low, high = _range(path, graded, *ends, columns.header)
        return replace(columns, min_score=low, max_score=high)
    except ValueError as error:
        bad.add(error)
        return replace(columns, score=None)


def _count(path: Path, columns: Columns, bad: BadLines) -> tuple[int, int]:
    """Return how many rows there are, and how many without gold; what is wrong in them is noted."""
    count = skipped = 0
    for record in read_table(path, columns.names, header=columns.header, optional=columns.optional):
        if columns.is_missing(record):
            skipped += 1
            continue
        count += 1
        try:
            table_row(record, columns, path)
        except ValueError as error:
            bad.add(error, record[0])
    return count, skipped


def _range(
    path: Path, score: ColumnFacts | None, low: float | None, high: float | None, header: bool
) -> tuple[float, float]:
    if score is None or not score.numbers:  # which reading the rows reports
        return (0.0 if low is None else low), (1.0 if high is None else high)
    if score.is_binary and low is None and high is None:
        return 0.0, 1.0
    if low is None or high is None:
        _check_outliers(path, score.name, lambda: _scores(path, score.name, header), low, high)
    found = _known_range(score.low, score.high)
    return (found[0] if low is None else low), (found[1] if high is None else high)


def _known_range(low: float, high: float) -> tuple[float, float]:
    return next((each for each in RANGES if each[0] <= low and high <= each[1]), (low, high))


def _scores(path: Path, column: str, header: bool) -> Iterator[tuple[float, int]]:
    return ((as_number(value), line) for line, (value,) in _records(path, [column], header))


def _check_outliers(
    path: Path, column: str, scores: Callable[[], Iterator[tuple[float, int]]], low: float | None, high: float | None
) -> None:
    """Refuse a few scores, beyond an end that was not given, that decide the range.

    They make it much wider than the others have it, or one that no scale has.

    scores (Callable): reads them, each with its line.
    """
    ordered = numpy.sort(numpy.fromiter((score for score, _ in scores()), "float64"))
    few = max(len(ordered) // _FEW, int(len(ordered) >= _LEAST))
    first = 0 if low is not None else few
    last = len(ordered) - (0 if high is not None else few)
    inner = ordered[first:last]
    whole, others = (_known_range(float(part[0]), float(part[-1])) for part in (ordered, inner))
    is_wider = whole[1] - whole[0] >= _WIDER * (others[1] - others[0]) > 0
    if not is_wider and (whole in RANGES or others not in RANGES):
        return
    far = [one for one in scores() if not others[0] <= one[0] <= others[1]]
    if far:
        value, line = max(far, key=lambda one: max(others[0] - one[0], one[0] - others[1]))
        named: dict[str, Any] = {
            "given": value,
            "count": len(far),
            "all": len(ordered),
            "low": others[0],
            "high": others[1],
        }
        named |= {"whole_low": min(whole[0], others[0]), "whole_high": max(whole[1], others[1])}
        named |= {"end": others[value > others[1]], "lines": listed([line for _, line in far], len(far))}
        raise ValueError(
            (
                "{path}, line {line}: the score {given:g} in the column '{column}' is not in the range of the "
                "others: {count} of {all} are outside of {low:g} to {high:g} ({lines}), and all would be scaled "
                "from {whole_low:g} to {whole_high:g}. Repair the line, to {end:g} if it is just beyond that end; "
                "if it is right, give the range: --min-score {whole_low:g} --max-score {whole_high:g}."
            ).format(path=path, line=line, column=column, **named)
        )


def _kind(texts: Sequence[str], score: ColumnFacts | None, label: str | None) -> _Kind:
    if len(texts) == TRIPLET:
        return "triplets"
    if len(texts) == SINGLE:
        return "classes"
    if label is not None:
        return "labelled"
    if score is None:
        return "positives"
    return "binary" if score.is_binary else "graded"


_READER = "spacy-sbert.PairCorpus.v1"


def check_missing_labels(corpora: Mapping[str, Any], name: str = "corpora") -> None:
    """Refuse tables with labels such as "-" and "-1" beside others, unless their reader's `missing` has them.

    `missing = []` reads them as they are.

    corpora: the section of a config, interpolated. name (str): what it is called.
    RAISES (ValueError): for such a table; what cannot be read at all, its reader says.
    """
    for block_name, block in corpora.items():
        if not isinstance(block, Mapping):
            continue
        if block.get("@readers") != _READER:
            check_missing_labels(block, f"{name}.{block_name}")
            continue
        given = block.get("missing")
        for path in _paths(block) if block.get("label") and given != [] else ():
            found = [value for value in _missing_in(path, block) if value not in (given or ())]
            if found:
                named = {"path": path, "column": block["label"], "given": ", ".join(found)}
                setting = json.dumps([*(given or ()), *found])
                raise ValueError(
                    (
                        "{path}: values of the column '{column}' mark rows without a label ({given}), and would be "
                        "learned as labels. Set missing = {setting} in [{block}], or missing = [] if they are "
                        "labels."
                    ).format(block=f"{name}.{block_name}", setting=setting, **named)
                )


def _paths(block: Mapping[str, Any]) -> Iterator[Path]:
    paths = block.get("path") or []
    for path in map(Path, [paths] if isinstance(paths, str) else paths):
        if path.suffix != ".spacy" and path.is_file():
            yield path


def _missing_in(path: Path, block: Mapping[str, Any]) -> tuple[str, ...]:
    facts = ColumnFacts(block["label"])
    try:
        for line, (value,) in read_table(path, [block["label"]], header=block.get("header", True)):
            facts.add(line, value)
    except ValueError:  # which the reader says
        return ()
    return facts.missing
