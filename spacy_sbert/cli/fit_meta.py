"""`python -m spacy sbert fit-meta`: combine the sentence encoders of a pipeline, on plain sentences."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from .ending import fail, use_gpu
from .group import app
from .options import Gpu


@app.command("fit-meta")
def fit_meta_cli(
    pipeline: Annotated[str, Argument(help="A folder or an installed package with two encoders or more")],
    corpus: Annotated[Path, Argument(help="Sentences, one a line, or .jsonl with text", exists=True, dir_okay=False)],
    output: Annotated[Path, Argument(help="Folder for the pipeline with the meta-embedding")],
    name: Annotated[str, Option("--name", "-n", help="The sbert_meta pipe; made if there is none")] = "sbert_meta",
    method: Annotated[str | None, Option("--method", "-m", help="conc, avg, svd, gcca or ae")] = None,
    size: Annotated[int | None, Option("--size", "-s", help="Width of the meta-embeddings")] = None,
    option: Annotated[list[str] | None, Option("--option", "-o", help="Of the method, such as tau=1.0")] = None,
    column: Annotated[int | None, Option("--column", help="Column of the sentences in a table, from 1")] = None,
    max_tokens: Annotated[int, Option("--max-tokens", help="Take sentences of fewer tokens; 0 for all")] = 60,
    cache: Annotated[Path | None, Option("--cache", help="Folder that keeps the members' vectors")] = None,
    code: Annotated[
        Path | None, Option("--code", help="A Python file that registers functions of the pipeline", exists=True)
    ] = None,
    gpu_id: Gpu = -1,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bar")] = False,
) -> None:
    """Fit the meta-embedding of a pipeline and save the pipeline.

    Without --method, --size and --option an sbert_meta that the pipeline has is fitted as its config says.
    """
    import spacy
    from spacy.cli._util import import_code

    from ..meta.corpus import ShortSentences, read_sentences
    from ..meta.fitting import fit_meta, set_method
    from .errors import Warnings

    use_gpu(gpu_id)
    import_code(code)
    try:
        options = dict(_parse(text) for text in option or [])
        nlp = spacy.load(pipeline)
        if name not in nlp.pipe_names or method is not None or size is not None or options:
            set_method(nlp, name, method, size, options)
        sentences = ShortSentences(nlp, lambda: read_sentences(corpus, column), max_tokens)
        fit_meta(nlp, name, sentences, cache=cache, progress=not quiet)
        with _to_write(output) as folder:
            nlp.to_disk(folder)
    except (OSError, ValueError) as error:
        fail(str(error))
    if sentences.n_left_out:
        msg.warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens))
    msg.good(f"Saved the pipeline to {output}")


def _to_write(output: Path) -> AbstractContextManager[Path]:
    """A new folder is there whole or not at all; in one that is there, files that are not ours stay."""
    from ..files.whole import new_folder

    is_new = not output.exists() or (output.is_dir() and not any(output.iterdir()))
    return new_folder(output) if is_new else nullcontext(output)


def _parse(text: str) -> tuple[str, Any]:
    import srsly

    from .errors import Errors

    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(Errors.META_BAD_OPTION.format(name="--option", given=text, expected="such as tau=1.0"))
    try:
        return key, srsly.json_loads(value)
    except ValueError:
        return key, value  # a word, such as cosine
