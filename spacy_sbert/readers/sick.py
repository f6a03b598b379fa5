"""The official layout of SICK."""

from collections.abc import Iterator
from pathlib import Path

from ..files.tables import check_width, find_columns, pick, read_tabs
from .nli import check_label
from .rows import Row, check_members, check_score

SENTENCES = ("sentence_A", "sentence_B")
SCORE = "relatedness_score"
LABELS = ("entailment_judgment", "entailment_label")  # as SemEval gave it out, and as the full set has it


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
        label = LABELS[1] if LABELS[1] in header else LABELS[0]
        names = (*SENTENCES, SCORE, label)
        columns, width = find_columns(header, names, path, line), len(header)
        break
    for line, record in records:
        first, second, score, judgment = pick(record, columns, names, path, line)
        check_width(record, width, path, line)
        yield Row(
            check_members((first, second), SENTENCES, path, line),
            line,
            score=check_score(score, 1.0, 5.0, path, line, SCORE),
            label=check_label(judgment.strip().lower(), path, line),
        )
