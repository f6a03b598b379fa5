"""`python -m spacy sbert convert`: from the official layouts of data sets, and from tables, to .spacy."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import check_new, or_fail
from .found_columns import reading_of
from .group import app
from .options import Lang, Layout, Limit, Overwrite, Quiet, takes_options


@app.command("convert")
@takes_options
def convert_cli(
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
    *,
    layout: Layout,
) -> None:
    """Convert pairs, triplets or texts to .spacy.

    The reader spacy-sbert.PairCorpus.v1 reads the file.
    """
    import logging

    from spacy.util import logger

    from ..readers import convert

    check_new(output_path, overwrite=overwrite)
    logger.setLevel(logging.INFO)  # says what was skipped
    with or_fail(f"Cannot convert {input_path}"):
        # Who names the texts may want no gold.
        reading = layout.reading() if layout.members else reading_of(input_path, layout, shown=not quiet)
        for edge, given in (("min_score", layout.min_score), ("max_score", layout.max_score)):
            if given is None:  # the files of a data set have one scale, and each alone may show less of it
                reading.pop(edge, None)
        count = convert(input_path, output_path, lang=lang, expect=expect, limit=limit, progress=not quiet, **reading)
    msg.good(f"Wrote {count} pairs to {output_path} (one epoch in batches of 16: {-(-count // 16)} steps)")
