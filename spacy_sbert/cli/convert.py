"""`python -m spacy sbert convert`: from the official STS benchmark layout to .spacy."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("convert")
def convert_cli(
    input_path: Annotated[Path, Argument(help="Pairs in the layout of the STS benchmark", exists=True, dir_okay=False)],
    output_path: Annotated[Path, Argument(help="The .spacy file to write")],
    lang: Annotated[str, Option("--lang", "-l", help="Language whose tokenizer makes the Docs")] = "en",
    expect: Annotated[int | None, Option("--expect", "-e", help="Number of pairs the file must have")] = None,
) -> None:
    """Convert graded sentence pairs to .spacy, for spacy-sbert.PairCorpus.v1."""
    from ..readers import convert

    try:
        count = convert(input_path, output_path, lang=lang, expect=expect)
    except ValueError as error:
        msg.fail(f"Cannot convert {input_path}", str(error), exits=1)
    msg.good(f"Wrote {count} pairs to {output_path} (one epoch in batches of 16: {-(-count // 16)} steps)")
