"""`python -m spacy sbert convert`: from the official layouts of data sets, and from tables, to .spacy."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .group import app
from .ending import fail

FORMATS = "auto, sts, nli, sick, wikisection, quora, text or table"  # importing the readers would not be light


@app.command("convert")
def convert_cli(
    input_path: Annotated[Path, Argument(help="Pairs, triplets or texts, see --format", exists=True, dir_okay=False)],
    output_path: Annotated[Path, Argument(help="The .spacy file to write")],
    lang: Annotated[str, Option("--lang", "-l", help="Language whose tokenizer makes the Docs")] = "en",
    expect: Annotated[int | None, Option("--expect", "-e", help="Number of pairs the file must have")] = None,
    format: Annotated[str, Option("--format", "-f", help=f"Layout of the file: {FORMATS}")] = "auto",
    members: Annotated[str | None, Option("--members", "-m", help="Columns of a table's texts: q1,q2")] = None,
    score: Annotated[str | None, Option("--score", help="Column of a table's score")] = None,
    label: Annotated[str | None, Option("--label", help="Column of a table's label")] = None,
    min_score: Annotated[float, Option("--min-score", help="Score of a table that becomes 0")] = 0.0,
    max_score: Annotated[float, Option("--max-score", help="Score of a table that becomes 1")] = 1.0,
    no_header: Annotated[bool, Option("--no-header", help="A table's columns are named 0, 1, ...")] = False,
    limit: Annotated[int, Option("--limit", help="The most pairs to read, 0 for all")] = 0,
) -> None:
    """Convert sentence pairs, triplets or texts to .spacy, for spacy-sbert.PairCorpus.v1."""
    import logging

    from spacy.util import logger

    from ..readers import convert

    logger.setLevel(logging.INFO)  # says what was skipped
    columns = members.split(",") if members else None
    try:
        count = convert(
            input_path,
            output_path,
            lang=lang,
            expect=expect,
            format=format,
            members=columns,
            score=score,
            label=label,
            min_score=min_score,
            max_score=max_score,
            header=not no_header,
            limit=limit,
        )
    except (ImportError, OSError, ValueError) as error:
        fail(f"Cannot convert {input_path}", str(error))
    msg.good(f"Wrote {count} pairs to {output_path} (one epoch in batches of 16: {-(-count // 16)} steps)")
