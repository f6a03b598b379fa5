"""`python -m spacy sbert distill-static`: a table of vectors, made from a teacher."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import check_corpus, or_fail
from .group import app
from .loading import Computing, check_pipeline
from .options import Pipeline, takes_options


@app.command("distill-static")
@takes_options
def distill_static_cli(
    teacher: Pipeline,
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    vocabulary: Annotated[
        Path,
        Option(
            "--vocabulary",
            "-v",
            help="The file of texts whose frequent words are learned: one a line, or a table.",
            exists=True,
            dir_okay=False,
            callback=check_corpus,
        ),
    ],
    size: Annotated[int, Option("--size", "-s", help="The width of the new vectors.", min=1)] = 256,
    words: Annotated[
        int, Option("--words", "-w", help="The largest number of words with a vector of their own.", min=0)
    ] = 20000,
    column: Annotated[str | None, Option("--column", "-c", help="The column or JSON field of the texts.")] = None,
    *,
    loading: Computing,
) -> None:
    """Make a static encoder from a teacher.

    It has a vector for each wordpiece and frequent word, and no transformer.
    """
    check_pipeline(teacher)

    from ..errors.progress import ticking
    from ..files.whole import new_folder
    from ..interchange import distill_static
    from ..readers.texts import read_texts

    with or_fail(f"Cannot distill {teacher}"), new_folder(output) as folder:
        with ticking("Reading", shown=loading.shown):
            texts, _ = read_texts(vocabulary, column=column)
        loaded = loading.load(teacher)
        nlp = distill_static(loaded, texts, size=size, words=words, name=loading.pipe, progress=loading.shown)
        nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
