"""Infer the columns, the kind of gold and the range of scores of a user's own table.

The rule: options come first, then well-known names of columns; in a table without a header, two
columns of words and at most one of numbers are pairs and their scores. Otherwise an error lists the
columns and the options to give.
"""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy

from ..files.tables import column_names, read_nameless, read_table
from ..files.text_lines import format_suffix, plain_label, read_objects
from .examples import as_number, cell_text, from_boolean
from .formats import Columns

_Kind = Literal["graded", "binary", "labelled", "positives", "triplets", "classes"]
_SINGLE, _PAIR, _TRIPLET = 1, 2, 3


# Well-known names of columns, see _key: "Gold Label" is "goldlabel".
# Before all others
_GOLD = {"gold", "goldlabel", "goldscore", "goldstandard"}
_SCORES = set(
    """score scores similarity sim similarityscore semanticsimilarity cosinesimilarity rating grade relatedness
    relatednessscore relevance relevancescore stsscore humanscore meanscore averagescore goldscore""".split()  # noqa: SIM905
)
_LABELS = set(
    """label labels goldlabel gold relation entailment entailmentlabel entailmentjudgment judgment verdict class stance
    target isduplicate duplicate isparaphrase paraphrase ismatch match issame same issimilar isrelevant relevant
    iscorrect quality""".split()  # noqa: SIM905
)
# Of single texts only
_CLASSES = {"category", "topic", "intent", "genre", "tag", "type"}
_TEXTS = {
    "text",
    "sentence",
    "utterance",
    "tweet",
    "review",
    "message",
    "comment",
    "body",
    "content",
    "document",
}
_TEXTS |= {"query", "question"}
_ANCHORS = {"anchor", "query", "question", "q", "a", "sent0"}
_POSITIVES = {"positive", "pos", "p", "good", "answer", "sent1", "positivepassage", "chosen"}
_NEGATIVES = {
    "negative",
    "neg",
    "n",
    "bad",
    "hardneg",
    "hardnegative",
    "wronganswer",
    "negativepassage",
    "rejected",
}
_STEMS = (
    "sentence",
    "sent",
    "text",
    "question",
    "q",
    "s",
    "t",
    "x",
    "string",
    "utterance",
    "phrase",
    "satz",
    "frage",
)
# Of three texts: the third makes the first two no pair.
_PLACES = [
    places.split()
    for places in ("1 2 3", "a b c", "one two three", "first second third", "left right middle")
]
_SERIES = {
    tuple(before + place + after for place in places)
    for places in _PLACES
    for stem in ("", *_STEMS)
    for before, after in ((stem, ""), ("", stem))
}
_PAIRS = {
    tuple(pair.split("-"))
    for pair in """premise-hypothesis anchor-positive query-positive query-pos question-positive query-document
    query-passage query-answer query-response query-title question-answer question-passage question-document
    question-context question-sentence source-target src-tgt sentence-paraphrase text-paraphrase original-paraphrase
    prompt-response instruction-response context-response claim-evidence x-y sent0-sent1""".split()  # noqa: SIM905
}
# Words that end as the names of ids do, and may be the gold
_WORDS_IN_ID = ("valid", "paid", "void", "hybrid", "solid", "fluid")
# Neither texts nor gold, as names that end in "id".
_OTHERS = {"index", "idx", "split", "fold", "year", "date", "genre", "source", "url"}

# As spreadsheets, pandas, R and databases write a missing value, in lower case.
_NOT_GIVEN = frozenset(
    ("", "-", "--", "---", "?", "na", "n/a", "#n/a", "#na", "<na>", "null", "nan", "\\n")
)
# Beside numbers, True and False only: beside other words it is a class
_NONE = "none"
_TRUTHS = {"true", "false"}
# Different values of a column of gold that are counted
_MANY = 1000

