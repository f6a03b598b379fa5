"""Convert files of examples to .spacy."""

from collections.abc import Sequence
from pathlib import Path

import spacy
from spacy.tokens import DocBin

from ..files.atomic import atomic_write
from ..progress import progress_of, ticking
from ..validation import Name, NonNegative, validated
from .corpora import PairCorpus
from .formats import AUTO, SPACY, unknown_format


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

    A .spacy file is held in memory whole, here and when it is read: for data that does not fit, let
    PairCorpus read the file of text itself, which it streams.

    input_path (Path): the file, see PairCorpus. output_path (Path): the .spacy file to write.
    lang (str): the language whose tokenizer makes the Docs.
    expect (int): how many examples there must be, None for any number above zero.
    format, members, score, label, min_score, max_score, header, missing, limit: see PairCorpus.
    progress (bool): whether to show progress bars.
    RETURNS (int): the number of examples written.
    RAISES (ValueError, OSError): for a bad line, another number, or a failed write; what was there
        stays.

    Example:
        convert(Path("pairs.csv"), Path("pairs.spacy"), members=["first", "second"], score="score")

    """
    if output_path.suffix != ".spacy":
        raise ValueError(
            f"Cannot write pairs to {output_path}: expected a name that ends in .spacy."
        )
    corpus = PairCorpus(
        input_path,
        limit=limit,
        format=format,
        members=members,
        score=score,
        label=label,
        min_score=min_score,
        max_score=max_score,
        header=header,
        missing=missing,
    )
    if any(kind == SPACY for _, kind in corpus.files):
        raise unknown_format(input_path)
    docs = DocBin()
    examples = corpus(spacy.blank(lang))
    for example in progress_of(examples, desc="Reading", unit="examples", shown=progress):
        docs.add(example.reference)
    if expect is not None and len(docs) != expect:
        raise ValueError(
            f"{input_path} holds {len(docs)} pairs, expected {expect}: the file is incomplete or "
            "another one."
        )
    with ticking("Writing", shown=progress), atomic_write(output_path) as file:
        file.write(docs.to_bytes())
    return len(docs)
