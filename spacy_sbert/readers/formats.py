"""Formats of training data: which there are, and how a file's is found."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import isnan
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin, SpanGroup
from spacy.util import logger

from ..errors import Errors
from ..files.atomic import check_input
from ..files.delimited import read_delimited
from ..files.tables import DELIMITED, TABLES, read_table
from ..files.text_lines import check_label, format_suffix, has_text, plain_label, read_lines
from ..validation import SCORE_RANGE
from .datasets import FORMATS, STS_COLUMNS, STS_MAX_SCORE
from .examples import (
    Row,
    as_number,
    cell_text,
    check_members,
    check_score,
    check_scores,
    from_boolean,
)

AUTO = "auto"
TABLE = "table"
TEXT = "text"
SPACY = "spacy"
# The year of a pair in the STS benchmark, such as 2012test; some files leave it blank
_YEAR = re.compile(r"((19|20)\d\d.*)?")


def known_formats() -> tuple[str, ...]:
    """Return the names of all formats of files: see PairCorpus."""
    return (*FORMATS, TEXT, TABLE, SPACY)


def unknown_format(path: Path) -> ValueError:
    """Return the error of a file whose name does not tell its format."""
    return ValueError(
        f"Cannot read {path}: its name does not tell its layout. Set format to one of "
        f"{', '.join(known_formats())}."
    )


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
    scores: str | None = None

    def __post_init__(self) -> None:
        twice = [name for name in self.members if self.names.count(name) > 1]
        if twice:
            raise ValueError(
                f"The column '{twice[0]}' is named twice: {', '.join(self.names)}. Name other "
                "columns as texts (members), score, label and scores."
            )
        # Also refuses nan
        if not self.min_score < self.max_score:
            raise ValueError(
                f"Cannot scale scores from {self.min_score} to {self.max_score}: expected "
                "min_score below max_score."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read: members, score, label, scores."""
        golds = (self.score, self.label, self.scores)
        return (*self.members, *(name for name in golds if name is not None))

    @property
    def given(self) -> tuple[str, ...]:
        """All that is set: names of columns, and other settings that are not the default."""
        others = ("min_score", "max_score", "header", "missing")
        changed = [name for name in others if getattr(self, name) != getattr(Columns, name)]
        return (*self.names, *changed)

    def rows(self, path: Path) -> Iterator[Row | None]:
        """Yield the example in each row of a table, None for a row without gold.

        RAISES (ValueError): for a bad row.
        """
        n_members = len(self.members)
        marks = set(map(plain_label, self.missing))
        # An object of JSON may leave out its gold
        optional = self.names[n_members:] if "" in marks else ()
        for line, cells in read_table(path, self.names, header=self.header, optional=optional):
            golds = dict(zip(self.names[n_members:], cells[n_members:], strict=True))
            if marks and not marks.isdisjoint(map(_plain_text, golds.values())):
                yield None
                continue
            members = check_members(cells[:n_members], self.members, path, line)
            score = None
            if self.score is not None:
                value = from_boolean(golds[self.score])
                score = check_score(value, self.min_score, self.max_score, path, line, self.score)
            label = None
            if self.label is not None:
                label = check_label(golds[self.label], self.label, path, line)
            scores = None
            if self.scores is not None:
                scores = check_scores(golds[self.scores], path, line, self.scores)
            yield Row(members, line, score=score, label=label, scores=scores)

    @property
    def shown_missing(self) -> str:
        """The values that mark rows without gold, as messages have them."""
        return ", ".join(value or "blank" for value in self.missing)


def _plain_text(cell: object) -> str:
    return plain_label(cell_text(cell))


