"""Commands that export, import and distill encoders."""

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from ._util import app, check_corpus, check_pipeline, exit_on_error, load
from .options import Code, Gpu, Lang, Pipe, Pipeline, Precision, Quiet


@app.command("export")
def _export_cli(
    pipeline: Pipeline,
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
) -> None:
    """Write a folder for sentence-transformers.

    SentenceTransformer("OUTPUT") loads the encoder of the pipeline from it, with the same vectors.
    """
    check_pipeline(pipeline)

    from ..hub import export_folder
    from ..progress import ticking

    nlp = load(pipeline, pipe, code, quiet=quiet)
    with exit_on_error(f"Cannot export {pipeline}"), ticking("Writing", shown=not quiet):
        export_folder(nlp, output, name=pipe)
    msg.good(f"Saved the folder to {output}: SentenceTransformer({str(output)!r}) loads it")


_DEFAULT_PIPE = "sbert"


@app.command("import")
def _import_cli(
    source: Annotated[str, Argument(help="The folder of sentence-transformers, or a name on the Hugging Face hub.")],
    output: Annotated[Path, Argument(help="The folder to write, which must not be there yet.")],
    lang: Lang = "en",
    pipe: Annotated[str, Option("--pipe", help="The name of the pipe.")] = _DEFAULT_PIPE,
    precision: Precision = None,
    quiet: Quiet = False,
) -> None:
    """Make a pipeline of a sentence-transformers model.

    It has the same vectors. Code that comes with the model is not run.
    """
    from ..files.atomic import atomic_folder
    from ..hub import REFERENCE, import_folder
    from ..progress import ticking

    with exit_on_error(f"Cannot import {source}"):
        with ticking("Loading", shown=not quiet):
            nlp = import_folder(source, lang=lang, name=pipe, precision=cast(Any, precision))
        with ticking("Writing", shown=not quiet), atomic_folder(output) as folder:
            nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
    if nlp.config["components"][pipe]["model"].get("precision") == REFERENCE:
        msg.info(
            "It encodes as sentence-transformers does, batch by batch, in the same time. Import with --precision "
            "float32 for about twice the speed: vectors differ by some 1e-6 then."
        )


@app.command("distill-static")
def _distill_static_cli(
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
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
) -> None:
    """Make a static encoder from a teacher.

    It has a vector for each wordpiece and frequent word, and no transformer.
    """
    check_pipeline(teacher)

    from ..files.atomic import atomic_folder
    from ..hub import distill_static
    from ..progress import ticking
    from .visualize import read_texts

    with exit_on_error(f"Cannot distill {teacher}"), atomic_folder(output) as folder:
        with ticking("Reading", shown=not quiet):
            texts, _ = read_texts(vocabulary, column=column)
        loaded = load(teacher, pipe, code, quiet=quiet, gpu_id=gpu_id)
        nlp = distill_static(loaded, texts, size=size, words=words, name=pipe, progress=not quiet)
        nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
