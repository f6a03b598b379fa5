"""`python -m spacy sbert export`: from a pipeline to a folder of sentence-transformers."""

from pathlib import Path
from typing import Annotated

from typer import Argument
from wasabi import msg

from .ending import or_fail
from .group import app
from .loading import Loading, check_pipeline
from .options import Pipeline, takes_options


@app.command("export")
@takes_options
def export_cli(
    pipeline: Pipeline,
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    *,
    loading: Loading,
) -> None:
    """Write a folder for sentence-transformers.

    SentenceTransformer("OUTPUT") loads the encoder of the pipeline from it, with the same vectors.
    """
    check_pipeline(pipeline)

    from ..errors.progress import ticking
    from ..interchange import export_folder

    nlp = loading.load(pipeline)
    with or_fail(f"Cannot export {pipeline}"), ticking("Writing", shown=loading.shown):
        export_folder(nlp, output, name=loading.pipe)
    msg.good(f"Saved the folder to {output}: SentenceTransformer({str(output)!r}) loads it")