def _table_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a table.

    Those without gold, see Columns.missing, are skipped, and their number is logged.
    """
    if not columns.members:
        raise ValueError(
            f"{path} is read as a table, but no columns of texts were named. Set members, such as "
            'members = ["question1", "question2"].'
        )
    skipped = 0
    for row in columns.rows(path):
        if row is None:
            skipped += 1
        else:
            yield row
    if skipped:
        logger.info("%s: skipped %d rows without gold (%s)", path, skipped, columns.shown_missing)


def _text_rows(path: Path) -> Iterator[Row]:
    """Read one text a line, without gold: for losses that need none, and for a teacher."""
    for line, text in read_lines(path):
        if text.strip():
            yield Row(check_members((text,), ("text",), path, line), line)


def find_format(path: Path, format: str, columns: Columns) -> str:
    """Return the format of a file, one of known_formats: see PairCorpus.

    RAISES (ValueError): if settings do not fit.
    """
    known = (AUTO, *known_formats())
    if format not in known:
        raise ValueError(f"Unknown format '{format}': expected one of {', '.join(known)}.")
    if path.suffix == ".spacy":
        return SPACY
    if format == AUTO:
        format = _format_by_name(path, columns)
    if format != TABLE and columns.given:
        raise ValueError(
            f"{path} is read as '{format}', which has fixed columns and scores, but these are set "
            f'for a table: {", ".join(columns.given)}. Set format = "table", or leave them out.'
        )
    return format


def _format_by_name(path: Path, columns: Columns) -> str:
    suffix = format_suffix(path)
    if columns.members and suffix in (*TABLES, ".txt"):
        return TABLE
    if suffix in (".csv", ".tsv"):
        return "sts"
    raise unknown_format(path)


def is_own_table(
    path: Path, format: str = AUTO, columns: Sequence[str] = (), *, header: bool = True
) -> bool:
    """Return whether a file is a table with columns of its own, by its format or its suffix.

    A .csv or .tsv in the layout of the STS benchmark is one if it has one of the columns, or no
    header by `header`.
    """
    suffix = format_suffix(path)
    if format != AUTO or suffix not in (*TABLES, ".txt"):
        return format == TABLE
    _check_file(path)
    if suffix not in DELIMITED:
        return True
    _, first = next(read_delimited(path, header=False), (0, []))
    has_column = any(name.strip() in columns for name in first)
    if has_column or not header:
        return True
    return suffix in TABLES and not _starts_as_sts(path)


def _starts_as_sts(path: Path) -> bool:
    """Return whether the first line is one of the STS benchmark, or there is none.

    It has a year, a score from 0 to 5, and two texts.
    """
    first = next(read_delimited(path, delimiter="\t"), None)
    if first is None:
        return True
    _, columns = first
    if len(columns) < STS_COLUMNS or not 0 <= as_number(columns[4]) <= STS_MAX_SCORE:
        return False
    if _YEAR.fullmatch(columns[2].strip()) is None:
        return False
    return all(has_text(text) and isnan(as_number(text)) for text in columns[5:7])


def read_rows(path: Path, format: str, columns: Columns) -> Iterator[Row]:
    """Read the examples of a file of text, a line at a time.

    format (str): one of known_formats, but not "spacy".
    """
    _check_file(path)
    if format == TABLE:
        rows = _table_rows(path, columns)
    elif format == TEXT:
        rows = _text_rows(path)
    else:
        rows = FORMATS[format](path)
    row: Row | None = None
    for row in rows:
        yield row
    if row is None:
        raise ValueError(
            Errors.NO_PAIRS.format(path=path, expected="a pair or other example a line")
        )


def _check_file(path: Path) -> None:
    """Refuse a path where there is nothing, or something that is not a file."""
    check_input(path)
    if not path.is_file():
        raise ValueError(
            f"There is no file {path}. Check the path, or [paths] in the config; data sets of this "
            "project come with 'python -m spacy project assets'."
        )


def read_docs(path: Path, nlp: Language, spans_key: str) -> Iterator[Doc]:
    """Yield the Docs of a .spacy file, which is held in memory whole.

    Members and gold are in doc.spans[spans_key].
    """
    docs = load_docbin(path).get_docs(nlp.vocab)
    for number in count(1):
        try:
            doc = next(docs, None)
        except Exception as error:
            # Whatever msgpack and the Doc say of bytes that are not a Doc
            raise _bad_docbin(path, f"Doc number {number}: {error}") from error
        if doc is None:
            return
        if not _is_example(doc.spans.get(spans_key)):
            text = doc.text[:50]
            raise ValueError(
                f"{path}: the Doc number {number} ('{text}') is not a pair or another example: "
                f"expected Spans with text in doc.spans['{spans_key}'], and in its attrs at most a "
                "score from 0 to 1 and a label. Make the file with 'python -m spacy sbert convert'."
            )
        yield doc


def load_docbin(path: Path) -> DocBin:
    """Load a .spacy file. RAISES (ValueError): if it is missing, damaged or empty."""
    _check_file(path)
    try:
        docs = DocBin().from_disk(path)
    except Exception as error:
        # zlib, msgpack and DocBin each have their own
        raise _bad_docbin(path, error) from error
    if not len(docs):
        raise ValueError(
            Errors.NO_PAIRS.format(path=path, expected="a Doc a pair or other example")
        )
    return docs


def _bad_docbin(path: Path, reason: object) -> ValueError:
    return ValueError(
        f"{path} cannot be read ({reason}): expected a .spacy file. Make it with 'python -m spacy "
        "sbert convert'."
    )


def _is_example(group: SpanGroup | None) -> bool:
    if group is None or not len(group) or not all(span.text.strip() for span in group):
        return False
    score = group.attrs.get("score", 0.0)
    label = group.attrs.get("label", "none")
    low, high = SCORE_RANGE
    if not isinstance(score, (int, float)) or not low <= score <= high:
        return False
    return isinstance(label, str) and bool(label)
