"""`python -m spacy sbert export`: from a pipeline to a folder of sentence-transformers."""

from pathlib import Path
from typing import Annotated

from typer import Argument
from wasabi import msg

from .ending import or_fail
from .group import app
from .options import FormerName, Pipe, Pipeline, Quiet


@app.command("export")
def export_cli(
    pipeline: Pipeline,
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    pipe: Pipe = None,
    name: FormerName = None,
    quiet: Quiet = False,
) -> None:
    """Write a folder for sentence-transformers.

    SentenceTransformer("OUTPUT") loads the encoder of the pipeline from it, with the same vectors.
    """
    from spacy.util import load_model

    from ..errors.progress import ticking
    from ..interchange import export_folder

    with or_fail(f"Cannot export {pipeline}"):
        with ticking("Loading", shown=not quiet):
            nlp = load_model(pipeline)
        with ticking("Writing", shown=not quiet):
            export_folder(nlp, output, name=name if pipe is None else pipe)
    msg.good(f"Saved the folder to {output}: SentenceTransformer({str(output)!r}) loads it")