# Columns of texts: of so many words and more, with more different values than this share of the
# rows.
_WORDS = 3
_MAX_CATEGORIES = 0.3
_LETTERS = re.compile(r"[^\W\d_]")
# Thai, Chinese, ...
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_OF_WORD = 1.5
_SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff1f", "\uff01")
_SEPARATED = re.compile(r"[,;|/]")

_RANGES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (-1.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))


@dataclass(frozen=True)
class OwnTable:
    """Columns, kind and gold of a table.

    columns (Columns): which of its columns hold what. count (int): of its examples. unused: its
        other columns.
    kind (str): "graded" and "binary", pairs with scores, or with 0 and 1; "labelled", pairs with
        labels; "positives", pairs alone; "triplets"; "classes", single texts with labels.
    skipped (int): rows without gold. gold (dict): how often each value of the gold comes, up to
        1,000 values.
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
        """Return how often each label comes, as the reader spells it.

        None of a score, or of more than 1,000 labels.
        """
        counts: Counter[str] = Counter()
        if self.columns.label is not None and len(self.gold) <= _MANY:
            for value, n in self.gold.items():
                counts[plain_label(value)] += n
        return counts

    def skipped_rows(self) -> str:
        """Return how many rows were skipped, and by which values of their gold."""
        return f"{self.skipped} rows without gold ({self.columns.shown_missing}) are skipped"

    def reading(self) -> dict[str, Any]:
        """Return the columns as PairCorpus takes them, without its defaults."""
        columns = self.columns
        settings: dict[str, Any] = {
            "members": list(columns.members),
            "score": columns.score,
            "label": columns.label,
        }
        if columns.score is not None:
            settings |= {"min_score": columns.min_score, "max_score": columns.max_score}
        settings |= {} if columns.header else {"header": False}
        settings |= {"missing": list(columns.missing)} if columns.missing else {}
        return {name: value for name, value in settings.items() if value is not None}


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

    Rows without a label ("-", "NA", blank, -1 beside words or three classes from 0 on) are skipped.
    Scores are scaled from the first of 0..1, 1..5, 0..5, -1..1, 1..10, 0..10 and 0..100 that holds
    all of them.

    RAISES (ValueError): if the names do not tell the columns, with the options to give; for a bad
        row, with its line; for few scores that would make the range twice as wide as the others
        have it.
    """
    names = _all_names(path, header=header)
    if not names:
        raise _no_examples(path)
    try:
        roles = _find_roles(path, names, members, score or label, header=header)
    except _UnclearColumns as unclear:
        raise _unclear(path, names, str(unclear)) from None
    gold: GoldColumn | None = None
    if roles.gold is not None:
        cells = _GoldCells(path, roles.gold, header=header)
        if not cells.is_empty:
            gold = describe_gold(
                cells,
                len(roles.texts),
                score=score,
                label=label,
                low=min_score,
                high=max_score,
                missing=missing or (),
            )
        elif not members or score or label:
            raise ValueError(
                f"{path}: the column '{cells.name}' has no gold in any of {len(cells.scores)} "
                "rows: all are blank or "
                "'-'. Fill it, or name the columns to read without it: --members first,second."
            )
    gold = gold or GoldColumn(
        min_score=min_score, max_score=max_score, missing=tuple(missing or ())
    )
    if len(roles.texts) == _SINGLE and gold.label is None:
        raise _unclear(path, names, "a single text needs a label")
    columns = Columns(
        roles.texts,
        gold.score,
        gold.label,
        0.0 if gold.min_score is None else gold.min_score,
        1.0 if gold.max_score is None else gold.max_score,
        header=header,
        missing=gold.missing,
    )
    count, skipped = _count(path, columns, names, is_given=bool(members))
    unused = tuple(name for name in names if name not in columns.names)
    table = OwnTable(
        columns, _kind_of(columns, is_binary=gold.is_binary), count, unused, skipped, gold.values
    )
    if not members:
        check_unread_texts(path, table)
    return table


