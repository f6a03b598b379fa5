"""`python -m spacy sbert index ...`: indexes of stored vectors, and those that grow."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from wasabi import msg

from ._util import command, exit_on_error, fail, group, named_output
from .options import Quiet

_LISTS = "The number of lists of near vectors; by default half the root of that of vectors."
_index = group("index", "Build an index of stored vectors; add texts to one, and delete them.")


@command("build", of=_index)
def _build_cli(
    vectors: Annotated[
        str, Argument(help="The vectors that `encode` made of a folder; also s3://bucket/vectors.")
    ],
    index_path: Annotated[Path, Argument(help="The folder of the index.", parser=named_output)],
    n_lists: Annotated[int | None, Option("--lists", help=_LISTS, min=1)] = None,
    code_bytes: Annotated[
        int | None, Option("--bytes", help="Of each vector; by default up to 64.", min=1)
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
            f"{vectors} is a file: expected a folder of vectors. `search --vectors --index` builds "
            "one of a file."
        )
    with exit_on_error(f"Cannot build an index of {vectors}", RuntimeError):
        stored = PartVectors(vectors)
        index = build_ivfpq(
            stored, index_path, n_lists=n_lists, code_bytes=code_bytes, progress=not quiet
        )
    msg.good(f"Wrote an index of {len(index)} vectors to {index_path}")
