"""`python -m spacy sbert search`: what is similar to queries, in a file of texts, an index or a folder of vectors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option, get_text_stream
from wasabi import msg

from ._util import app, check_columns, check_corpus, exit_on_error, fail
from .corpus_options import How, check_table, run, write
from .options import TEXTS, VECTORS, Pipeline, takes_options

SHOWN = 100  # characters of a text
WITH_ID, WITHOUT = ("score", "row", "id", "text"), ("score", "row", "text")
STDIN = Path("-")
Stored = Literal["vectors", "index"] | None


@dataclass(frozen=True)
class Found:
    """What is found, and where it is looked for."""

    k: Annotated[int, Option("--k", "-k", help="The number of texts to find for each query.", min=1)] = 10
    index: Annotated[
        Path | None, Option("--index", "-i", help="The folder of an index, which is built there if there is none.")
    ] = None
    kind: Annotated[
        str | None, Option("--kind", help="The kind of the index: flat, which is exact, hnsw or ivf; by default hnsw.")
    ] = None
    vectors: Annotated[str | None, Option("--vectors", help=VECTORS)] = None
    query_prompt: Annotated[
        str | None, Option("--query-prompt", help="The name of the encoder's prompt to put before each query.")
    ] = None


@app.command("search")
@takes_options
def search_cli(
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
    *,
    found: Found,
    how: How,
) -> None:
    """Find the texts that are most similar to a query.

    The search is exact, or goes through a saved index. Loading takes seconds and a query milliseconds, so give many
    queries at once: as arguments, or as a file with --queries. If the vectors of an index were moved, --vectors names
    their place.
    """
    work: Callable[..., Any]
    check_table(output, overwrite=how.overwrite)
    check_columns(corpus, how.column, header=how.header)
    queries = [*(queries or []), *(_read_queries(queries_path) if queries_path is not None else [])]
    if not queries:
        fail("There is nothing to search for: give queries behind the texts, or --queries with a file that has some.")

    from ..search.corpus_search import check_kind, search_texts
    from ..search.index_folder import import_faiss

    with exit_on_error(f"Cannot work on {corpus}"):
        check_kind(found.kind)
        if found.index is not None:
            import_faiss()
    stored = _stored_in(corpus)
    if corpus.is_dir():
        _check_folder(corpus, found, stored, how)
    asked = asdict(found)
    vectors = asked.pop("vectors")
    if stored is None:
        work = partial(search_texts, queries=queries, **asked)
    else:
        work = _in_folder(queries, found, is_index=stored == "index")
        columns: tuple[str, ...] = ("score", "file", "row", "id", "text")
    own = Path(vectors) if vectors is not None and stored is None else None
    is_new = stored is None and found.index is not None and not found.index.exists()
    results = run(work, pipeline, corpus, how, own).rows
    if stored is None:
        columns = WITH_ID if any(one.id is not None for best in results for one in best) else WITHOUT
        results = [[tuple(getattr(one, name) for name in columns) for one in best] for best in results]
    if output is None or not how.quiet:
        _show(queries, results, columns)
    if is_new:
        msg.good(f"Saved the index to {found.index}")
    elif found.index is not None or (stored is None and corpus.is_dir()):
        msg.info(f"Searched the index in {found.index or corpus}")
    if output is not None:
        rows = [(query, *one) for query, best in zip(queries, results, strict=True) for one in best]
        write(output, ("query", *columns), rows)


def _check_folder(folder: Path, found: Found, stored: Stored, how: How) -> None:
    """End the command where it is asked what the folder of an index, or of vectors, has decided."""
    from ..search.index_folder import read_manifest

    if found.vectors is not None and stored != "index":
        fail(
            f"{folder} has vectors of its own, so --vectors {found.vectors} cannot be searched, too. Leave "
            "them out, or give the texts that they are of, or an index that the command `index` built."
        )
    if how.id_column is not None:
        fail(f"{folder} is a folder: --id-column is for a file of texts. Leave it out: ids that were saved are shown.")
    if found.index is None and found.kind is None:
        return
    option, what = "--kind" if found.index is None else "--index", "one of vectors"
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
        shown = [
            (f"{score:.4f}", *("" if value is None else _shortened(str(value)) for value in row))
            for score, *row in best
        ]
        msg.table(shown, header=[name.capitalize() for name in columns], title=_shortened(query), divider=True)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _read_queries(path: Path) -> list[str]:
    """The lines of a file, or of what is typed or piped in, that have text."""
    from ..files.text_lines import has_text, read_lines

    with exit_on_error(f"Cannot read the --queries in {path}"):
        if path == STDIN:
            lines = get_text_stream("stdin", encoding="utf8").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _stored_in(corpus: Path) -> Stored:
    """What a folder has in place of texts: the vectors of files, or an index of such."""
    from ..bulk.dataset_encoding import JOB
    from ..search.corpus_search import is_of_stored

    if (corpus / JOB).is_file():
        return "vectors"
    with exit_on_error(f"Cannot search in {corpus}"):
        return "index" if corpus.is_dir() and is_of_stored(corpus) else None


def _in_folder(queries: list[str], found: Found, *, is_index: bool) -> Callable[..., Any]:
    """The search in a folder that has vectors in place of texts, which `run` is to do."""
    from ..bulk import PartVectors
    from ..search.corpus_search import search_folder

    def work(pipe: Any, folder: Path, *, progress: bool, **_: object) -> Any:  # of texts it has no column
        return search_folder(
            pipe,
            folder,
            queries,
            k=found.k,
            is_index=is_index,
            open_vectors=PartVectors,
            vectors=found.vectors,
            query_prompt=found.query_prompt,
            progress=progress,
        )

    return work
