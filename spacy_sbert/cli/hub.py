"""`python -m spacy sbert ...`: pipelines to and from other formats, and model cards.

`export`, `import`, `convert-transformer`, `distill-static`, `card` and `hub-card`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from spacy.cli._util import import_code
from typer import Argument, Option
from wasabi import msg

from ..files.atomic import atomic_folder
from ..files.tables import read_texts
from ..progress import ticking
from ..validation import check
from ._util import check_corpus, command, exit_on_error, named_output
from .options import (
    Code,
    Lang,
    Loading,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    PrecisionOption,
    Quiet,
    TextColumn,
)

if TYPE_CHECKING:
    from ..hub.facts import PipelineFacts

_Output = Annotated[
    Path, Argument(help="The folder to write, which must not be there yet.", parser=named_output)
]
_Folder = Annotated[
    Path, Argument(help="The folder of the pipeline.", exists=True, file_okay=False)
]
_WORDS = "The file of texts whose frequent words are learned: one a line, or a table."
_Vocabulary = Annotated[
    Path,
    Option("--vocabulary", "-v", help=_WORDS, exists=True, dir_okay=False, callback=check_corpus),
]


@dataclass
class _Packaged(Loading):
    """The pipeline that a card describes, and its package."""

    name: Annotated[
        str | None, Option("--name", "-n", help="The name of the package, instead of meta.json's.")
    ] = None
    version: Annotated[
        str | None, Option("--version", "-v", help="Its version, instead of meta.json's.")
    ] = None

    def describe(self, pipeline: Path) -> "PipelineFacts":
        with exit_on_error(f"Cannot describe {pipeline}"):
            check("name", self.name, str | None)
            check("version", self.version, str | None)
        nlp = self.load(str(pipeline))
        with exit_on_error(f"Cannot describe {pipeline}"):
            from ..hub.facts import describe

            return describe(
                nlp, folder=pipeline, name=self.name, version=self.version, pipe=self.pipe
            )


@command("export")
def _export_cli(pipeline: Pipeline, output: _Output, loading: Loading) -> None:
    """Write a folder for sentence-transformers.

    SentenceTransformer("OUTPUT") loads the encoder of the pipeline from it, with the same vectors.
    """
    from ..hub import export_folder

    nlp = loading.load(pipeline)
    with exit_on_error(f"Cannot export {pipeline}"), ticking("Writing", shown=loading.shown):
        export_folder(nlp, output, name=loading.pipe)
    msg.good(f"Saved the folder to {output}: SentenceTransformer({str(output)!r}) loads it")


@command("import")
def _import_cli(
    source: Annotated[
        str,
        Argument(help="A folder of sentence-transformers or peft, or a name on the hub."),
    ],
    output: _Output,
    lang: Lang = "en",
    pipe: Annotated[str, Option("--pipe", help="The name of the pipe.")] = "sbert",
    precision: PrecisionOption = None,
    encoder_only: Annotated[
        bool, Option("--encoder-only", help="Leave out the classifier of a SetFit folder.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Make a pipeline of a sentence-transformers or SetFit model.

    It has the same vectors and classes. Code that comes with the model is not run.
    """
    from ..hub import REFERENCE, import_folder

    with exit_on_error(f"Cannot import {source}"):
        with ticking("Loading", shown=not quiet):
            nlp = import_folder(
                source,
                lang=lang,
                name=pipe,
                precision=cast(Any, precision),
                encoder_only=encoder_only,
            )
        with ticking("Writing", shown=not quiet), atomic_folder(output) as folder:
            nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")
    if nlp.config["components"][pipe]["model"].get("precision") == REFERENCE:
        msg.info(
            "It encodes as sentence-transformers does. With --precision float32 it is about twice "
            "as fast."
        )


@command("convert-transformer")
def _convert_transformer_cli(
    pipeline: Annotated[
        str,
        Argument(help="The pipeline with spacy-transformers' transformer: a folder or a package."),
    ],
    output: _Output,
    code: Code = None,
    quiet: Quiet = False,
) -> None:
    """Convert a pipeline from spacy-transformers.

    Its transformer becomes an sbert_transformer, with the same weights and predictions. Only the
    conversion needs spacy-transformers.
    """
    import_code(code)
    with exit_on_error(f"Cannot convert {pipeline}"), ticking("Converting", shown=not quiet):
        from ..hub.convert_transformer import convert_transformer

        convert_transformer(pipeline, output)
    msg.good(
        f"Saved the pipeline to {output}",
        "It annotates as before, and loads without spacy-transformers.",
    )


@command("distill-static")
def _distill_static_cli(
    teacher: Pipeline,
    output: _Output,
    vocabulary: _Vocabulary,
    loading: LoadingOnGpu,
    size: Annotated[int, Option("--size", "-s", help="The width of the new vectors.", min=1)] = 256,
    words: Annotated[
        int, Option("--words", "-w", help="The most words with a vector of their own.", min=0)
    ] = 20000,
    column: TextColumn = None,
) -> None:
    """Make a static encoder from a teacher.

    It has a vector for each wordpiece and frequent word, and no transformer.
    """
    from ..hub import distill_static

    with exit_on_error(f"Cannot distill {teacher}"), atomic_folder(output) as folder:
        with ticking("Reading", shown=loading.shown):
            texts, _ = read_texts(vocabulary, column=column)
        loaded = loading.load(teacher)
        nlp = distill_static(
            loaded, texts, size=size, words=words, name=loading.pipe, progress=loading.shown
        )
        nlp.to_disk(folder)
    msg.good(f"Saved the pipeline to {output}")


@command("card")
def _card_cli(
    pipeline: _Folder,
    packaged: _Packaged,
    front_matter: Annotated[
        bool, Option("--front-matter", help="Begin with the metadata of the hub.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the README.md of a pipeline's package.

    `spacy package` puts it into the package. A README.md that was written or changed by hand is
    kept, unless you give --overwrite.
    """
    facts = packaged.describe(pipeline)
    file = pipeline / "README.md"

    from ..hub.cards import package_card, write_readme

    with exit_on_error(f"Cannot write {file}"):
        written = write_readme(
            pipeline, package_card(facts, front_matter=front_matter), force=overwrite
        )
    if written:
        msg.good(f"Wrote {file}")
    else:
        msg.warn(f"Kept {file}, which was written or changed by hand", "--overwrite replaces it.")


@command("hub-card")
def _hub_card_cli(
    repo: Annotated[
        str, Argument(help="The repository on the hub, such as organisation/en_sbert_sts.")
    ],
    pipeline: _Folder,
    packaged: _Packaged,
) -> None:
    """Tag a model on the Hugging Face hub.

    The card of a model that `spacy huggingface-hub push` uploaded gets sentence similarity, base
    model and scores.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    facts = packaged.describe(pipeline)

    from ..hub.cards import update_hub

    failed = f"Cannot update the card of {repo}"
    with (
        exit_on_error(failed, HfHubHTTPError, HFValidationError),
        ticking("Updating", shown=packaged.shown),
    ):
        update_hub(repo, facts)
    msg.good(f"Updated the card of {repo}")
