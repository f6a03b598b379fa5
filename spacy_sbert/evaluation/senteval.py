"""The official layouts of SentEval's transfer and probing tasks, and of X-Probe."""

from collections.abc import Iterator
from pathlib import Path

from ..files.lines import read_lines
from ..files.tables import by_name, pick, read_tabs
from ..readers.rows import Row, check_members
from .errors import Errors

SENTENCE = "sentence"
TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")
SPLITS = ("tr", "va", "te")


def polarity_rows(path: Path, label: str) -> Iterator[Row]:
    """Read MR, CR, SUBJ or MPQA: a sentence a line, all of one label.

    YIELDS (Row): one member and the label. A blank line is a row with the empty text: CR has some, and its official
        count of sentences includes them.
    RAISES (ValueError): for a line that is not UTF-8.
    SOURCE: Conneau and Kiela 2018, SentEval, section 3.1; data/downstream/{MR,CR,SUBJ,MPQA}.
    """
    for line, text in read_lines(path):
        yield Row(check_members((text,), (SENTENCE,), path, line) if text.strip() else ("",), line, label=label)


def treebank_rows(path: Path, labels: tuple[str, ...]) -> Iterator[Row]:
    """Read a split of the Stanford Sentiment Treebank.

    path (Path): "sentence TAB label" a line, as SST/binary has it, or "label SPACE sentence", as SST/fine has it.
    labels (tuple of str): those of the task, such as ("0", "1").
    YIELDS (Row): one member and the label.
    RAISES (ValueError): for a missing or an unknown label, or an empty sentence.
    SOURCE: Socher et al. 2013; SentEval's data/downstream/SST.
    """
    for line, text in read_lines(path):
        if "\t" in text:
            sentence, _, label = text.rstrip("\r\n").rpartition("\t")
        else:
            label, _, sentence = text.strip().partition(" ")
        yield _labelled(sentence, label.strip(), labels, path, line)


def question_rows(path: Path) -> Iterator[Row]:
    """Read TREC questions: "COARSE:fine question" a line, in ISO 8859-1.

    YIELDS (Row): one member and the coarse label, one of six.
    RAISES (ValueError): for a missing or an unknown label, or an empty question.
    SOURCE: Li and Roth 2002, Learning Question Classifiers.
    """
    for line, text in read_lines(path, "latin-1"):
        label, _, question = text.strip().partition(" ")
        yield _labelled(question, label.partition(":")[0], TREC_LABELS, path, line)


def paraphrase_rows(path: Path) -> Iterator[Row]:
    """Read the Microsoft Research Paraphrase Corpus: tab-separated without quoting, with a header.

    YIELDS (Row): two members and the label, "1" for a paraphrase and "0" for none.
    RAISES (ValueError): for a missing column, an unknown label or an empty sentence.
    SOURCE: Dolan et al. 2004; columns Quality, #1 ID, #2 ID, #1 String, #2 String.
    """
    for line, (label, *texts) in by_name(read_tabs(path), MRPC_COLUMNS, path):
        check_known(label.strip(), ("0", "1"), path, line)
        yield Row(check_members(texts, MRPC_COLUMNS[1:], path, line), line, label=label.strip())


def probing_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Read a probing task in SentEval's layout: "split TAB label TAB sentence" a line, all splits in one file.

    YIELDS (str, Row): the split, "tr", "va" or "te", and a row with one member and a label.
    RAISES (ValueError): for an unknown split, a missing label or an empty sentence.
    SOURCE: Conneau et al. 2018, What you can cram into a single vector; SentEval's data/probing.
    """
    for line, record in read_tabs(path):
        split, label, sentence = pick(record, (0, 1, 2), ("split", "label", SENTENCE), path, line)
        check_known(split, SPLITS, path, line)
        yield split, _labelled(record[-1] if len(record) > 3 else sentence, label.strip(), None, path, line)


def x_probe_rows(path: Path) -> Iterator[Row]:
    """Read a split of a probing task in X-Probe's layout: "sentence TAB label" a line.

    YIELDS (Row): one member and a label.
    RAISES (ValueError): for a missing label or an empty sentence.
    SOURCE: Ravishankar et al. 2019, Probing Multilingual Sentence Representations With X-Probe.
    """
    for line, record in read_tabs(path):
        sentence, label = pick(record, (0, 1), (SENTENCE, "label"), path, line)
        yield _labelled(sentence, label.strip(), None, path, line)


def check_known(given: str, expected: tuple[str, ...], path: Path, line: int) -> None:
    """Refuse a value that is not expected. RAISES (ValueError): naming file, line and the values."""
    if given not in expected:
        known = ", ".join(expected)
        raise ValueError(Errors.UNKNOWN_LABEL.format(path=path, line=line, given=given, expected=known))


def _labelled(sentence: str, label: str, labels: tuple[str, ...] | None, path: Path, line: int) -> Row:
    if labels is not None:
        check_known(label, labels, path, line)
    members = check_members((sentence, label), (SENTENCE, "label"), path, line)
    return Row(members[:1], line, label=members[1])
