"""`python -m spacy sbert export`: from a pipeline to a folder of sentence-transformers."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import or_fail
from .group import app


@app.command("export")
def export_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package with an sbert pipe")],
    output: Annotated[Path, Argument(help="Folder for SentenceTransformer(OUTPUT); must not be there yet")],
    name: Annotated[str | None, Option("--name", "-n", help="Which sbert pipe, if there are several")] = None,
) -> None:
    """Write the encoder of a pipeline as a folder that sentence-transformers loads, with the same vectors."""
    from spacy.util import load_model

    from ..interchange import export_folder

    with or_fail(f"Cannot export {pipeline}"):
        export_folder(load_model(pipeline), output, name=name)
    msg.good(f"Saved the folder to {output}: SentenceTransformer({str(output)!r}) loads it")
