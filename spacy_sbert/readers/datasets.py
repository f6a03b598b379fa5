"""Readers of published data sets: NLI, STS, SICK, Quora, WikiSection."""

import re
import warnings
from collections.abc import Iterator
from itertools import chain, islice
from math import inf
from pathlib import Path

from spacy.util import logger

from ..errors import Errors, Warnings
from ..files.delimited import Records, check_width, find_columns, pick, read_commas, read_delimited, read_tabs
from ..files.tables import get_field, read_objects
from ..files.text_lines import format_suffix, has_text
from .column_names import GOLD_NAMES, normalized
from .column_stats import SAID, listed
from .examples import Row, check_members, check_score

_NLI_LABELS = ("entailment", "neutral", "contradiction")
_NO_CONSENSUS = "-"
_NLI_SENTENCES = ("sentence1", "sentence2")


def nli_rows(path: Path) -> Iterator[Row]:
    """Read premises and hypotheses with their label.

    path (Path): .jsonl with gold_label, sentence1 and sentence2 in each object; other fields are passed over.
    YIELDS (Row): two members and a label. Pairs without a consensus (gold_label "-") are left out, and their number
        is logged at the end of the file.
    RAISES (ValueError): for a line that is not a JSON object, a missing field, an unknown label or an empty sentence.
    SOURCE: Bowman et al. 2015 (SNLI 1.0); Williams et al. 2018 (MultiNLI 1.0).
    """
    skipped = 0
    for line, record in read_objects(path):
        label, *texts = (get_field(record, name, path, line) for name in ("gold_label", *_NLI_SENTENCES))
        if label == _NO_CONSENSUS:
            skipped += 1
            continue
        label = _check_nli_label(label, path, line)
        yield Row(check_members(texts, _NLI_SENTENCES, path, line), line, label=label)
    if skipped:
        logger.info("%s: left out %d pairs without a consensus (gold_label '-')", path, skipped)


def _check_nli_label(label: object, path: Path, line: int) -> str:
    """Return a label of natural language inference. RAISES (ValueError): for any other."""
    if label not in _NLI_LABELS:
        expected = ", ".join(_NLI_LABELS)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=label, expected=expected))
    return str(label)


_STS_COLUMNS = 7  # genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
_STS_SCORE = 4  # the place of the score
STS_MAX_SCORE = 5.0
_FIRST = 5  # lines that tell whether a file is of the STS benchmark
STS_SENTENCES = ("sentence1", "sentence2")
_YEAR = re.compile(r"(19|20)\d\d")
_Pair = tuple[str, str, float]


def sts_rows(path: Path) -> Iterator[Row]:
    """Read graded pairs in the layout of the STS benchmark, see read_sts. YIELDS (Row): two members and a score."""
    for line, columns in read_tabs(path):
        if len(columns) < _STS_COLUMNS:
            raise ValueError(
                f"{path}, line {line}: expected 7 tab-separated columns (genre, file, year, id, score, "
                f"sentence1, sentence2), got {len(columns)}. For a table with other columns, set format and "
                "members, or have 'python -m spacy sbert init-config' make a config."
            )
        if line == 1 and _is_header(columns):
            raise ValueError(
                f"{path}, line {line}: the layout of the STS benchmark has no header, got "
                f"'{', '.join(columns)}'. Leave --format out, or give --format table: columns are then found "
                "by their names."
            )
        score = check_score(columns[_STS_SCORE], 0.0, STS_MAX_SCORE, path, line, "score")
        yield Row(check_members(columns[5:7], STS_SENTENCES, path, line), line, score=score)


def starts_as_sts(path: Path) -> bool:
    """Whether most of the first lines of a .csv or .tsv are of the STS benchmark, and the first of all is no header.

    They have a score from 0 to 5 and two texts, and in a .tsv a year, such as 2012test and 2017; some files leave it
    blank. A file without lines is one, too: there are no columns of its own.
    """
    first = [columns for _, columns in islice(read_tabs(path), _FIRST)]
    if not first:
        return True
    if len(first[0]) < _STS_COLUMNS or _is_header(first[0]):
        return False
    return 2 * sum(_is_pair(columns, with_year=format_suffix(path) == ".tsv") for columns in first) > len(first)


def _is_pair(columns: list[str], *, with_year: bool) -> bool:
    if len(columns) < _STS_COLUMNS or not _is_number(columns[_STS_SCORE], STS_MAX_SCORE):
        return False
    if with_year and columns[2].strip() and not _YEAR.match(columns[2].strip()):
        return False
    return all(has_text(text) and not _is_number(text) for text in columns[5:7])


def _is_number(text: str, most: float = inf) -> bool:
    try:
        return 0 <= float(text) <= most
    except ValueError:
        return False


def _is_header(columns: list[str]) -> bool:
    """Whether the first line of a file has the names of columns: "score" or the like in the place of the score."""
    return normalized(columns[_STS_SCORE]) in GOLD_NAMES or {normalized(name) for name in columns} >= {*STS_SENTENCES}


def read_sts(path: Path) -> Iterator[_Pair]:
    """Read the official layout of the STS benchmark: tab-separated, no header, no quoting.

    path (Path): the file; .gz is read as it is.
    YIELDS (str, str, float): the two sentences without white space around them, and the score scaled from 0..5 to 0..1.
    RAISES (ValueError): for a line with fewer than 7 columns, a score that is not a number from 0 to 5, or an empty
        sentence; the message names file and line.
    SOURCE: Cer et al. 2017, SemEval-2017 task 1.
    """
    for row in sts_rows(path):
        first, second = row.members
        yield first, second, row.score or 0.0


