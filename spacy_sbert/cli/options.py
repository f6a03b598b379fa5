"""Arguments and options that several commands share, as annotated types, and what they stand for."""

import csv
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

_FORMATS = "auto, sts, nli, sick, wikisection, quora, text or table"  # to import the readers would take too long
AUTO = "auto"
TEXTS = "The file of texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet."
CODE = "A Python file that registers functions of your own."
GPU = "The GPU to work on, or -1 for the CPU."
HEADER = "Read the first row of .csv and .tsv as data, and name the columns 0, 1, and so on."

Pipeline = Annotated[str, Argument(help="The pipeline: a folder or an installed package, or the name of an encoder.")]
Code = Annotated[Path | None, Option("--code", help=CODE, exists=True, dir_okay=False)]
IdColumn = Annotated[str | None, Option("--id-column", help="A column to copy into the output, as id.")]
Pipe = Annotated[str | None, Option("--pipe", help="The name of the pipe to use; by default the last of its kind.")]
Output = Annotated[Path | None, Option("--output", "-o", help="The JSON file to write the results to.", dir_okay=False)]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace the output if it is there already.")]
Gpu = Annotated[int, Option("--gpu-id", "-g", help=GPU, min=-1)]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress bar.")]
Lang = Annotated[str, Option("--lang", "-l", help="The language whose tokenizer makes the Docs.")]
COLUMN = "text"  # by default
Column = Annotated[
    str | None, Option("--column", "-c", help="The column or JSON field of the texts.", show_default=COLUMN)
]
Header = Annotated[bool, Option(" /--no-header", help=HEADER, show_default=False)]
Precision = Annotated[
    str | None,
    Option("--precision", help="The precision to compute in: float32, bfloat16, float16, int8, auto or reference."),
]
VECTORS = "Vectors that `encode` wrote of the same texts, so that they are not encoded again."
Vectors = Annotated[Path | None, Option("--vectors", help=VECTORS, exists=True)]
Limit = Annotated[int, Option("--limit", help="Read at most this many examples, or 0 for all.", min=0)]
Seed = Annotated[int | None, Option("--seed", help="The seed of what is drawn at random.", min=0)]
Members = Annotated[
    str | None, Option("--members", "-m", help="The columns of a table's texts, with commas between: first,second.")
]
Score = Annotated[str | None, Option("--score", help="The column of a table's scores.")]
Label = Annotated[str | None, Option("--label", help="The column of a table's labels.")]
MinScore = Annotated[float | None, Option("--min-score", help="The score in a table that becomes 0.")]
MaxScore = Annotated[float | None, Option("--max-score", help="The score in a table that becomes 1.")]
Format = Annotated[str, Option("--format", "-f", help=f"The layout of the file: {_FORMATS}.")]


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def column_names_in(text: str) -> tuple[str, ...]:
    """Return the names of columns in a list with commas; a name that has a comma is in quotes.

    RAISES (BadParameter): if quotes are not closed.
    """
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise BadParameter(
            f"Cannot read --members {text} ({error}): expected names with commas between. Put a name that has "
            "a comma in quotes: --members '\"q,r\",text2'."
        ) from error
    return tuple(name.strip() for name in names if name.strip())


def without_none(**options: object) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def layout_of(*, members: str | None, **options: object) -> dict[str, Any]:
    """Return the options on the layout of a file that have a value, as PairCorpus takes them; an empty name is none."""
    layout = {name: value for name, value in options.items() if value not in (None, "")}
    if "format" in options:
        layout.setdefault("format", AUTO)
    return layout | ({"members": column_names_in(members)} if members else {})
