"""`python -m spacy sbert export`, `import`, `distill-static`, `card` and `hub-card`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from ._util import app, check_corpus, check_pipeline, exit_on_error, load
from .options import Code, Gpu, Lang, Overwrite, Pipe, Pipeline, Precision, Quiet

if TYPE_CHECKING:
    from ..hub.cards import PipelineFacts

_Output = Annotated[Path, Argument(help="The folder to write, which must not be there yet.")]
_Folder = Annotated[Path, Argument(help="The folder of the pipeline.", exists=True, file_okay=False)]
_PackageName = Annotated[str | None, Option("--name", "-n", help="The name of the package, instead of meta.json's.")]
_Version = Annotated[str | None, Option("--version", "-v", help="The version of the package, instead of meta.json's.")]
_Vocabulary = Option(
    "--vocabulary",
    "-v",
    help="The file of texts whose frequent words are learned: one a line, or a table.",
    exists=True,
    dir_okay=False,
    callback=check_corpus,
)


@app.command("export")
def _export_cli(
    pipeline: Pipeline, output: _Output, pipe: Pipe = None, code: Code = None, quiet: Quiet = False
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


@app.command("import")
def _import_cli(
    source: Annotated[str, Argument(help="The folder of sentence-transformers, or a name on the Hugging Face hub.")],
    output: _Output,
    lang: Lang = "en",
    pipe: Annotated[str, Option("--pipe", help="The name of the pipe.")] = "sbert",
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
    output: _Output,
    vocabulary: Annotated[Path, _Vocabulary],
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


@app.command("card")
def _card_cli(
    pipeline: _Folder,
    name: _PackageName = None,
    version: _Version = None,
    front_matter: Annotated[
        bool, Option("--front-matter", help="Begin with the metadata of the hub, for a folder that is uploaded.")
    ] = False,
    overwrite: Overwrite = False,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
) -> None:
    """Write the README.md of a pipeline's package.

    `spacy package` puts it into the package. A README.md that was written or changed by hand is kept, unless you give
    --overwrite.
    """
    facts, file = _describe(pipeline, name, version, pipe, code, quiet=quiet), pipeline / "README.md"

    from ..hub.cards import hub_card, package_card, write_readme

    with exit_on_error(f"Cannot write {file}"):
        written = write_readme(pipeline, (hub_card if front_matter else package_card)(facts), force=overwrite)
    if written:
        msg.good(f"Wrote {file}")
    else:
        msg.warn(f"Kept {file}, which was written or changed by hand", "--overwrite replaces it.")


@app.command("hub-card")
def _hub_card_cli(
    repo: Annotated[str, Argument(help="The repository on the hub, such as organisation/en_sbert_sts.")],
    pipeline: _Folder,
    name: _PackageName = None,
    version: _Version = None,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
) -> None:
    """Tag a model on the Hugging Face hub.

    The card of a model that `spacy huggingface-hub push` uploaded gets sentence similarity, base model and scores.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    from ..progress import ticking

    facts = _describe(pipeline, name, version, pipe, code, quiet=quiet)

    from ..hub.cards import hub_metadata, update_hub

    failed = f"Cannot update the card of {repo}"
    with exit_on_error(failed, HfHubHTTPError, HFValidationError), ticking("Updating", shown=not quiet):
        update_hub(repo, hub_metadata(facts))
    msg.good(f"Updated the card of {repo}")


def _describe(
    pipeline: Path, name: str | None, version: str | None, pipe: str | None, code: Path | None, *, quiet: bool
) -> "PipelineFacts":
    nlp = load(str(pipeline), pipe, code, quiet=quiet)
    with exit_on_error(f"Cannot describe {pipeline}"):
        from ..hub.cards import describe, of_pipe

        facts = describe(nlp, folder=pipeline, name=name, version=version)
        return facts if pipe is None else of_pipe(facts, pipe)
