"""`python -m spacy sbert fit-meta`: combine the sentence encoders of a pipeline, on plain sentences."""

import os
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from ._util import app, check_corpus, check_new, check_pipeline, exit_on_error, load
from .options import Code, Gpu, Overwrite, Pipeline, Quiet

_DEFAULT_PIPE = "sbert_meta"


@app.command("fit-meta")
def _fit_meta_cli(
    pipeline: Pipeline,
    corpus: Annotated[
        Path,
        Argument(
            help="The file of sentences: one a line, a table, or .jsonl.",
            exists=True,
            dir_okay=False,
            callback=check_corpus,
        ),
    ],
    output: Annotated[Path, Argument(help="The folder to write the pipeline to.")],
    method: Annotated[str | None, Option("--method", "-m", help="The method: conc, avg, svd, gcca or ae.")] = None,
    size: Annotated[int | None, Option("--size", "-s", help="The width of the new vectors.", min=1)] = None,
    option: Annotated[
        list[str] | None, Option("--option", "-o", help="An option of the method, such as tau=1.0; may be repeated.")
    ] = None,
    column: Annotated[
        int | None, Option("--column", "-c", help="The number of the sentences' column in a table, from 1.", min=1)
    ] = None,
    max_tokens: Annotated[
        int, Option("--max-tokens", help="Take only sentences of fewer tokens, or with 0 all.", min=0)
    ] = 60,
    cache: Annotated[
        Path | None, Option("--cache", help="The folder that keeps the vectors of the encoders for the next run.")
    ] = None,
    overwrite: Overwrite = False,
    pipe: Annotated[str, Option("--pipe", help="The name of the pipe, which is made if need be.")] = _DEFAULT_PIPE,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
) -> None:
    """Fit a meta-embedding of several encoders.

    The pipeline has two encoders or more, and is saved with it. Without --method, --size and --option an sbert_meta
    that the pipeline has is fitted as its config says.
    """
    check_new(output, overwrite=overwrite)
    check_pipeline(pipeline)

    from ..errors import Warnings
    from ..files.atomic import atomic_folder
    from ..meta.component import fit_meta, set_method
    from ..meta.fit import ShortSentences, read_sentences
    from ..progress import ticking

    with exit_on_error(f"Cannot fit {pipeline}"):
        options = dict(_parse(text) for text in option or [])
        nlp = load(pipeline, None if pipe == _DEFAULT_PIPE else pipe, code, quiet=quiet, gpu_id=gpu_id)
        if pipe not in nlp.pipe_names or method is not None or size is not None or options:
            set_method(nlp, pipe, method, size, options)
        sentences = ShortSentences(nlp, lambda: read_sentences(corpus, column), max_tokens)
        fit_meta(nlp, pipe, sentences, cache=cache, progress=not quiet)
        with ticking("Writing", shown=not quiet), atomic_folder(output, replace=overwrite) as folder:
            nlp.to_disk(folder)
            _keep(output, folder)
    if sentences.n_left_out:
        msg.warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens))
    msg.good(f"Saved the pipeline to {output}")


def _keep(former: Path, folder: Path) -> None:
    """Copy what a folder that is replaced has beside the pipeline, such as notes."""
    import shutil

    for path in former.iterdir() if former.is_dir() else ():
        if not os.path.lexists(folder / path.name):
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, folder / path.name)


def _parse(text: str) -> tuple[str, Any]:
    import srsly

    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"Bad value {text!r} for --option: expected such as tau=1.0.")
    try:
        return key, srsly.json_loads(value)
    except ValueError:
        return key, value  # a word, such as cosine
