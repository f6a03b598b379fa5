"""`python -m spacy sbert distill-static`: a table of vectors, made from a teacher."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import or_fail, use_gpu
from .group import app
from .options import Gpu


@app.command("distill-static")
def distill_static_cli(
    teacher: Annotated[str, Argument(help="A pipeline with an sbert pipe: a folder or an installed package")],
    output: Annotated[Path, Argument(help="Folder for the static pipeline; must not be there yet")],
    vocabulary: Annotated[
        Path, Option("--vocabulary", "-v", help="Plain texts, one a line, or .jsonl", exists=True, dir_okay=False)
    ],
    size: Annotated[int, Option("--size", "-s", help="Numbers in a vector", min=1)] = 256,
    words: Annotated[int, Option("--words", "-w", help="The most words with a vector of their own", min=0)] = 20000,
    column: Annotated[str | None, Option("--column", help="Column of the texts in a table")] = None,
    name: Annotated[str | None, Option("--name", "-n", help="The teacher's sbert pipe, by default the last")] = None,
    gpu_id: Gpu = -1,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bars")] = False,
) -> None:
    """Make a static encoder of a teacher: a vector for each wordpiece and frequent word, no transformer in it."""
    import spacy

    from ..files.whole import new_folder
    from ..interchange import distill_static
    from ..readers.texts import read_texts

    use_gpu(gpu_id)
    with or_fail(f"Cannot distill {teacher}"), new_folder(output) as folder:
        texts, _ = read_texts(vocabulary, column=column)
        nlp = distill_static(spacy.load(teacher), texts, size=size, words=words, name=name, progress=not quiet)
        nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
