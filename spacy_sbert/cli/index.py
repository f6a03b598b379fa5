"""`python -m spacy sbert index`: from a folder of vectors to an index that is searched on disk."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from ._util import app, exit_on_error, fail
from .options import Quiet


@app.command("index")
def _index_cli(
    vectors: Annotated[
        str,
        Argument(help="The folder of vectors that `encode` made of a folder; also in a store: s3://bucket/vectors."),
    ],
    index_path: Annotated[Path, Argument(help="The folder of the index.", file_okay=False)],
    n_lists: Annotated[
        int | None,
        Option(
            "--lists", help="The number of lists of near vectors; by default half the root of that of vectors.", min=1
        ),
    ] = None,
    code_bytes: Annotated[
        int | None, Option("--bytes", help="The bytes of each vector in the index; by default up to 64.", min=1)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Build an index of more vectors than memory holds.

    After an interruption the same command goes on.
    """
    from ..bulk import PartVectors
    from ..search import build_ivfpq

    if Path(vectors).is_file():
        fail(
            f"{vectors} is a file: expected a folder of vectors. The index of one file is built by its first search: "
            f"search PIPELINE TEXTS QUERY --vectors {vectors} --index FOLDER."
        )
    with exit_on_error(f"Cannot build an index of {vectors}", RuntimeError):
        stored = PartVectors(vectors)
        index = build_ivfpq(stored, index_path, n_lists=n_lists, code_bytes=code_bytes, progress=not quiet)
    msg.good(f"Wrote an index of {len(index)} vectors to {index_path}")
