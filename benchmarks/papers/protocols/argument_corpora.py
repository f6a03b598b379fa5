"""Readers of pairs of arguments: argument facet similarity (AFS) and the UKP aspect corpus."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from spacy_sbert.errors import Errors
from spacy_sbert.files.atomic import check_input
from spacy_sbert.files.delimited import by_name, read_delimited
from spacy_sbert.files.text_lines import check_cell
from spacy_sbert.readers.datasets import check_known
from spacy_sbert.readers.examples import Row, as_number, check_members, check_score

AFS_TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
_AFS_NAME = re.compile(rf"ArgPairs_({'|'.join(AFS_TOPICS)})(_.*)?\.csv")
# The score, eight columns on where the sentences come from, and the sentences
_AFS_COLUMNS = 11
AFS_MAX_SCORE = 5.0
ASPECT_FILE = "UKP_ASPECT.tsv"
# Reimers et al. 2019 oppose the first two to the last two; here what they call some similarity
# stands half way.
ASPECT_SCORES = {"DTORCD": 0.0, "NS": 0.0, "SS": 0.5, "HS": 1.0}
_SENTENCES = ("sentence_1", "sentence_2")


@dataclass(frozen=True)
class ArgumentRow(Row):
    """A pair of arguments as it stands in a file. topic: what both argue about."""

    topic: str = field(kw_only=True)


def afs_rows(path: Path) -> Iterator[ArgumentRow]:
    """Read one topic of the corpus of argument facet similarity (AFS).

    path (Path): ArgPairs_DP*.csv, ArgPairs_GC*.csv or ArgPairs_GM*.csv, the name says the topic;
        ISO-8859-1, comma-separated, quoted, with a header; 11 columns, the score from 0 to 5 first,
        the two sentences last.
    YIELDS (ArgumentRow): two members, the score scaled from 0..5 to 0..1, and the topic.
    SOURCE: Misra et al. 2016, Measuring the Similarity of Sentential Arguments in Dialogue.
    """
    name = _AFS_NAME.fullmatch(path.name)
    if name is None:
        raise ValueError(
            f"{path}: the name of the file does not tell the topic. Expected ArgPairs_TOPIC.csv or "
            "ArgPairs_TOPIC_*.csv, as the AFS corpus has them, with one of "
            f"{', '.join(AFS_TOPICS)}."
        )
    records = read_delimited(path, delimiter=",", encoding="latin-1")
    for number, (line, record) in enumerate(records):
        if (given := len(record)) != _AFS_COLUMNS:
            raise ValueError(
                f"{path}, line {line}: expected {_AFS_COLUMNS} columns, got {given}. Repair the "
                "line."
            )
        if number:
            score = check_score(record[0], 0.0, AFS_MAX_SCORE, path, line, "score")
            members = check_members(record[-2:], _SENTENCES, path, line)
            yield ArgumentRow(members, line, score=score, topic=AFS_TOPICS[name[1]])
        elif not isnan(as_number(record[0])):
            raise ValueError(
                f"{path}, line {line}: expected the names of the columns, got '{record[0]}'. Put "
                "the header back."
            )


def aspect_rows(path: Path) -> Iterator[ArgumentRow]:
    """Read the UKP aspect corpus.

    path (Path): tab-separated with a header: topic, sentence_1, sentence_2, label.
    YIELDS (ArgumentRow): two members, the label, the topic, and the score that ASPECT_SCORES has
        for the label: 0 for DTORCD (different topic or cannot decide) and NS (no similarity), 1/2
        for SS (some similarity), 1 for HS (high similarity).
    SOURCE: Reimers et al. 2019, Classification and Clustering of Arguments with Contextualized Word
        Embeddings; there DTORCD and NS are dissimilar, SS and HS similar.
    """
    names = ("topic", *_SENTENCES, "label")
    for line, (topic, first, second, label) in by_name(
        read_delimited(path, delimiter="\t"), names, path
    ):
        label = check_known(label.strip(), ASPECT_SCORES, path, line)
        members = check_members((first, second), _SENTENCES, path, line)
        topic = check_cell(topic, "topic", path, line)
        yield ArgumentRow(members, line, score=ASPECT_SCORES[label], label=label, topic=topic)


ARGUMENTS: dict[str, Callable[[Path], Iterator[ArgumentRow]]] = {
    "afs": afs_rows,
    "ukp": aspect_rows,
}


def argument_files(path: Path, layout: str) -> list[Path]:
    """Return the files of a corpus of arguments in a folder, those of AFS by topic; a file is
    itself.
    """
    if path.is_file():
        return [path]
    files = path.glob("*.csv" if layout == "afs" else ASPECT_FILE)
    return sorted(file for file in files if layout != "afs" or _AFS_NAME.fullmatch(file.name))


def read_arguments(path: Path, layout: str) -> list[ArgumentRow]:
    """Read all pairs of a corpus of arguments, of its folder or one file; layout (str): "afs" or
    "ukp".
    """
    if layout not in ARGUMENTS:
        raise ValueError(f"Unknown format '{layout}': expected one of {', '.join(ARGUMENTS)}.")
    if not path.is_dir():
        check_input(path)
    rows = [row for file in argument_files(path, layout) for row in ARGUMENTS[layout](file)]
    if not rows:
        raise ValueError(
            Errors.NO_PAIRS.format(
                path=path, expected=f"pairs of arguments in the layout '{layout}'"
            )
        )
    return rows