def _all_names(path: Path, *, header: bool) -> list[str]:
    """Return the names of all columns.

    Of .jsonl the fields of all objects, since the first may lack one.
    """
    if format_suffix(path) == ".jsonl":
        names = dict.fromkeys(name for _, record in read_objects(path) for name in record)
        return [name for name in names if name.strip()]
    return [name for name in column_names(path, header=header) if name]


def _kind_of(columns: Columns, *, is_binary: bool) -> _Kind:
    n_texts = len(columns.members)
    if n_texts != _PAIR:
        return "triplets" if n_texts == _TRIPLET else "classes"
    if columns.label is not None:
        return "labelled"
    if columns.score is None:
        return "positives"
    return "binary" if is_binary else "graded"


def _no_examples(path: Path) -> ValueError:
    return ValueError(f"{path} holds no examples. Give a table with a row for each.")


class _UnclearColumns(ValueError):
    """The names do not tell the columns; the message is the reason."""


def _unclear(path: Path, names: Sequence[str], reason: str) -> ValueError:
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        return ValueError(
            f"Cannot tell which columns of {path} to read: two columns are named '{doubled}'. "
            "Rename one of them."
        )
    columns = ", ".join(name if len(name) <= 40 else f"{name[:40]}..." for name in names)
    return ValueError(
        f"Cannot tell which columns of {path} to read: {reason}. Its columns are: {columns}. Name "
        "them: --members "
        "first,second --score COLUMN (or --label COLUMN), for a table without a header 0, 1, ... "
        "with --no-header."
    )


# Names


@dataclass(frozen=True)
class _Roles:
    """The columns of the texts, and the column of the gold if there is one."""

    texts: tuple[str, ...]
    gold: str | None = None


def _find_roles(
    path: Path,
    names: Sequence[str],
    members: Sequence[str] | None,
    gold: str | None,
    *,
    header: bool,
) -> _Roles:
    """Return which columns are read. members, gold: the columns that options name."""
    if members:
        texts = tuple(members)
    elif header:
        texts = text_columns([name for name in names if name != gold])
    else:
        return _roles_by_type(names, _word_columns(path, names), gold)
    if len(texts) > _TRIPLET:
        raise _UnclearColumns(
            f"{len(texts)} columns of texts were named, expected one, two or three"
        )
    if gold is None and header and len(texts) < _TRIPLET:
        others = [name for name in names if name not in texts]
        gold = gold_column(others, is_single=len(texts) == _SINGLE, is_given=bool(members))
        nameless = None if gold or members else _nameless_values(path)
        if nameless is not None:
            raise _UnclearColumns(
                f"{nameless} has no name, and may be the gold, or nothing that is read"
            )
    return _Roles(texts, gold)


def _key(name: str) -> str:
    """Return a name in lower case, without spaces, underscores, hyphens and the like."""
    return re.sub(r"[\W_]+", "", name.lower())


def _is_id(key: str) -> bool:
    return key.endswith("id") and not key.endswith(_WORDS_IN_ID)


