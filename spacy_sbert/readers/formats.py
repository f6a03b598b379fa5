"""Formats of training data: which there are, and how a file's is found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin, SpanGroup
from spacy.util import logger

from ..errors import Errors
from ..files.atomic import check_input
from ..files.tables import DELIMITED, TABLES, Record, read_delimited, read_table
from ..files.text_lines import check_label, format_suffix, plain_label, read_lines
from ..training.examples import OBJECTIVE
from ..validation import SCORE_RANGE
from .datasets import BAD_FORMAT, nli_rows, quora_rows, sick_rows, starts_as_sts, sts_rows, wikisection_rows
from .examples import Row, check_members, check_score, from_boolean

UNKNOWN_FORMAT = (
    "Cannot read {path}: its name does not tell its layout, as .spacy (made by 'python -m spacy sbert "
    "convert') or .csv and .tsv do (the STS benchmark's, or a table if `members` names its columns). Set "
    "format to one of {expected}."
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

    def __post_init__(self) -> None:
        if not self.min_score < self.max_score:  # also refuses nan
            raise ValueError(
                f"Cannot scale scores from {self.min_score} to {self.max_score}: expected min_score below max_score."
            )

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
        is_blank = (value is None or value != value for value in gold)  # pandas writes NaN
        texts = ("" if blank else plain_label(str(value).strip()) for blank, value in zip(is_blank, gold, strict=True))
        return not self._marks.isdisjoint(texts)

    @cached_property
    def _marks(self) -> set[str]:
        return set(map(plain_label, self.missing))

    @property
    def optional(self) -> tuple[str, ...]:
        """The columns of gold that an object of JSON may leave out: a blank cell marks a row without gold."""
        return self.names[len(self.members) :] if "" in self.missing else ()


def _table_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a table; those without gold, see Columns.missing, are skipped, and their number is logged."""
    if not columns.members:
        raise ValueError(
            f"{path} is read as a table, but no columns of texts were named. Set members, such as members = "
            '["question1", "question2"].'
        )
    skipped = 0
    for record in read_table(path, columns.names, header=columns.header, optional=columns.optional):
        if columns.is_missing(record):
            skipped += 1
            continue
        yield table_row(record, columns, path)
    if skipped:
        logger.info("%s: skipped %d rows without gold (%s)", path, skipped, shown_values(columns.missing))


def shown_values(values: tuple[str, ...]) -> str:
    """Return the values that mark rows without gold, as messages have them."""
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


def _text_rows(path: Path) -> Iterator[Row]:
    """Read one text a line, without gold: for losses that need none, and for what a teacher is to label."""
    for line, text in read_lines(path):
        if text.strip():
            yield Row(check_members((text,), ("text",), path, line), line)


_LAYOUTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "sts": sts_rows,
    "nli": nli_rows,
    "sick": sick_rows,
    "wikisection": wikisection_rows,
    "quora": quora_rows,
    "text": _text_rows,
}
AUTO, TABLE, SPACY = "auto", "table", "spacy"
FORMATS = (*_LAYOUTS, TABLE, SPACY)


def find_format(path: Path, format: str, columns: Columns) -> str:
    """Return the layout of a file.

    path (Path): the file. One that ends in .spacy was made by `convert`, whatever layout its source had. Where format
        is "auto", a table if its members are named, and .csv and .tsv as the STS benchmark has them.
    format (str): a layout, or "auto". columns (Columns): names of columns, for tables.
    RETURNS (str): one of FORMATS.
    RAISES (ValueError): for an unknown layout, a suffix that says none, or columns that the layout does not ask for.
    """
    if format not in (AUTO, *FORMATS):
        raise ValueError(BAD_FORMAT.format(given=format, expected=", ".join((AUTO, *FORMATS))))
    if path.suffix == ".spacy":
        return SPACY
    suffix = format_suffix(path)
    if format == AUTO and columns.members and suffix in (*TABLES, ".txt"):
        format = TABLE
    elif format == AUTO and suffix in (".csv", ".tsv"):
        format = "sts"
    elif format == AUTO:
        raise ValueError(UNKNOWN_FORMAT.format(path=path, expected=", ".join(FORMATS)))
    if format != TABLE and columns.given:
        raise ValueError(
            f"{path} is read as '{format}', which has fixed columns and scores, but these are set for a table: "
            f'{", ".join(columns.given)}. Set format = "table", or leave them out.'
        )
    return format


