"""`python -m spacy sbert import`: from a folder of sentence-transformers to a pipeline."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("import")
def import_cli(
    source: Annotated[str, Argument(help="A folder of sentence-transformers, or a name on the Hugging Face hub")],
    output: Annotated[Path, Argument(help="Folder for the pipeline; must not be there yet")],
    lang: Annotated[str, Option("--lang", "-l", help="Language whose tokenizer makes the Docs")] = "en",
    name: Annotated[str, Option("--name", "-n", help="Name of the sbert pipe")] = "sbert",
) -> None:
    """Make a pipeline of a sentence-transformers model, with the same vectors. Code that comes with it is not run."""
    from ..interchange import import_folder
    from ..whole import new_folder

    try:
        nlp = import_folder(source, lang=lang, name=name)
        with new_folder(output) as folder:
            nlp.to_disk(folder)
    except (OSError, ValueError) as error:
        msg.fail(f"Cannot import {source}", str(error), exits=1)
    msg.good(f"Saved the pipeline to {output}")