_QUESTIONS = ("question1", "question2")
_QUORA_SCORE = "is_duplicate"


def quora_rows(path: Path) -> Iterator[Row]:
    """Read pairs of questions that are duplicates or not.

    path (Path): tab-separated with a header (id, qid1, qid2, question1, question2, is_duplicate); quoted, as Quora
        publishes it, or not, as GLUE does.
    YIELDS (Row): two members and the score, 0 or 1. Records that a line break tore apart are left out with a
        warning at the end of the file. Those with an empty question are left out, and their number is logged.
    RAISES (ValueError): for a missing column in the header, or a score other than 0 and 1.
    SOURCE: Iyer et al. 2017, First Quora Dataset Release; Wang et al. 2019 (GLUE).
    """
    empty, torn, n_torn = 0, list[int](), 0
    records = _records(path)
    line, header = next(records, (1, [*_QUESTIONS, _QUORA_SCORE]))
    columns, width = find_columns(header, (*_QUESTIONS, _QUORA_SCORE), path, line), len(header)
    for line, record in records:
        if not _is_whole(record, width, path, line):
            torn += [line] if n_torn < SAID else []
            n_torn += 1
            continue
        first, second, score = (record[column] for column in columns)
        if not (has_text(first) and has_text(second)):
            empty += 1
            continue
        if score.strip() not in ("0", "1"):
            raise ValueError(
                f"{path}, line {line}: expected 0 or 1 in the column '{_QUORA_SCORE}', got '{score}'. Repair the line."
            )
        yield Row(check_members((first, second), _QUESTIONS, path, line), line, score=float(score))
    if empty:
        logger.info("%s: left out %d records with an empty question", path, empty)
    if n_torn:
        warnings.warn(Warnings.TORN_RECORDS.format(path=path, expected=width, lines=listed(torn, n_torn)), stacklevel=2)


def _records(path: Path) -> Records:
    records = read_delimited(path)
    try:
        first = list(islice(records, 1))
    except ValueError:  # quotes in doubt, as torn records have them; another error comes again
        return read_tabs(path)
    return chain(first, records)


def _is_whole(record: list[str], width: int, path: Path, line: int) -> bool:
    try:
        check_width(record, width, path, line)
    except ValueError:
        return False
    return True


WIKISECTION_SENTENCES = ("Sentence1", "Sentence2", "Sentence3")


def wikisection_rows(path: Path) -> Iterator[Row]:
    """Read triplets: an anchor, a sentence of the same section, and one of another section of the article.

    path (Path): see wikisection_records.
    YIELDS (Row): three members: anchor, positive, negative.
    RAISES (ValueError): for a missing column, an empty sentence, or a triplet with two equal sentences.
    """
    for line, texts in wikisection_records(path):
        yield Row(check_members(texts, WIKISECTION_SENTENCES, path, line), line)


def wikisection_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the sentences of triplets as they are in the file, whether they can be learned from or not.

    path (Path): comma-separated with a header: Article Title, Sentence1, Sentence2, Sentence3.
    YIELDS (int, list of three str): the line, and the sentences.
    RAISES (ValueError): for a missing column, or more columns than the header has.
    SOURCE: Ein Dor et al. 2018, Learning Thematic Similarity Metric Using Triplet Networks.
    """
    records = read_commas(path)
    line, header = next(records, (1, [*WIKISECTION_SENTENCES]))
    columns, width = find_columns(header, WIKISECTION_SENTENCES, path, line), len(header)
    for line, record in records:
        if (given := len(record)) > width:  # an unquoted comma, or a quote that was lost
            raise ValueError(Errors.WRONG_COLUMNS.format(path=path, line=line, expected=width, given=given))
        yield line, pick(record, columns, WIKISECTION_SENTENCES, path, line)


_SICK_SENTENCES = ("sentence_A", "sentence_B")
_SICK_SCORE = "relatedness_score"
_LABELS = ("entailment_judgment", "entailment_label")  # as SemEval gave it out, and as the full set has it


def sick_rows(path: Path) -> Iterator[Row]:
    """Read pairs with their relatedness and entailment.

    path (Path): tab-separated with a header, which says where sentence_A, sentence_B, relatedness_score (1 to 5) and
        entailment_judgment stand.
    YIELDS (Row): two members, the score scaled from 1..5 to 0..1, and the label in lower case.
    RAISES (ValueError): for a missing column, a line with more or fewer columns than the header, a score out of range,
        an unknown label or an empty sentence.
    SOURCE: Marelli et al. 2014, SemEval-2014 task 1.
    """
    records = read_tabs(path)
    for line, header in records:
        label = _LABELS[1] if _LABELS[1] in header else _LABELS[0]
        names = (*_SICK_SENTENCES, _SICK_SCORE, label)
        columns, width = find_columns(header, names, path, line), len(header)
        break
    for line, record in records:
        first, second, score, judgment = pick(record, columns, names, path, line)
        check_width(record, width, path, line)
        yield Row(
            check_members((first, second), _SICK_SENTENCES, path, line),
            line,
            score=check_score(score, 1.0, 5.0, path, line, _SICK_SCORE),
            label=_check_nli_label(judgment.strip().lower(), path, line),
        )