def is_own_table(path: Path, format: str = AUTO, columns: Sequence[str] = (), *, header: bool = True) -> bool:
    """Return whether a file is a table with columns of its own.

    It is by its format or its suffix, but a .csv or .tsv whose first line is one of the STS benchmark; that, too, if it
    has one of the columns, which options name, or if they say that there is no header.

    RAISES (ValueError): if there is no such file, or its first line cannot be read.
    """
    suffix = format_suffix(path)
    if format != AUTO or suffix not in (*TABLES, ".txt"):
        return format == TABLE
    _check_file(path)
    if suffix in DELIMITED:
        _, first = next(read_delimited(path, header=False), (0, []))
        if not header or not {*columns}.isdisjoint(name.strip() for name in first):
            return True
    return suffix in TABLES and (suffix not in DELIMITED or not starts_as_sts(path))


def read_rows(path: Path, format: str, columns: Columns) -> Iterator[Row]:
    """Read the examples of a file of text, a line at a time.

    path (Path): the file. format (str): one of FORMATS, but not "spacy".
    columns (Columns): names of columns, for tables.
    YIELDS (Row): the examples.
    RAISES (ValueError): if there is no file, no example in it, or a line is not what it should be.
    """
    _check_file(path)
    empty = True
    for row in _table_rows(path, columns) if format == TABLE else _LAYOUTS[format](path):
        empty = False
        yield row
    if empty:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="a pair or other example a line"))


def _check_file(path: Path) -> None:
    """Refuse a path where there is nothing, or something that is not a file."""
    check_input(path)
    if not path.is_file():
        raise ValueError(
            f"There is no file {path}. Check the path, or [paths] in the config; data sets of this project "
            "come with 'python -m spacy project assets'."
        )


def read_docs(path: Path, nlp: Language, spans_key: str) -> Iterator[Doc]:
    """Read the Docs of a .spacy file, which is held in memory whole.

    path (Path): the file. nlp (Language): whose vocab the Docs get. spans_key (str): where the members stand.
    YIELDS (Doc): the references, members and gold in doc.spans[spans_key].
    RAISES (ValueError): if the file is damaged or empty, a Doc has no members or an empty one, or gold that is there
        is not what it should be; the number of the Doc is named.
    """
    docs = load_docbin(path).get_docs(nlp.vocab)
    for number in count(1):
        try:
            doc = next(docs)
        except StopIteration:
            return
        except Exception as error:  # whatever msgpack and the Doc say of bytes that are not a Doc
            raise _bad_docbin(path, f"Doc number {number}: {error}") from error
        if not _is_example(doc.spans.get(spans_key)):
            text = doc.text[:50]
            raise ValueError(
                f"{path}: the Doc number {number} ('{text}') is not a pair or another example: expected Spans "
                f"with text in doc.spans['{spans_key}'], and in its attrs, if they are there at all, a score "
                "from 0 to 1 and a label that is text. Make the file with 'python -m spacy sbert convert'."
            )
        yield doc


def load_docbin(path: Path) -> DocBin:
    """Load a .spacy file. RAISES (ValueError): if it is missing, damaged or empty."""
    _check_file(path)
    try:
        docs = DocBin().from_disk(path)
    except Exception as error:  # zlib, msgpack and DocBin each have their own
        raise _bad_docbin(path, error) from error
    if not len(docs):
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="a Doc a pair or other example"))
    return docs


def _bad_docbin(path: Path, reason: object) -> ValueError:
    return ValueError(
        f"{path} cannot be read ({reason}): expected a .spacy file. Make it with 'python -m spacy sbert convert'."
    )


def has_objectives(path: Path) -> bool:
    """Whether a Doc of a .spacy file notes an objective beside its members. RAISES (ValueError): as load_docbin."""
    return any(OBJECTIVE.encode() in group for group in load_docbin(path).span_groups)


def _is_example(group: SpanGroup | None) -> bool:
    if group is None or not len(group) or not all(span.text.strip() for span in group):
        return False
    score, label = group.attrs.get("score", 0.0), group.attrs.get("label", "none")
    low, high = SCORE_RANGE
    return isinstance(score, (int, float)) and low <= score <= high and isinstance(label, str) and bool(label)
