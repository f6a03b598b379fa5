"""The official layout of SNLI and MultiNLI: JSON, one object a line."""

from collections.abc import Iterator
from pathlib import Path

from spacy.util import logger

from ..files.tables import get_field, read_objects
from .errors import Errors
from .rows import Row, check_members

NLI_LABELS = ("entailment", "neutral", "contradiction")
NO_CONSENSUS = "-"
SENTENCES = ("sentence1", "sentence2")


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
        label, *texts = (get_field(record, name, path, line) for name in ("gold_label", *SENTENCES))
        if label == NO_CONSENSUS:
            skipped += 1
            continue
        label = check_label(label, path, line)
        yield Row(check_members(texts, SENTENCES, path, line), line, label=label)
    if skipped:
        logger.info("%s: left out %d pairs without a consensus (gold_label '-')", path, skipped)


def check_label(label: object, path: Path, line: int) -> str:
    """A label of natural language inference. RAISES (ValueError): for any other."""
    if label not in NLI_LABELS:
        expected = ", ".join(NLI_LABELS)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=label, expected=expected))
    return str(label)
