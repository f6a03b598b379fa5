"""`python -m spacy sbert distill-static`: a table of vectors, made from a teacher."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import check_corpus, check_pipeline, or_fail, use_gpu
from .group import app
from .options import FormerName, Gpu, Pipe, Quiet


@app.command("distill-static")
def distill_static_cli(
    teacher: Annotated[
        str, Argument(help="The pipeline of the teacher: a folder or an installed package.", callback=check_pipeline)
    ],
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
    pipe: Pipe = None,
    name: FormerName = None,
    gpu_id: Gpu = -1,
    quiet: Quiet = False,
) -> None:
    """Make a static encoder from a teacher.

    It has a vector for each wordpiece and frequent word, and no transformer.
    """
    import spacy

    from ..errors.progress import ticking
    from ..files.whole import new_folder
    from ..interchange import distill_static
    from ..readers.texts import read_texts

    use_gpu(gpu_id)
    with or_fail(f"Cannot distill {teacher}"), new_folder(output) as folder:
        with ticking("Loading", shown=not quiet):
            texts, _ = read_texts(vocabulary, column=column)
            loaded = spacy.load(teacher)
        nlp = distill_static(
            loaded, texts, size=size, words=words, name=name if pipe is None else pipe, progress=not quiet
        )
        nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
