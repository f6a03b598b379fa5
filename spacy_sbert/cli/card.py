"""`python -m spacy sbert card` and `hub-card`: what a pipeline is, for its package and for the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option
from wasabi import msg

from ._util import app, exit_on_error, load
from .options import Code, Overwrite, Pipe, Quiet

if TYPE_CHECKING:
    from ..hub.cards import PipelineFacts

_PIPELINE = Argument(help="The folder of the pipeline.", exists=True, file_okay=False)
_NAME = Option("--name", "-n", help="The name of the package; by default that in meta.json.")
_VERSION = Option("--version", "-v", help="The version of the package; by default that in meta.json.")


@app.command("card")
def _card_cli(
    pipeline: Annotated[Path, _PIPELINE],
    name: Annotated[str | None, _NAME] = None,
    version: Annotated[str | None, _VERSION] = None,
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
    facts = _describe(pipeline, name, version, pipe, code, quiet=quiet)

    from ..hub.cards import hub_card, package_card, write_readme

    with exit_on_error(f"Cannot write {pipeline / 'README.md'}"):
        written = write_readme(pipeline, (hub_card if front_matter else package_card)(facts), force=overwrite)
    if written:
        msg.good(f"Wrote {pipeline / 'README.md'}")
    else:
        msg.warn(f"Kept {pipeline / 'README.md'}, which was written or changed by hand", "--overwrite replaces it.")


@app.command("hub-card")
def _hub_card_cli(
    repo: Annotated[str, Argument(help="The repository on the hub, such as organisation/en_sbert_sts.")],
    pipeline: Annotated[Path, _PIPELINE],
    name: Annotated[str | None, _NAME] = None,
    version: Annotated[str | None, _VERSION] = None,
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

    metadata = hub_metadata(facts)
    failed = f"Cannot update the card of {repo}"
    with exit_on_error(failed, HfHubHTTPError, HFValidationError), ticking("Updating", shown=not quiet):
        update_hub(repo, metadata)
    msg.good(f"Updated the card of {repo}")


def _describe(
    pipeline: Path, name: str | None, version: str | None, pipe: str | None, code: Path | None, *, quiet: bool
) -> "PipelineFacts":
    nlp = load(str(pipeline), pipe, code, quiet=quiet)
    with exit_on_error(f"Cannot describe {pipeline}"):
        from ..hub.cards import describe, of_pipe

        facts = describe(nlp, folder=pipeline, name=name, version=version)
        return facts if pipe is None else of_pipe(facts, pipe)
