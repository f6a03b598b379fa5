"""`python -m spacy sbert search` and `index`: similar texts of a file, an index or vectors."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option, get_text_stream
from wasabi import msg

from ..files.text_lines import has_text, read_lines
from ._corpus import check_corpus_paths, encoder_for, read_with_vectors, write_rows
from ._util import check_corpus, command, exit_on_error, fail, named_output
from .options import TEXTS, ColumnOptions, LoadingOnGpu, Overwrite, Pipeline, Quiet, without_none

if TYPE_CHECKING:
    from ..search.searchable import FoundText, Searchable

# Characters of a text that is shown
_LONGEST = 100
_SEARCHED = f"{TEXTS[:-1]}; or a folder: a saved index, or vectors by `encode`."
_RESULTS = "A .tsv or .jsonl file for the results."
_INDEX = "The folder of an index, built if it is new."
_LISTS = "The number of lists of near vectors; by default half the root of that of vectors."


@command("search")
def _search_cli(
    pipeline: Pipeline,
    corpus: Annotated[Path, Argument(help=_SEARCHED, exists=True, callback=check_corpus)],
    loading: LoadingOnGpu,
    columns: ColumnOptions,
    queries: Annotated[list[str] | None, Argument(help="The texts to search for.")] = None,
    queries_path: Annotated[
        Path | None, Option("--queries", help="A file with a query a line; - for the input.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help=_RESULTS, parser=named_output)
    ] = None,
    k: Annotated[
        int, Option("--k", "-k", help="The number of texts to find for each query.", min=1)
    ] = 10,
    index: Annotated[Path | None, Option("--index", "-i", help=_INDEX, parser=named_output)] = None,
    kind: Annotated[
        str | None, Option(help="Of the index: flat (exact), hnsw or ivf; by default hnsw.")
    ] = None,
    vectors: Annotated[
        str | None, Option(help="Their place, or those of an index that were moved.")
    ] = None,
    query_prompt: Annotated[
        str | None, Option(help="The name of the encoder's prompt for queries.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the texts that are most similar to a query.

    The search is exact, or goes through a saved index. Loading takes seconds and a query
    milliseconds, so give many queries at once: as arguments, or as a file with --queries. If the
    vectors of an index were moved, --vectors names their place.
    """
    stored = None
    if vectors is not None:
        stored = Path(vectors)
    check_corpus_paths(corpus, columns, output, queries_path, stored, overwrite=overwrite)
    asked = _all_queries(queries or [], queries_path)
    if corpus.is_dir():
        _check_folder(corpus, vectors, id_column=columns.id_column, index=index, kind=kind)
        collection = _open_folder(corpus, vectors)
    else:
        collection = _open_file(
            corpus, columns, index=index, kind=kind, vectors=stored, shown=loading.shown
        )
    folder = collection.index_folder
    is_new = folder is not None and not folder.exists()
    nlp = loading.load(pipeline)
    with encoder_for(corpus, nlp, loading.pipe) as encoder:
        found = collection.search(
            encoder, asked, k=k, query_prompt=query_prompt, progress=loading.shown
        )
    if output is None or loading.shown:
        _show(asked, found, collection.columns)
    if is_new:
        msg.good(f"Saved the index to {folder}")
    elif folder is not None:
        msg.info(f"Searched the index in {folder}")
    if output is not None:
        _write_found(output, asked, found, collection.columns)


def _all_queries(given: Sequence[str], path: Path | None) -> list[str]:
    """Return the given queries and those of a file. End the command if there are none."""
    queries = list(given)
    if path is not None:
        queries += _read_queries(path)
    if not queries:
        fail(
            "There is no query. Give queries after the texts, or a file of queries with --queries."
        )
    return queries


def _read_queries(path: Path) -> list[str]:
    """Return the lines of a file, or of standard input, that have text."""
    with exit_on_error(f"Cannot read the --queries in {path}"):
        if path == Path("-"):
            if sys.stdin is None:
                fail("Cannot read --queries from standard input: it is closed. Give a file.")
            lines = get_text_stream("stdin", encoding="utf-8-sig").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _check_folder(folder: Path, vectors: str | None, **of_files: object) -> None:
    """End the command if a folder is no index and holds no vectors, or options are of files.

    of_files: options for files of texts, None for those that are not given.
    """
    from ..bulk.dataset_encoding import JOB
    from ..search.index_folder import IndexManifest

    content = "vectors"
    # The stored vectors of an index may have been moved
    takes_vectors = False
    if not (folder / JOB).is_file():
        with exit_on_error(f"Cannot work on {folder}"):
            manifest = IndexManifest.read(folder)
        content = f"an index of the kind {manifest.kind}"
        takes_vectors = manifest.vectors is not None
    given = without_none(**of_files)
    if not takes_vectors:
        given = without_none(vectors=vectors, **of_files)
    if given:
        option = f"--{next(iter(given)).replace('_', '-')}"
        fail(
            f"{option} is of a file of texts, and {folder} is a folder with {content}. Leave it "
            "out, or give the texts."
        )


def _open_folder(folder: Path, vectors: str | None) -> "Searchable":
    """Open a saved index or stored vectors."""
    from ..bulk.dataset_encoding import JOB
    from ..search.faiss_index import import_faiss
    from ..search.searchable import Searchable

    with exit_on_error(f"Cannot work on {folder}"):
        if not (folder / JOB).is_file():
            import_faiss()
        return Searchable.open(folder, vectors=vectors)


def _open_file(
    path: Path,
    columns: ColumnOptions,
    *,
    index: Path | None,
    kind: str | None,
    vectors: Path | None,
    shown: bool,
) -> "Searchable":
    """Read a file of texts, and their vectors if they are given."""
    from ..search.faiss_index import BuiltKind, import_faiss
    from ..search.searchable import SearchableTexts
    from ..validation import check

    with exit_on_error(f"Cannot work on {path}"):
        check("kind", kind, BuiltKind | None)
        if index is not None:
            import_faiss()
    texts, stored = read_with_vectors(path, columns, vectors, shown=shown)
    return SearchableTexts(path, texts, index=index, kind=cast(Any, kind), vectors=stored)


def _show(
    queries: Sequence[str], found: "Sequence[Sequence[FoundText]]", columns: Sequence[str]
) -> None:
    """Print a table of what was found for each query."""
    header = [name.capitalize() for name in columns]
    for query, hits in zip(queries, found, strict=True):
        rows = [[_shown(hit, name) for name in columns] for hit in hits]
        msg.table(rows, header=header, title=_shorten(query), divider=True)


def _shown(hit: "FoundText", name: str) -> str:
    if name == "score":
        return f"{hit.score:.4f}"
    value = getattr(hit, name)
    if value is None:
        return ""
    return _shorten(str(value))


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 1]}…"


def _write_found(
    output: Path,
    queries: Sequence[str],
    found: "Sequence[Sequence[FoundText]]",
    columns: Sequence[str],
) -> None:
    rows = []
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            values = [getattr(hit, name) for name in columns]
            rows.append((query, *values))
    write_rows(output, ("query", *columns), rows)


@command("index")
def _index_cli(
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
