"""`python -m spacy sbert fit-meta`: combine the sentence encoders of a pipeline."""

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import srsly
from spacy.language import Language
from typer import Argument, Option
from wasabi import msg

from ..errors import Warnings
from ..files.atomic import atomic_folder
from ..progress import ticking
from ._util import check_new, command, exit_on_error, named_output
from .options import CorpusPath, LoadingOnGpu, Overwrite, Pipeline, not_empty

_CACHE = "A folder that keeps the encoders' vectors for the next run."
_METHOD = "The method: conc, avg, svd, gcca or ae."


@command("fit-meta")
def _fit_meta_cli(
    pipeline: Pipeline,
    corpus: CorpusPath,
    output: Annotated[
        Path, Argument(help="The folder to write the pipeline to.", parser=named_output)
    ],
    loading: LoadingOnGpu,
    method: Annotated[
        str | None, Option("--method", "-m", help=_METHOD, callback=not_empty)
    ] = None,
    size: Annotated[
        int | None, Option("--size", "-s", help="The width of the new vectors.", min=1)
    ] = None,
    option: Annotated[
        list[str] | None, Option("--option", "-o", help="Such as tau=1.0; may be repeated.")
    ] = None,
    column: Annotated[
        int | None, Option("--column", "-c", help="The sentences' column, from 1.", min=1)
    ] = None,
    max_tokens: Annotated[
        int, Option(help="Take sentences of fewer tokens, or with 0 all.", min=0)
    ] = 60,
    cache: Annotated[Path | None, Option(help=_CACHE, parser=named_output)] = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit a meta-embedding of several encoders.

    The pipeline has two encoders or more, and is saved with it: with a new pipe sbert_meta, or of
    the name --pipe. Without --method, --size and --option one that the pipeline has is fitted as
    its config says.
    """
    check_new(output, corpus, cache, overwrite=overwrite)

    from ..meta.component import fit_meta
    from ..meta.fit import ShortSentences, read_sentences

    pipe = loading.pipe or "sbert_meta"
    with exit_on_error(f"Cannot fit {pipeline}"):
        options = dict(_parse(text) for text in option or [])
        nlp = loading.load(pipeline)
        is_new = pipe not in nlp.pipe_names
        if is_new or method is not None or size is not None or options:
            _set_method(nlp, pipe, method, size, options)
        sentences = ShortSentences(nlp, lambda: read_sentences(corpus, column), max_tokens)
        fit_meta(nlp, pipe, sentences, cache=cache, progress=loading.shown)
        with (
            ticking("Writing", shown=loading.shown),
            atomic_folder(output, replace=overwrite) as folder,
        ):
            nlp.to_disk(folder)
            _keep(output, folder)
    if sentences.n_left_out:
        msg.warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens))
    msg.good(f"Saved the pipeline to {output}")


def _keep(former: Path, folder: Path) -> None:
    """Copy what a folder that is replaced has beside the pipeline, such as notes."""
    if not former.is_dir():
        return
    for path in former.iterdir():
        copy = folder / path.name
        if os.path.lexists(copy):
            continue
        if path.is_dir():
            shutil.copytree(path, copy)
        else:
            shutil.copy2(path, copy)


def _parse(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option; a value that is no JSON is a word."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"Bad value {text!r} for --option: expected such as tau=1.0.")
    try:
        return key, srsly.json_loads(value)
    except ValueError:
        return key, value


def _set_method(
    nlp: Language, name: str, method: str | None, size: int | None, options: dict[str, Any]
) -> None:
    """Add an `sbert_meta` pipe, or change its method; options stay if the method does."""
    if name not in nlp.component_names:
        new = {"method": method or "conc", "size": size, "options": options}
        nlp.add_pipe("sbert_meta", name=name, config=new)
        return
    if nlp.get_pipe_meta(name).factory != "sbert_meta":
        raise ValueError(f"The pipe '{name}' is not an 'sbert_meta': name the pipe to fit.")
    config = dict(nlp.config["components"][name])
    del config["factory"]
    if method is not None and method != config["method"]:
        config.update(method=method, size=size, options=options)
    else:
        config["options"] = {**config["options"], **options}
        if size is not None:
            config["size"] = size
    nlp.replace_pipe(name, "sbert_meta", config=config)
