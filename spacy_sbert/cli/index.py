"""`python -m spacy sbert index ...`: indexes of stored vectors, and those that grow."""

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from ._corpus import encoder_for, read_with_vectors
from ._util import command, exit_on_error, fail, group, named_output
from .options import ColumnOptions, CorpusPath, LoadingOnGpu, Pipeline, Quiet, Vectors

_GROWING = "The folder of the index, built if it is new."
_KIND = "Of a new index: flat (exact), hnsw or ivf; by default hnsw."
_REPLACE = "Replace the texts that have the same ids in the index."
_SKIP = "Leave out new texts that are so similar, or more, to one of the index."
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


@command("add", of=_index)
def _add_cli(
    pipeline: Pipeline,
    index_path: Annotated[Path, Argument(help=_GROWING, parser=named_output)],
    corpus: CorpusPath,
    loading: LoadingOnGpu,
    columns: ColumnOptions,
    replace: Annotated[bool, Option("--replace", help=_REPLACE)] = False,
    skip_duplicates: Annotated[
        float | None, Option("--skip-duplicates", help=_SKIP, min=-1, max=1)
    ] = None,
    kind: Annotated[str | None, Option(help=_KIND)] = None,
    vectors: Vectors = None,
) -> None:
    """Add the texts of a file to an index, with their ids and the other columns of a table.

    Only texts with ids (--id-column) can be replaced and deleted later.
    """
    columns.check(corpus)

    from ..search.corpus_search import add_texts

    texts, stored = read_with_vectors(corpus, columns, vectors, shown=loading.shown, others=True)
    nlp = loading.load(pipeline)
    with encoder_for(corpus, nlp, loading.pipe) as encoder:
        index, left_out = add_texts(
            encoder,
            index_path,
            texts,
            replace=replace,
            skip_duplicates=skip_duplicates,
            kind=cast(Any, kind),
            vectors=stored,
            progress=loading.shown,
        )
    rows = index.rows or ()
    for number, row, score in left_out:
        near = f"{score:.2f} to {rows[row].id!r}, {rows[row].text!r}"
        msg.info(f"Left out row {texts.rows[number]}, {texts.texts[number]!r}: {near}")
    n_added = len(texts.texts) - len(left_out)
    msg.good(f"Added {n_added} texts: wrote an index of {len(index)} to {index_path}")


@command("delete", of=_index)
def _delete_cli(
    index_path: Annotated[Path, Argument(help="The folder of the index.", exists=True)],
    ids: Annotated[list[str], Argument(help="The ids of the texts to delete.")],
    quiet: Quiet = False,
) -> None:
    """Delete texts from an index by their ids."""
    from ..progress import ticking
    from ..search import VectorIndex

    with (
        exit_on_error(f"Cannot delete from {index_path}", RuntimeError),
        ticking("Deleting", shown=not quiet),
    ):
        index = VectorIndex.load(index_path)
        index.delete(ids)
        index.save(index_path)
    msg.good(f"Deleted {len(ids)} texts: wrote an index of {len(index)} to {index_path}")
