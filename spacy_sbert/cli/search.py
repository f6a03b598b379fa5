"""`python -m spacy sbert search`: what is similar to queries, in a file of texts, an index or a folder of vectors."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option, get_text_stream
from wasabi import msg

from ._util import app, check_columns, check_corpus, exit_on_error, fail
from .corpus_options import check_table, run, write
from .options import TEXTS, VECTORS, Code, Column, Gpu, Header, IdColumn, Overwrite, Pipe, Pipeline, Quiet

_LONGEST = 100  # characters of a text that is shown


@app.command("search")
def _search_cli(
    pipeline: Pipeline,
    corpus: Annotated[
        Path,
        Argument(
            help=f"{TEXTS[:-1]}; or a folder: a saved index, or vectors by `encode`.",
            exists=True,
            callback=check_corpus,
        ),
    ],
    queries: Annotated[list[str] | None, Argument(help="The texts to search for.")] = None,
    queries_path: Annotated[
        Path | None,
        Option(
            "--queries",
            help="A file of texts to search for, one a line, or - for what is typed or piped in. Blank lines are none.",
        ),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="The .tsv or .jsonl file to write the results to.")
    ] = None,
    k: Annotated[int, Option("--k", "-k", help="The number of texts to find for each query.", min=1)] = 10,
    index: Annotated[
        Path | None, Option("--index", "-i", help="The folder of an index, which is built there if there is none.")
    ] = None,
    kind: Annotated[
        str | None, Option(help="The kind of the index: flat, which is exact, hnsw or ivf; by default hnsw.")
    ] = None,
    vectors: Annotated[str | None, Option(help=VECTORS)] = None,
    query_prompt: Annotated[
        str | None, Option(help="The name of the encoder's prompt to put before each query.")
    ] = None,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    column: Column = None,
    id_column: IdColumn = None,
    header: Header = True,
    overwrite: Overwrite = False,
) -> None:
    """Find the texts that are most similar to a query.

    The search is exact, or goes through a saved index. Loading takes seconds and a query milliseconds, so give many
    queries at once: as arguments, or as a file with --queries. If the vectors of an index were moved, --vectors names
    their place.
    """
    check_table(output, overwrite=overwrite)
    check_columns(corpus, column, header=header)
    asked = [*(queries or []), *_read_queries(queries_path)]
    if not asked:
        fail("There is no query. Give queries after the texts, or a file of queries with --queries.")
    is_stored = _check_options(corpus, index, kind, vectors, id_column)

    from ..search.corpus_search import search_folder, search_texts

    settings: dict[str, Any] = {"queries": asked, "k": k, "query_prompt": query_prompt}
    work: Any = partial(search_texts, index=index, kind=cast(Any, kind), **settings)
    if is_stored:
        work = partial(search_folder, vectors=vectors, **settings)
    is_new = index is not None and not index.exists()
    results, _, _ = run(
        work,
        pipeline,
        corpus,
        pipe=pipe,
        code=code,
        quiet=quiet,
        gpu_id=gpu_id,
        column=column,
        id_column=id_column,
        header=header,
        vectors=Path(vectors) if vectors is not None and not is_stored else None,
    )
    has_ids = is_stored or any(hit.id is not None for hits in results for hit in hits)
    columns = ("score", *(("file",) if is_stored else ()), "row", *(("id",) if has_ids else ()), "text")
    rows = [[[getattr(hit, name) for name in columns] for hit in hits] for hits in results]
    if output is None or not quiet:
        _show(asked, rows, columns)
    if is_new:
        msg.good(f"Saved the index to {index}")
    elif index is not None or (corpus.is_dir() and not is_stored):
        msg.info(f"Searched the index in {index or corpus}")
    if output is not None:
        write(output, ("query", *columns), [(q, *row) for q, found in zip(asked, rows, strict=True) for row in found])


def _read_queries(path: Path | None) -> list[str]:
    """Return the lines of a file, or of standard input, that have text."""
    if path is None:
        return []
    from ..files.text_lines import has_text, read_lines

    with exit_on_error(f"Cannot read the --queries in {path}"):
        if path == Path("-"):
            lines = get_text_stream("stdin", encoding="utf8").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _check_options(
    corpus: Path, index: Path | None, kind: str | None, vectors: str | None, id_column: str | None
) -> bool:
    """End the command if options do not fit the corpus, and return whether it is a folder of stored vectors."""
    from ..bulk.dataset_encoding import JOB
    from ..search.index import BuiltKind, Manifest, import_faiss
    from ..validation import check

    is_vectors = (corpus / JOB).is_file()
    what, is_stored = "one of vectors", is_vectors
    with exit_on_error(f"Cannot work on {corpus}"):
        check("kind", kind, BuiltKind | None)
        if index is not None:
            import_faiss()
        if corpus.is_dir() and not is_vectors:
            manifest = Manifest.read(corpus)
            what, is_stored = f"an index of the kind {manifest.kind}", manifest.vectors is not None
    if not corpus.is_dir():
        return False
    if vectors is not None and (is_vectors or not is_stored):
        fail(
            f"{corpus} has vectors of its own, so --vectors {vectors} cannot be searched, too. Leave them out, or "
            "give the texts that they are of."
        )
    if id_column is not None:
        fail(f"{corpus} is a folder: --id-column is for a file of texts. Leave it out: ids that were saved are shown.")
    if index is not None or kind is not None:
        fail(
            f"{'--kind' if index is None else '--index'} is of a file of texts, and the folder {corpus} is {what}. "
            "Leave it out, or give the texts: search PIPELINE TEXTS QUERY --kind flat --index FOLDER."
        )
    return is_stored


def _show(queries: Sequence[str], results: Sequence[Sequence[Sequence[Any]]], columns: Sequence[str]) -> None:
    for query, found in zip(queries, results, strict=True):
        rows = [
            (f"{score:.4f}", *("" if value is None else _shorten(str(value)) for value in row)) for score, *row in found
        ]
        msg.table(rows, header=[name.capitalize() for name in columns], title=_shorten(query), divider=True)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
