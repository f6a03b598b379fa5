"""`python -m spacy sbert import`: from a folder of sentence-transformers to a pipeline."""

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from .ending import or_fail
from .group import app
from .options import Lang, Precision, Quiet

DEFAULT_PIPE = "sbert"


@app.command("import")
def import_cli(
    source: Annotated[str, Argument(help="The folder of sentence-transformers, or a name on the Hugging Face hub.")],
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    lang: Lang = "en",
    pipe: Annotated[str, Option("--pipe", help="The name of the pipe.")] = DEFAULT_PIPE,
    precision: Precision = None,
    quiet: Quiet = False,
) -> None:
    """Make a pipeline of a sentence-transformers model.

    It has the same vectors. Code that comes with the model is not run.
    """
    from ..errors.progress import ticking
    from ..files.whole import new_folder
    from ..interchange import REFERENCE, import_folder

    with or_fail(f"Cannot import {source}"):
        with ticking("Loading", shown=not quiet):
            nlp = import_folder(source, lang=lang, name=pipe, precision=cast(Any, precision))
        with ticking("Writing", shown=not quiet), new_folder(output) as folder:
            nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
    if nlp.config["components"][pipe]["model"].get("precision") == REFERENCE:
        msg.info(
            "It encodes as sentence-transformers does, batch by batch, in the same time. Import with --precision "
            "float32 for about twice the speed: vectors differ by some 1e-6 then."
        )