def text_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a triplet, a pair or a single text, by their names without that of the gold."""
    keys = {_key(name): name for name in names}
    negatives = [key for key in keys if key.rstrip("0123456789") in _NEGATIVES]
    if negatives:
        triplet = [[key for key in keys if key in known] for known in (_ANCHORS, _POSITIVES)] + [
            negatives
        ]
        if not all(len(found) == 1 for found in triplet):
            raise _UnclearColumns(
                "by their names there is not one anchor, one positive and one negative"
            )
        return tuple(keys[found[0]] for found in triplet)
    pairs = [pair for pair in _PAIRS if keys.keys() >= set(pair)]
    for *pair, third in _SERIES:
        if keys.keys() >= set(pair):
            if third in keys:
                raise _UnclearColumns(
                    f"{keys[pair[0]]}, {keys[pair[1]]} and {keys[third]} are more than a pair"
                )
            pairs.append(tuple(pair))
    if len(pairs) == 1:
        return tuple(keys[key] for key in pairs[0])
    if pairs:
        raise _UnclearColumns("by their names there are several pairs of texts")
    texts = [key for key in keys if key in _TEXTS]
    if len(texts) != 1:
        raise _UnclearColumns("no names are those of a pair of texts")
    return (keys[texts[0]],)


def gold_column(names: Sequence[str], *, is_single: bool, is_given: bool) -> str | None:
    """Return the column of the gold, by the names of all columns but the texts.

    None if there is none.

    is_single: whether there is one text. is_given: whether options name the texts, so that others
        may be anything.
    """
    keys = {name: _key(name) for name in names}
    for known in (
        _GOLD,
        _LABELS if is_single else _SCORES | _LABELS,
        _CLASSES if is_single else set[str](),
    ):
        found = [name for name, key in keys.items() if key in known]
        if len(found) > 1:
            raise _UnclearColumns(f"{', '.join(found)} may each be the gold")
        if found:
            return found[0]
    unknown = [name for name, key in keys.items() if not (key in _OTHERS or _is_id(key))]
    if unknown and not is_given:
        raise _UnclearColumns(f"{', '.join(unknown)} may be the gold, or nothing that is read")
    return None


def _nameless_values(path: Path) -> str | None:
    """Return the first column without a name that numbers no rows, as pandas writes its index.

    None if there is none.

    Numbers of rows are whole, and no two are equal.
    """
    labels, rows = read_nameless(path)
    filled: dict[str, list[str]] = {label: [] for label in labels}
    for cells in rows:
        for label, cell in zip(labels, cells, strict=True):
            if text := cell_text(cell):
                filled[label].append(text)
    for label, texts in filled.items():
        are_numbers = all(map(str.isdecimal, texts)) and len(set(texts)) == len(texts)
        if not are_numbers:
            return label
    return None


def _word_columns(path: Path, names: Sequence[str]) -> set[str]:
    """Return the columns with a cell that is no number."""
    words: set[str] = set()
    for _, cells in read_table(path, names, header=False):
        words |= {
            name for name, cell in zip(names, cells, strict=True) if math.isnan(_number(cell))
        }
    return words


def _roles_by_type(names: Sequence[str], words: Container[str], gold: str | None) -> _Roles:
    """Return the columns of a table without a header: two of words, and the one of numbers if there is one."""
    texts = tuple(name for name in names if name in words and name != gold)
    numbers = [name for name in names if name not in words and name != gold]
    if len(texts) != _PAIR or (len(numbers) > 1 and gold is None):
        raise _UnclearColumns(
            "without a header, two columns of words and one of numbers are expected"
        )
    return _Roles(texts, gold or next(iter(numbers), None))


# Gold


def _number(value: object) -> float:
    """Return a cell as a number, or nan. "True" and "yes" are 1, "False" and "no" 0."""
    return as_number(from_boolean(value))


class _GoldCells:
    """The cells of a column of gold.

    values: how often each value comes, for up to _MANY + 1 values; "" is a blank cell. scores:
        float64 (rows,), nan for
    other cells. lines: int64 (rows,). first_bad: line and text of the first cell that is no number.
    """

    def __init__(self, path: Path, name: str, *, header: bool):
        self.path = path
        self.name = name
        self.values: Counter[str] = Counter()
        self.first_bad: tuple[int, str] | None = None
        scores, lines = [], []
        for line, (value,) in read_table(path, [name], header=header, optional=[name]):
            text = cell_text(value)
            if not text or text in self.values or len(self.values) <= _MANY:
                self.values[text] += 1
            score = _number(value)
            if math.isnan(score) and self.first_bad is None:
                self.first_bad = line, text
            scores.append(score)
            lines.append(line)
        self.scores, self.lines = numpy.asarray(scores), numpy.asarray(lines)

    @property
    def is_empty(self) -> bool:
        """Whether there are rows, and no value but those that mark a row without gold."""
        return bool(self.values) and not {value.lower() for value in self.values} - _NOT_GIVEN

    @property
    def missing(self) -> tuple[str, ...]:
        """The values that mark rows without a label, if two other values are left: "-", "NA" and the like, and "".

        -1 is one of them beside words or three classes from 0 on, as SNLI and its copies have it,
        and None beside numbers, True and False.
        """
        marks = {value for value in self.values if value and value.lower() in _NOT_GIVEN}
        others = self.values.keys() - marks - {""}
        none = {value for value in others if value.lower() == _NONE}
        minus = {value for value in others if as_number(value) == -1}
        numbers = [as_number(value) for value in others - none - minus]
        are_classes = len(set(numbers)) > 2 and all(
            number >= 0 and number % 1 == 0 for number in numbers
        )
        if are_classes or any(map(math.isnan, numbers)):
            marks |= minus
        words = {value.lower() for value in others - none if math.isnan(as_number(value))}
        if words <= _TRUTHS:
            marks |= none
        marks = marks if len(others - marks) > 1 else set()
        return (*sorted(marks), *([""] if "" in self.values else []))

    def is_binary(self, marks: Sequence[str]) -> bool:
        """Whether all values are 0 or 1, or booleans, and both are there. marks: values that are left out."""
        return {_number(value) for value in self.values if value not in marks} == {0.0, 1.0}

    @property
    def is_score(self) -> bool:
        """Whether the gold of pairs is a score: by its name, or as a label that is 0 and 1, or fractions."""
        if _key(self.name) not in _LABELS:
            return True
        numbers = {_number(value) for value in self.values if value not in self.missing}
        return numbers <= {0.0, 1.0} or (
            not any(map(math.isnan, numbers)) and any(n % 1 for n in numbers)
        )


@dataclass(frozen=True)
class GoldColumn:
    """How a column of gold is read.

    score, label (str): its name, as one of the two. min_score, max_score (float): what is scaled to
        0..1, None for the default. missing: the values that mark rows without gold.
    is_binary: whether all other values are 0 and 1. values (dict): how often each of them comes, up
        to 1,000.
    """

    score: str | None = None
    label: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    missing: tuple[str, ...] = ()
    is_binary: bool = False
    values: Mapping[str, int] = field(default_factory=dict)


def describe_gold(
    cells: _GoldCells,
    n_texts: int,
    *,
    score: str | None,
    label: str | None,
    low: float | None,
    high: float | None,
    missing: Sequence[str],
) -> GoldColumn:
    """Find out whether gold is a score or a label, which rows have none, and the range of scores.

    n_texts (int): of an example. The others are what options say, see find_table.
    """
    if score is None and label is None:
        if n_texts != _SINGLE and cells.is_score:
            score = cells.name
        else:
            label = cells.name
    marks = tuple(missing)
    if label == cells.name or _key(cells.name) in _LABELS:
        marks = tuple(dict.fromkeys((*marks, *cells.missing)))
    if score == cells.name:
        low, high = _range(cells.path, cells, marks, low, high)
    values = {value: n for value, n in cells.values.items() if value not in marks}
    return GoldColumn(score, label, low, high, marks, cells.is_binary(marks), values)


def _range(
    path: Path, gold: _GoldCells, marks: Sequence[str], low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """Return the range of scores, of which either end may be given.

    Refuse bad scores, and few that are far away.

    Few are 1 of 100, or one of ten and more; far away if they double the range, or make it an
    unusual one.
    """
    if gold.first_bad is not None and not marks:
        line, value = gold.first_bad
        raise ValueError(
            f"{path}, line {line}: expected a number in the column of scores '{gold.name}', got "
            f"'{value}' "
            f"({numpy.isnan(gold.scores).sum()} of its {len(gold.scores)} cells are no numbers). "
            "Repair the line, and "
            "write decimals with a point. If it holds labels, give --label."
        )
    scores = numpy.sort(gold.scores[~numpy.isnan(gold.scores)])
    if not len(scores) or (low is not None and high is not None) or gold.is_binary(marks):
        return low, high
    few = max(len(scores) // 100, int(len(scores) >= 10))
    inner = scores[0 if low is not None else few : len(scores) - (0 if high is not None else few)]
    first, last = _usual_range(float(scores[0]), float(scores[-1]))
    inner_low, inner_high = _usual_range(float(inner[0]), float(inner[-1]))
    distances = numpy.nan_to_num(
        numpy.maximum(inner_low - gold.scores, gold.scores - inner_high), nan=-1.0
    )
    is_wider = last - first >= 2 * (inner_high - inner_low) > 0
    is_unusual = (first, last) not in _RANGES and (inner_low, inner_high) in _RANGES
    if (is_wider or is_unusual) and distances.max() > 0:
        far = distances.argmax()
        raise ValueError(
            f"{path}, line {gold.lines[far]}: the score {gold.scores[far]:g} in the column "
            f"'{gold.name}' is far from "
            f"the others: {(distances > 0).sum()} of {len(scores)} are outside of {inner_low:g} "
            f"to {inner_high:g}, and "
            f"all would be scaled from {first:g} to {last:g}. Repair the line; if it is right, "
            "give the range: "
            f"--min-score {first:g} --max-score {last:g}."
        )
    return (first if low is None else low), (last if high is None else high)


def _usual_range(low: float, high: float) -> tuple[float, float]:
    """Return the first of the usual ranges that holds both scores, or just these."""
    return next((ends for ends in _RANGES if ends[0] <= low and high <= ends[1]), (low, high))


def _count(
    path: Path, columns: Columns, names: Sequence[str], *, is_given: bool
) -> tuple[int, int]:
    """Return how many rows there are, and how many without gold.

    RAISES (ValueError): for a bad row.
    """
    count = skipped = 0
    numeric = set(columns.members)
    for row in columns.rows(path):
        if row is None:
            skipped += 1
            continue
        count += 1
        numeric -= {
            name
            for name, text in zip(columns.members, row.members, strict=True)
            if math.isnan(_number(text))
        }
    if not count:
        raise _no_examples(path)
    if numeric and not is_given:
        raise _unclear(
            path, names, f"by its name {sorted(numeric)[0]} is a text, but it holds numbers"
        )
    return count, skipped


# Texts that are not read


def check_unread_texts(path: Path, table: OwnTable) -> None:
    """Refuse a table with a column of texts that is not read: it may be half of each pair."""
    columns = table.columns
    nameless = find_nameless_texts(path) if columns.header else []
    if nameless:
        raise ValueError(
            f"{path}: {nameless[0]} holds texts, and has no name in the header. Name it there to "
            "read it, or give "
            f"{_members_option(columns.members)} to leave it out."
        )
    unread = find_texts(path, table.unused, header=columns.header)
    if unread:
        more = _members_option((*columns.members, unread[0]))
        raise ValueError(
            f"{path}: the column '{unread[0]}' holds texts, and would not be read beside "
            f"{', '.join(columns.members)}. Name the columns of texts: {more} to read it, or "
            f"{_members_option(columns.members)} to leave it out, and the gold by --score or "
            "--label."
        )


def _members_option(names: Sequence[str]) -> str:
    """Return the option that names some columns, as a shell and the command read it."""
    quoted = [f'"{name}"' if "," in name or '"' in name else name for name in names]
    return f"--members {shlex.quote(','.join(quoted))}"


def find_texts(
    path: Path, names: Sequence[str], *, header: bool = True, limit: int | None = None
) -> list[str]:
    """Return the columns that hold texts, by their values: many different ones, of several words.

    names: of the columns to look at. limit (int): how many rows to look at, None for all.
    """
    if not names:
        return []
    rows = read_table(path, names, header=header, optional=names)
    return _text_columns(names, (cells for _, cells in islice(rows, limit)))


def find_nameless_texts(path: Path, limit: int | None = None) -> list[str]:
    """Return the columns without a name in the header that hold texts, as messages call them.

    See find_texts.
    """
    labels, rows = read_nameless(path)
    return _text_columns(labels, islice(rows, limit))


def _text_columns(names: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    found = {name: _CellKinds() for name in names}
    for cells in rows:
        for kinds, cell in zip(found.values(), cells, strict=True):
            kinds.add(cell)
    return [name for name, kinds in found.items() if kinds.are_texts]


class _CellKinds:
    """Counts of the cells of a column, to tell texts from names, categories, dates and the like."""

    def __init__(self) -> None:
        self.n_filled = self.n_texts = 0
        self.different: set[str] = set()

    def add(self, cell: object) -> None:
        items = _strings(cell)
        self.n_filled += bool(items)
        texts = [item for item in items if _is_text(item)]
        self.n_texts += bool(texts)
        if len(self.different) <= _MANY:
            self.different.update(texts)

    @property
    def are_texts(self) -> bool:
        n_different = len(self.different)
        is_category = n_different <= min(_MANY, _MAX_CATEGORIES * self.n_filled)
        return 2 * self.n_texts >= self.n_filled > 0 and not is_category


def _strings(cell: object) -> list[str]:
    """Return the strings in a cell that are not blank; of JSON also those in lists and objects."""
    if isinstance(cell, str):
        return [cell] if cell.strip() else []
    items = cell.values() if isinstance(cell, Mapping) else cell
    return (
        [text for item in items for text in _strings(item)] if isinstance(items, Iterable) else []
    )


def _is_text(value: str) -> bool:
    """Return whether a cell holds a text: several words, few numbers, and no list or markup.

    Several are three, or two with the mark of a sentence behind them.
    """
    value = value.strip()
    tokens = value.split()
    n_words = sum(len(_LETTERS.findall(token)) > 1 and "://" not in token for token in tokens)
    n_words += int(len(_UNSPACED.findall(value)) / _CHARACTERS_OF_WORD)
    if n_words < _WORDS - value.endswith(_SENTENCE_ENDS):
        return False
    n_numbers = sum(any(map(str.isdigit, token)) for token in tokens)
    parts = _SEPARATED.split(value)
    is_list = len(parts) > 2 and all(len(part.split()) < _WORDS for part in parts)
    return 3 * n_numbers < len(tokens) + n_words and not is_list and value[0] not in "[{<"


def check_missing_labels(corpora: Mapping[str, Any], name: str = "corpora") -> None:
    """Refuse tables with labels such as "-" and "-1" beside others, unless their reader's `missing` has them.

    `missing = []` reads them as they are. corpora: the section of a config, interpolated, called
    `name`.
    """
    for block_name, block in corpora.items():
        if isinstance(block, Mapping) and block.get("@readers") != "spacy-sbert.PairCorpus.v1":
            check_missing_labels(block, f"{name}.{block_name}")
        elif isinstance(block, Mapping) and block.get("label") and block.get("missing") != []:
            paths, given = block.get("path") or [], block.get("missing") or []
            for path in map(Path, [paths] if isinstance(paths, str) else paths):
                unknown = []
                # Which the reader reports
                with suppress(ValueError, OSError):
                    gold = _GoldCells(path, block["label"], header=block.get("header", True))
                    unknown = [value for value in gold.missing if value and value not in given]
                if unknown:
                    raise ValueError(
                        f"{path}: values of the column '{block['label']}' mark rows without a "
                        "label "
                        f"({', '.join(unknown)}). Set missing = {json.dumps([*given, *unknown])} "
                        "in "
                        f"[{name}.{block_name}], or missing = [] if they are labels."
                    )
