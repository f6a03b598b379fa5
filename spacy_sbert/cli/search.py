"""`python -m spacy sbert search`: what is similar to queries, in a file of texts, an index or a folder of vectors."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, get_text_stream
from wasabi import msg

from ._util import app, check_columns, check_corpus, exit_on_error, fail
from .corpus_options import check_table, run, write
from .options import (
    TEXTS,
    VECTORS,
    Code,
    Column,
    Gpu,
    Header,
    IdColumn,
    Overwrite,
    Pipe,
    Pipeline,
    Quiet,
)

if TYPE_CHECKING:
    from ..pipeline.sbert import SentenceBert

_LONGEST = 100  # characters of a text that is shown
_STDIN = Path("-")
_Stored = Literal["vectors", "index"] | None
_K = Annotated[int, Option("--k", "-k", help="The number of texts to find for each query.", min=1)]
_Index = Annotated[
    Path | None, Option("--index", "-i", help="The folder of an index, which is built there if there is none.")
]
_Kind = Annotated[
    str | None, Option("--kind", help="The kind of the index: flat, which is exact, hnsw or ivf; by default hnsw.")
]
_Vectors = Annotated[str | None, Option("--vectors", help=VECTORS)]
_QueryPrompt = Annotated[
    str | None, Option("--query-prompt", help="The name of the encoder's prompt to put before each query.")
]


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
    k: _K = 10,
    index: _Index = None,
    kind: _Kind = None,
    vectors: _Vectors = None,
    query_prompt: _QueryPrompt = None,
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
    queries = [*(queries or []), *(_read_queries(queries_path) if queries_path is not None else [])]
    if not queries:
        fail("There is no query. Give queries after the texts, or a file of queries with --queries.")

    from ..search.corpus_search import check_kind, search_texts
    from ..search.index_folder import import_faiss

    with exit_on_error(f"Cannot work on {corpus}"):
        check_kind(kind)
        if index is not None:
            import_faiss()
    stored = _stored_in(corpus)
    if corpus.is_dir():
        _check_folder(corpus, stored, index, kind, vectors, id_column)
    if stored is None:
        settings: dict[str, Any] = {"k": k, "index": index, "kind": kind, "query_prompt": query_prompt}
        work: Any = partial(search_texts, queries=queries, **settings)
    else:
        work = partial(_search_folder, queries, k, vectors, query_prompt, stored == "index")
    is_new = stored is None and index is not None and not index.exists()
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
        vectors=Path(vectors) if vectors is not None and stored is None else None,
    )
    columns: tuple[str, ...] = ("score", "file", "row", "id", "text")
    if stored is None:
        columns, results = _as_rows(results)
    if output is None or not quiet:
        _show(queries, results, columns)
    if is_new:
        msg.good(f"Saved the index to {index}")
    elif index is not None or (stored is None and corpus.is_dir()):
        msg.info(f"Searched the index in {index or corpus}")
    if output is not None:
        write(
            output, ("query", *columns), [(q, *row) for q, best in zip(queries, results, strict=True) for row in best]
        )


def _as_rows(results: list[list[Any]]) -> tuple[tuple[str, ...], list[list[tuple[Any, ...]]]]:
    """Return the columns of what was found in texts, with ids if there are some, and its rows."""
    has_ids = any(hit.id is not None for best in results for hit in best)
    columns = ("score", "row", "id", "text") if has_ids else ("score", "row", "text")
    return columns, [[tuple(getattr(hit, name) for name in columns) for hit in best] for best in results]


def _check_folder(
    folder: Path, stored: _Stored, index: Path | None, kind: str | None, vectors: str | None, id_column: str | None
) -> None:
    """End the command if an option is given that the folder of an index, or of vectors, has decided."""
    from ..search.index_folder import read_manifest

    if vectors is not None and stored != "index":
        fail(
            f"{folder} has vectors of its own, so --vectors {vectors} cannot be searched, too. Leave "
            "them out, or give the texts that they are of, or an index that the command `index` built."
        )
    if id_column is not None:
        fail(f"{folder} is a folder: --id-column is for a file of texts. Leave it out: ids that were saved are shown.")
    if index is None and kind is None:
        return
    option, what = "--kind" if index is None else "--index", "one of vectors"
    if stored != "vectors":
        with exit_on_error(f"Cannot search in {folder}"):
            what = f"an index of the kind {read_manifest(folder).kind}"
    fail(
        f"{option} is of a file of texts, and the folder {folder} is {what}, which is searched as it is: leave "
        "it out. For another index give the texts that it is of: search PIPELINE TEXTS QUERY --kind flat "
        "--index FOLDER."
    )


def _show(queries: Sequence[str], results: Iterable[Iterable[tuple[Any, ...]]], columns: Sequence[str]) -> None:
    for query, best in zip(queries, results, strict=True):
        rows = [
            (f"{score:.4f}", *("" if value is None else _shortened(str(value)) for value in row))
            for score, *row in best
        ]
        msg.table(rows, header=[name.capitalize() for name in columns], title=_shortened(query), divider=True)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _read_queries(path: Path) -> list[str]:
    """Return the lines of a file, or of what is typed or piped in, that have text."""
    from ..files.text_lines import has_text, read_lines

    with exit_on_error(f"Cannot read the --queries in {path}"):
        if path == _STDIN:
            lines = get_text_stream("stdin", encoding="utf8").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _stored_in(corpus: Path) -> _Stored:
    """Return what a folder has in place of texts: the vectors of files, or an index of such."""
    from ..bulk.dataset_encoding import JOB
    from ..search.corpus_search import is_of_stored

    if (corpus / JOB).is_file():
        return "vectors"
    with exit_on_error(f"Cannot search in {corpus}"):
        return "index" if corpus.is_dir() and is_of_stored(corpus) else None


def _search_folder(
    queries: list[str],
    k: int,
    vectors: str | None,
    query_prompt: str | None,
    is_index: bool,
    pipe: "SentenceBert",
    folder: Path,
    *,
    progress: bool,
    **_: object,  # such as the column of texts, which a folder has not
) -> Any:  # noqa: ANN401 (rows of hits of any kind)
    """Search in a folder that has vectors in place of texts."""
    from ..bulk import PartVectors
    from ..search.corpus_search import search_folder

    return search_folder(
        pipe,
        folder,
        queries,
        k=k,
        is_index=is_index,
        open_vectors=PartVectors,
        vectors=vectors,
        query_prompt=query_prompt,
        progress=progress,
    )
