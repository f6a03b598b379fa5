"""`python -m spacy sbert convert`: from the official layouts of data sets, and from tables, to .spacy."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from ._util import app, check_new, exit_on_error
from .infer_columns import reading_of
from .options import Format, Header, Label, Lang, Limit, MaxScore, Members, MinScore, Overwrite, Quiet, Score, layout_of


@app.command("convert")
def _convert_cli(
    input_path: Annotated[
        Path, Argument(help="The file of pairs, triplets or texts, see --format.", exists=True, dir_okay=False)
    ],
    output_path: Annotated[Path, Argument(help="The .spacy file to write.")],
    lang: Lang = "en",
    expect: Annotated[
        int | None, Option("--expect", "-e", help="The number of examples that the file must have.")
    ] = None,
    limit: Limit = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    format: Format = "auto",
    members: Members = None,
    score: Score = None,
    label: Label = None,
    min_score: MinScore = None,
    max_score: MaxScore = None,
    header: Header = True,
) -> None:
    """Convert pairs, triplets or texts to .spacy.

    The reader spacy-sbert.PairCorpus.v1 reads the file.
    """
    import logging

    from spacy.util import logger

    from ..readers import convert

    layout = layout_of(
        format=format,
        members=members,
        score=score,
        label=label,
        min_score=min_score,
        max_score=max_score,
        header=header,
    )
    check_new(output_path, overwrite=overwrite)
    logger.setLevel(logging.INFO)  # says what was skipped
    with exit_on_error(f"Cannot convert {input_path}"):
        # Texts that are named alone need no gold.
        is_named = members and not (score or label)
        reading = layout if is_named else reading_of(input_path, layout, shown=not quiet)
        _check_range(input_path, layout, reading)
        count = convert(input_path, output_path, lang=lang, expect=expect, limit=limit, progress=not quiet, **reading)
    msg.good(f"Wrote {count} pairs to {output_path} (one epoch in batches of 16: {-(-count // 16)} steps)")


def _check_range(path: Path, layout: dict[str, Any], reading: dict[str, Any]) -> None:
    """Check that scores are not scaled by what one file shows of their range.

    RAISES (ValueError): if they would be.

    The files of a data set have one range, and each of them may show less of it.
    """
    low, high = reading.get("min_score", 0.0), reading.get("max_score", 1.0)
    is_given = "min_score" in layout or "max_score" in layout
    if (low, high) != (0.0, 1.0) and not is_given:
        raise ValueError(
            f"The scores of {path} (column '{reading['score']}') are in the range {low:g} to {high:g}, and "
            f"are stored from 0 to 1. Give the range of the whole data set: --min-score {low:g} --max-score "
            f"{high:g}."
        )
    for edge in ("min_score", "max_score"):
        if edge not in layout:
            reading.pop(edge, None)
