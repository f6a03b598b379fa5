"""`python -m spacy sbert search`: similar texts of a file, an index or vectors."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option, get_text_stream
from wasabi import msg

from ..files.text_lines import has_text, read_lines
from ._corpus import check_corpus_paths, encoder_for, read_with_vectors, write_rows
from ._util import check_corpus, command, exit_on_error, fail, named_output
from .options import TEXTS, ColumnOptions, LoadingOnGpu, Overwrite, Pipeline, without_none

if TYPE_CHECKING:
    from ..search.searchable import FoundText, Searchable

# Characters of a text that is shown
_LONGEST = 100
_SEARCHED = f"{TEXTS[:-1]}; or a folder: a saved index, or vectors by `encode`."
_RESULTS = "A .tsv or .jsonl file for the results."
_METHOD = "vectors, bm25 (by words) or hybrid (both)."
_INDEX = "The folder of an index, built if it is new."


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
    method: Annotated[str, Option(help=_METHOD)] = "vectors",
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

    The search is exact, or goes through a saved index. With --method bm25 it goes by the words of
    the query, with hybrid by words and vectors. Loading takes seconds and a query milliseconds, so
    give many queries at once: as arguments, or as a file with --queries. If the vectors of an index
    were moved, --vectors names their place.
    """
    stored = None
    if vectors is not None:
        stored = Path(vectors)
    check_corpus_paths(corpus, columns, output, queries_path, stored, overwrite=overwrite)
    asked = _all_queries(queries or [], queries_path)
    _check_method(method, index, kind)

    from ..search.searchable import Searchable, SearchableTexts

    if corpus.is_dir():
        _check_folder(corpus, vectors, id_column=columns.id_column, index=index, kind=kind)
        with exit_on_error(f"Cannot work on {corpus}"):
            collection = Searchable.open(corpus, vectors=vectors)
    else:
        texts, given = read_with_vectors(corpus, columns, stored, shown=loading.shown)
        with exit_on_error(f"Cannot work on {corpus}"):
            collection = SearchableTexts(
                corpus, texts, index=index, kind=cast(Any, kind), vectors=given
            )
    folder = collection.index_folder
    is_new = folder is not None and not folder.exists()
    nlp = loading.load(pipeline)
    with encoder_for(corpus, nlp, loading.pipe) as encoder:
        found = collection.search(
            encoder,
            asked,
            k=k,
            method=cast(Any, method),
            query_prompt=query_prompt,
            progress=loading.shown,
        )
    if output is None or loading.shown:
        _show(asked, found, collection)
    if is_new:
        msg.good(f"Saved the index to {folder}")
    elif folder is not None:
        msg.info(f"Searched the index in {folder}")
    if output is not None:
        _write_found(output, asked, found, collection)


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


def _check_method(method: str, index: Path | None, kind: str | None) -> None:
    """End the command if there is no such method or kind, or the method needs no index."""
    from ..search.faiss_index import BuiltKind
    from ..search.searchable import SearchMethod
    from ..validation import check

    with exit_on_error("Cannot search"):
        check("method", method, SearchMethod)
        check("kind", kind, BuiltKind | None)
    if method == "bm25" and index is not None:
        fail("--index is of vectors, and --method bm25 searches by words. Leave one out.")


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


def _show(
    queries: Sequence[str], found: "Sequence[Sequence[FoundText]]", collection: "Searchable"
) -> None:
    """Print a table of what was found for each query."""
    header = [name.capitalize() for name in collection.header()]
    for query, hits in zip(queries, found, strict=True):
        rows = [[_shown(value) for value in collection.record(hit)] for hit in hits]
        msg.table(rows, header=header, title=_shorten(query), divider=True)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return _shorten(str(value))


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 1]}…"


def _write_found(
    output: Path,
    queries: Sequence[str],
    found: "Sequence[Sequence[FoundText]]",
    collection: "Searchable",
) -> None:
    rows = []
    for query, hits in zip(queries, found, strict=True):
        rows += [(query, *collection.record(hit)) for hit in hits]
    write_rows(output, ("query", *collection.header()), rows)
