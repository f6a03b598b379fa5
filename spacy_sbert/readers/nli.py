"""The official layout of SNLI and MultiNLI: JSON, one object a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.util import logger

from ..files.lines import Row, check_members, read_lines
from .errors import Errors

NLI_LABELS = ("entailment", "neutral", "contradiction")
NO_CONSENSUS = "-"
SENTENCES = ("sentence1", "sentence2")


def nli_rows(path: Path) -> Iterator[Row]:
    """Read premises and hypotheses with their label.

    path (Path): .jsonl with gold_label, sentence1 and sentence2 in each object; other fields are passed over.
    YIELDS (Row): two members and a label. Pairs without a consensus (gold_label "-") are left out, and their number
        is logged at the end of the file.
    RAISES (ValueError): for a line that is no JSON object, a missing field, an unknown label or an empty sentence.
    SOURCE: Bowman et al. 2015 (SNLI 1.0); Williams et al. 2018 (MultiNLI 1.0).
    """
    skipped = 0
    for line, record in read_objects(path):
        label, *texts = (get_field(record, name, path, line) for name in ("gold_label", *SENTENCES))
        if label == NO_CONSENSUS:
            skipped += 1
            continue
        check_label(label, path, line)
        yield Row(check_members(texts, SENTENCES, path, line), line, label=label)
    if skipped:
        logger.info("%s: left out %d pairs without a consensus (gold_label '-')", path, skipped)


def check_label(label: Any, path: Path, line: int) -> str:
    """A label of natural language inference.

    RAISES (ValueError): for any other.
    """
    if label not in NLI_LABELS:
        expected = ", ".join(NLI_LABELS)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=label, expected=expected))
    return str(label)


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a JSON object a line; blank lines are passed over.

    YIELDS (int, dict): the number of the line and its object.
    RAISES (ValueError): for a line that is none.
    """
    for line, text in read_lines(path):
        if not text.strip():
            continue
        yield line, parse_object(text, path, line)


def parse_object(text: str, path: Path, line: int) -> dict[str, Any]:
    """A JSON object.

    RAISES (ValueError): if the text is none.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=error)) from error
    if not isinstance(record, dict):
        raise ValueError(Errors.BAD_JSON.format(path=path, line=line, reason=f"a {type(record).__name__}"))
    return record


def get_field(record: dict[str, Any], name: str, path: Path, line: int) -> Any:
    """A field of an object.

    RAISES (ValueError): if there is none of that name.
    """
    if name not in record:
        raise ValueError(Errors.NO_COLUMN.format(path=path, line=line, column=name, given=", ".join(record)))
    return record[name]
