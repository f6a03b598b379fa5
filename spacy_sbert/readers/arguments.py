"""Pairs of arguments with a topic: the AFS corpus, and the UKP aspect corpus."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Errors
from ..files.atomic import check_input
from ..files.delimited import by_name, read_tabs
from ..files.dialect import parse_records
from ..files.text_lines import check_text
from .examples import Row, check_members, check_score

AFS_TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
_AFS_NAME = re.compile(rf"ArgPairs_({'|'.join(AFS_TOPICS)})(_.*)?\.csv")
_AFS_COLUMNS = 11  # the score, eight columns on where the sentences come from, and the sentences
AFS_MAX_SCORE = 5.0
ASPECT_FILE = "UKP_ASPECT.tsv"
# Reimers et al. 2019 oppose the first two to the last two; here what they call some similarity stands half way.
ASPECT_SCORES = {"DTORCD": 0.0, "NS": 0.0, "SS": 0.5, "HS": 1.0}
_SENTENCES = ("sentence_1", "sentence_2")


@dataclass(frozen=True)
class ArgumentRow(Row):
    """A pair of arguments as it stands in a file. topic: what both argue about."""

    topic: str = field(kw_only=True)


def afs_rows(path: Path) -> Iterator[ArgumentRow]:
    """Read one topic of the corpus of argument facet similarity (AFS).

    path (Path): ArgPairs_DP*.csv, ArgPairs_GC*.csv or ArgPairs_GM*.csv, the name says the topic; ISO-8859-1,
        comma-separated, quoted, with a header; 11 columns, the score from 0 to 5 first, the two sentences last.
    YIELDS (ArgumentRow): two members, the score scaled from 0..5 to 0..1, and the topic.
    RAISES (ValueError): for another name of the file, a file without a header, a line with another number of columns,
        a score out of range or an empty sentence.
    SOURCE: Misra et al. 2016, Measuring the Similarity of Sentential Arguments in Dialogue.
    """
    name = _AFS_NAME.fullmatch(path.name)
    if name is None:
        raise ValueError(
            f"{path}: the name of the file does not tell the topic. Expected ArgPairs_TOPIC.csv or "
            f"ArgPairs_TOPIC_*.csv, as the AFS corpus has them, with one of {', '.join(AFS_TOPICS)}."
        )
    for number, (line, record) in enumerate(_read_records(path)):
        if (given := len(record)) != _AFS_COLUMNS:
            raise ValueError(Errors.WRONG_COLUMNS.format(path=path, line=line, expected=_AFS_COLUMNS, given=given))
        if number == 0:
            if _is_number(record[0]):
                raise ValueError(
                    f"{path}, line {line}: expected the names of the columns, got '{record[0]}'. Put the header back."
                )
            continue
        score = check_score(record[0], 0.0, AFS_MAX_SCORE, path, line, "score")
        members = check_members(record[-2:], _SENTENCES, path, line)
        yield ArgumentRow(members, line, score=score, topic=AFS_TOPICS[name[1]])


def aspect_rows(path: Path) -> Iterator[ArgumentRow]:
    """Read the UKP aspect corpus.

    path (Path): tab-separated with a header: topic, sentence_1, sentence_2, label.
    YIELDS (ArgumentRow): two members, the label, the topic, and the score that ASPECT_SCORES has for the label: 0 for
        DTORCD (different topic or cannot decide) and NS (no similarity), 1/2 for SS (some similarity), 1 for HS (high
        similarity).
    RAISES (ValueError): for a missing column, an unknown label or an empty sentence or topic.
    SOURCE: Reimers et al. 2019, Classification and Clustering of Arguments with Contextualized Word Embeddings;
        there DTORCD and NS are dissimilar, SS and HS similar.
    """
    names = ("topic", *_SENTENCES, "label")
    for line, (topic, first, second, label) in by_name(read_tabs(path), names, path):
        label = label.strip()
        if label not in ASPECT_SCORES:
            expected = ", ".join(ASPECT_SCORES)
            raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=label, expected=expected))
        members = check_members((first, second), _SENTENCES, path, line)
        topic = check_text(topic, "topic", path, line)
        yield ArgumentRow(members, line, score=ASPECT_SCORES[label], label=label, topic=topic)


def afs_files(path: Path) -> list[Path]:
    """Return the files of AFS in a folder, by topic; a file is itself."""
    return [path] if path.is_file() else sorted(file for file in path.glob("*.csv") if _AFS_NAME.fullmatch(file.name))


def _aspect_files(path: Path) -> list[Path]:
    """Return the file of the UKP aspect corpus in a folder; a file is itself."""
    return [file for file in (path, path / ASPECT_FILE) if file.is_file()]


_Layout = tuple[Callable[[Path], list[Path]], Callable[[Path], Iterator[ArgumentRow]]]
LAYOUTS: dict[str, _Layout] = {"afs": (afs_files, afs_rows), "ukp": (_aspect_files, aspect_rows)}


def read_arguments(path: Path, layout: str) -> list[ArgumentRow]:
    """Read all pairs of a corpus of arguments.

    path (Path): its folder or one file. layout (str): "afs" or "ukp".
    RAISES (ValueError): if there are no files or no pairs, or see afs_rows and aspect_rows.
    """
    if layout not in LAYOUTS:
        raise ValueError(Errors.BAD_FORMAT.format(given=layout, expected=", ".join(LAYOUTS)))
    files, read = LAYOUTS[layout]
    if not path.is_dir():
        check_input(path)
    if not (rows := [row for file in files(path) for row in read(file)]):
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected=f"pairs of arguments in the layout '{layout}'"))
    return rows


def _read_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    check_input(path)
    with path.open(encoding="iso-8859-1", newline="") as file:  # which has a character for each byte
        yield from ((line, columns) for line, columns in parse_records(file, path) if columns)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
