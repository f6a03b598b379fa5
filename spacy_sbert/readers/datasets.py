"""Readers of published data sets: NLI, STS, SICK, Quora and WikiSection."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from spacy.util import logger

from ..errors import Errors, Warnings, warn
from ..files.delimited import DelimitedRecords, find_columns, pick, read_delimited
from ..files.text_lines import get_field, has_text, read_objects
from .examples import Row, check_members, check_score, listed_lines

# From a file to its examples
_Read = Callable[[Path], Iterator[Row]]
# Readers of files whose layout is fixed, by the names that `format` and --format take
FORMATS: dict[str, _Read] = {}


def register_format(name: str) -> Callable[[_Read], _Read]:
    """Register a function that yields the examples of a file whose layout is fixed.

    name (str): what `format` of PairCorpus and --format call it. A file given as --code may
        register its own.

    Example:
        @register_format("mine")
        def my_rows(path):
            for line, text in read_lines(path):
                yield Row(tuple(text.split("|")), line)

    """

    def register(read: _Read) -> _Read:
        FORMATS[name] = read
        return read

    return register


def check_known(label: object, known: Collection[str], path: Path, line: int) -> str:
    """Return a label.

    RAISES (ValueError): if it is not among the known ones; the message names file and line.
    """
    if label not in known:
        raise ValueError(
            Errors.UNKNOWN_LABEL.format(
                path=path, line=line, given=label, expected=", ".join(known)
            )
        )
    return str(label)


# genre, file, year, id, score, sentence1, sentence2; some lines carry licence columns behind them
STS_COLUMNS = 7
STS_MAX_SCORE = 5.0
STS_SENTENCES = ("sentence1", "sentence2")


@register_format("sts")
def sts_rows(path: Path) -> Iterator[Row]:
    """Read graded pairs in the layout of the STS benchmark, see read_sts.

    YIELDS (Row): two members and a score.
    """
    for line, columns in read_delimited(path, delimiter="\t"):
        if len(columns) < STS_COLUMNS:
            raise ValueError(
                f"{path}, line {line}: expected 7 tab-separated columns (genre, file, year, id, "
                f"score, sentence1, sentence2), got {len(columns)}. For a table with other "
                "columns, set format and members."
            )
        if line == 1 and {*STS_SENTENCES} <= {name.strip() for name in columns}:
            raise ValueError(
                f"{path}, line {line}: the layout of the STS benchmark has no header, got "
                f"'{', '.join(columns)}'. Give --format table: columns are then found by their "
                "names."
            )
        score = check_score(columns[4], 0.0, STS_MAX_SCORE, path, line, "score")
        yield Row(check_members(columns[5:7], STS_SENTENCES, path, line), line, score=score)


def read_sts(path: Path) -> Iterator[tuple[str, str, float]]:
    """Read the official layout of the STS benchmark: tab-separated, no header, no quoting.

    path (Path): the file; .gz is read as it is.
    YIELDS (str, str, float): the two sentences without white space around them, and the score
        scaled from 0..5 to 0..1.
    RAISES (ValueError): for a line with fewer than 7 columns, a score out of range, or an empty
        sentence.
    SOURCE: Cer et al. 2017, SemEval-2017 task 1.
    """
    for row in sts_rows(path):
        first, second = row.members
        yield first, second, row.score or 0.0


_NLI_LABELS = ("entailment", "neutral", "contradiction")
_NO_CONSENSUS = "-"
_NLI_SENTENCES = ("sentence1", "sentence2")


@register_format("nli")
def _nli_rows(path: Path) -> Iterator[Row]:
    """Read labelled premises and hypotheses.

    path (Path): .jsonl with gold_label, sentence1 and sentence2 in each object.
    Pairs without a consensus (gold_label "-") are left out, and their number is logged.
    SOURCE: Bowman et al. 2015 (SNLI 1.0); Williams et al. 2018 (MultiNLI 1.0).
    """
    skipped = 0
    for line, fields in read_objects(path):
        label = get_field(fields, "gold_label", path, line)
        texts = [get_field(fields, name, path, line) for name in _NLI_SENTENCES]
        if label == _NO_CONSENSUS:
            skipped += 1
            continue
        known = check_known(label, _NLI_LABELS, path, line)
        yield Row(check_members(texts, _NLI_SENTENCES, path, line), line, label=known)
    if skipped:
        logger.info("%s: left out %d pairs without a consensus (gold_label '-')", path, skipped)


_QUESTIONS = ("question1", "question2")
_QUORA_SCORE = "is_duplicate"


@register_format("quora")
def _quora_rows(path: Path) -> Iterator[Row]:
    """Read pairs of questions and 1 for duplicates, 0 for others, tab-separated with a header.

    Quoted, as Quora publishes it, or not, as GLUE does. Records that a line break tore apart are
    left out with a warning at the end of the file. Those with an empty question are left out, and
    their number is logged.
    SOURCE: Iyer et al. 2017, First Quora Dataset Release; Wang et al. 2019 (GLUE).
    """
    names = (*_QUESTIONS, _QUORA_SCORE)
    records = _quora_records(path)
    line, header = next(records, (1, names))
    columns = find_columns(header, names, path, line)
    n_empty = 0
    torn: list[int] = []
    for line, record in records:
        if len(record) != len(header):
            torn.append(line)
            continue
        first, second, score = (record[column] for column in columns)
        if not has_text(first) or not has_text(second):
            n_empty += 1
            continue
        if score.strip() not in ("0", "1"):
            raise ValueError(
                f"{path}, line {line}: expected 0 or 1 in the column '{_QUORA_SCORE}', got "
                f"'{score}'. Repair the line."
            )
        yield Row(check_members((first, second), _QUESTIONS, path, line), line, score=float(score))
    if n_empty:
        logger.info("%s: left out %d records with an empty question", path, n_empty)
    if torn:
        message = Warnings.TORN_RECORDS.format(
            path=path, expected=len(header), lines=listed_lines(torn)
        )
        warn(message)


def _quora_records(path: Path) -> DelimitedRecords:
    """Read quoted records, or lines if quotes are in doubt, as torn records have them."""
    records = read_delimited(path)
    try:
        first = list(islice(records, 1))
    except ValueError:
        # An error for another reason than quotes comes again
        return read_delimited(path, delimiter="\t")
    return chain(first, records)


WIKISECTION_SENTENCES = ("Sentence1", "Sentence2", "Sentence3")


@register_format("wikisection")
def _wikisection_rows(path: Path) -> Iterator[Row]:
    """Read triplets, see wikisection_records.

    RAISES (ValueError): also for an empty sentence, or two equal ones.
    """
    for line, texts in wikisection_records(path):
        yield Row(check_members(texts, WIKISECTION_SENTENCES, path, line), line)


def wikisection_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the sentences of triplets as they are in the file, even if they teach nothing.

    path (Path): comma-separated with a header: Article Title, Sentence1, Sentence2, Sentence3.
    YIELDS (int, list of three str): the line, and the sentences: an anchor, one of the same
        section, and one of another section of the article.
    SOURCE: Ein Dor et al. 2018, Learning Thematic Similarity Metric Using Triplet Networks.
    """
    return _strict_columns(read_delimited(path, delimiter=","), WIKISECTION_SENTENCES, path)


