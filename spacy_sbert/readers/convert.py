"""From files of text to .spacy."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from ..errors import Errors, reason_of
from ..files.atomic import atomic_write
from ..progress import progress_of, ticking
from ..validation import Name, NonNegative, validated
from .examples import example_doc
from .formats import AUTO, FORMATS, SPACY, Columns, find_format, read_rows


@validated
def convert(
    input_path: Path,
    output_path: Path,
    *,
    lang: Name = "en",
    expect: NonNegative | None = None,
    format: str = AUTO,
    members: Sequence[str] | None = None,
    score: str | None = None,
    label: str | None = None,
    min_score: float = 0.0,
    max_score: float = 1.0,
    header: bool = True,
    missing: Sequence[str] | None = None,
    limit: NonNegative = 0,
    progress: bool = False,
) -> int:
    """Convert pairs, triplets or single texts to .spacy.

    A .spacy file is held in memory whole, here and when it is read: for data that does not fit, let PairCorpus read
    the file of text itself, which it streams.

    input_path (Path): the file, see PairCorpus. output_path (Path): the .spacy file to write.
    lang (str): the language whose tokenizer makes the Docs.
    expect (int): how many examples there must be, None for any number above zero.
    format, members, score, label, min_score, max_score, header, missing, limit: see PairCorpus.
    progress (bool): whether to show progress bars.
    RETURNS (int): the number of examples written.
    RAISES (ValueError): if a line is not what it should be, or their number not as expected; nothing is written then.
    RAISES (OSError): if the file cannot be written; what was there stays.
    """
    if output_path.suffix != ".spacy":
        raise ValueError(f"Cannot write pairs to {output_path}: expected a name that ends in .spacy.")
    columns = Columns(tuple(members or ()), score, label, min_score, max_score, header, tuple(missing or ()))
    docs = _read_docs(input_path, spacy.blank(lang), format, columns, limit, progress)
    if expect is not None and len(docs) != expect:
        raise ValueError(
            f"{input_path} holds {len(docs)} pairs, expected {expect}: the file is incomplete or another one."
        )
    with ticking("Writing", shown=progress), atomic_write(output_path) as file:
        file.write(docs.to_bytes())
    return len(docs)


def _read_docs(path: Path, nlp: Language, format: str, columns: Columns, limit: int, progress: bool) -> DocBin:
    format = find_format(path, format, columns)
    if format == SPACY:
        expected = ", ".join(name for name in FORMATS if name != SPACY)
        raise ValueError(Errors.UNKNOWN_FORMAT.format(path=path, expected=expected))
    docs = DocBin()
    rows = islice(read_rows(path, format, columns), limit or None)
    for row in progress_of(rows, desc="Reading", unit="examples", shown=progress):
        try:
            docs.add(example_doc(nlp, row.members, score=row.score, label=row.label))
        except ValueError as error:  # of the tokenizer, which does not know the file
            raise ValueError(Errors.BAD_EXAMPLE.format(path=path, line=row.line, reason=reason_of(error))) from error
    return docs
