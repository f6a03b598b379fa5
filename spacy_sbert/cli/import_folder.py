"""`python -m spacy sbert import`: from a folder of sentence-transformers to a pipeline."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import or_fail
from .group import app


@app.command("import")
def import_cli(
    source: Annotated[str, Argument(help="A folder of sentence-transformers, or a name on the Hugging Face hub")],
    output: Annotated[Path, Argument(help="Folder for the pipeline; must not be there yet")],
    lang: Annotated[str, Option("--lang", "-l", help="Language whose tokenizer makes the Docs")] = "en",
    name: Annotated[str, Option("--name", "-n", help="Name of the sbert pipe")] = "sbert",
    precision: Annotated[
        str | None, Option("--precision", help="float32, bfloat16, float16, auto or reference; see the docs")
    ] = None,
) -> None:
    """Make a pipeline of a sentence-transformers model, with the same vectors. Code that comes with it is not run."""
    from ..files.whole import new_folder
    from ..interchange import REFERENCE, import_folder

    with or_fail(f"Cannot import {source}"):
        nlp = import_folder(source, lang=lang, name=name, precision=precision)
        with new_folder(output) as folder:
            nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
    if nlp.config["components"][name]["model"].get("precision") == REFERENCE:
        msg.info(
            "It encodes as sentence-transformers does, batch by batch, in the same time. Import with --precision "
            "float32 for about twice the speed: vectors differ by some 1e-6 then."
        )