def _strict_columns(
    records: DelimitedRecords, names: Sequence[str], path: Path
) -> Iterator[tuple[int, list[str]]]:
    """Yield columns by name.

    RAISES (ValueError): for a record that is not as wide as the header, as an unquoted separator
        shifts its columns.
    """
    line, header = next(records, (1, [*names]))
    columns = find_columns(header, names, path, line)
    for line, record in records:
        yield line, pick(record, columns, names, path, line, width=len(header))


_SICK_SENTENCES = ("sentence_A", "sentence_B")
_SICK_SCORE = "relatedness_score"
# As SemEval gave it out, and as the full set has it
_JUDGMENTS = ("entailment_judgment", "entailment_label")


@register_format("sick")
def sick_rows(path: Path) -> Iterator[Row]:
    """Read pairs with their relatedness and entailment.

    path (Path): tab-separated with a header: sentence_A, sentence_B, relatedness_score (1 to 5),
        entailment_judgment.
    YIELDS (Row): two members, the score scaled from 1..5 to 0..1, and the label in lower case.
    SOURCE: Marelli et al. 2014, SemEval-2014 task 1.
    """
    of_semeval, of_full_set = _JUDGMENTS
    _, header = next(read_delimited(path, delimiter="\t"), (1, [of_semeval]))
    judgment_column = of_full_set if of_full_set in header else of_semeval
    names = (*_SICK_SENTENCES, _SICK_SCORE, judgment_column)
    records = _strict_columns(read_delimited(path, delimiter="\t"), names, path)
    for line, (first, second, score, judgment) in records:
        yield Row(
            check_members((first, second), _SICK_SENTENCES, path, line),
            line,
            score=check_score(score, 1.0, 5.0, path, line, _SICK_SCORE),
            label=check_known(judgment.strip().lower(), _NLI_LABELS, path, line),
        )
