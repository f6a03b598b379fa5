"""`python -m spacy sbert search`, `mine`, `cluster`: what is similar in a file of texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from typer import Argument, Option
from wasabi import msg

from .ending import fail, or_fail, use_gpu
from .errors import Errors
from .group import app
from .options import Gpu, given, takes_options

SHOWN = 100  # characters of a text
CORPUS_HELP = "Texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet"
Pipeline = Annotated[str, Argument(help="A folder or a package with an sbert pipe, or the name of an encoder")]
Corpus = Annotated[Path, Argument(help=CORPUS_HELP, exists=True, dir_okay=False)]
Output = Annotated[Path, Argument(help="The .tsv or .jsonl file to write")]
Vectors = Annotated[Path | None, Option("--vectors", help="Those of the texts, a file by `encode`", exists=True)]
RowT = TypeVar("RowT")


@dataclass(frozen=True)
class How:
    """Which pipe encodes which texts of the file, and where."""

    pipe: Annotated[str | None, Option("--name", help="The sbert pipe to encode with; by default the last")] = None
    column: Annotated[str, Option("--column", "-c", help="Column or JSON field of the texts")] = "text"
    header: Annotated[bool, Option(" /--no-header", help="Columns of .csv and .tsv are named 0, 1, ...")] = True
    gpu_id: Gpu = -1


@dataclass(frozen=True)
class ClusterOptions:
    """What the methods of clustering are told; None as they have it."""

    threshold: Annotated[
        float | None,
        Option(
            "--threshold", "-t", help="communities: least cosine (0.75); hierarchical: largest distance, 1 - cosine"
        ),
    ] = None
    min_size: Annotated[int | None, Option("--min-size", help="communities: texts that make one (10)")] = None
    n_clusters: Annotated[int | None, Option("--n-clusters", "-n", help="hierarchical, kmeans: how many")] = None
    linkage: Annotated[str | None, Option("--linkage", help="hierarchical: average, complete or single")] = None
    seed: Annotated[int | None, Option("--seed", help="kmeans: of the first means (0)")] = None


@app.command("search")
@takes_options
def search_cli(
    pipeline: Pipeline,
    corpus: Annotated[
        Path, Argument(help=f"{CORPUS_HELP}; or a folder: a saved index, or vectors by `encode`", exists=True)
    ],
    queries: Annotated[list[str], Argument(help="What to search for")],
    k: Annotated[int, Option("--k", "-k", help="Texts for each query", min=1)] = 10,
    index: Annotated[Path | None, Option("--index", "-i", help="Folder of an index; built there if need be")] = None,
    kind: Annotated[str | None, Option("--kind", help="Of the index: flat, hnsw or ivf")] = None,
    vectors: Annotated[
        str | None,
        Option("--vectors", help="Those of the texts, a file by `encode`; of an index, if they stand elsewhere by now"),
    ] = None,
    query_prompt: Annotated[str | None, Option("--query-prompt", help="Name of the queries' prompt")] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="A .tsv or .jsonl file for the results")] = None,
    *,
    how: How,
) -> None:
    """Find the texts that are most similar to each query, exactly or through a saved index."""
    from ..search.texts import search_texts

    work: Callable[..., Any]
    columns: tuple[str, ...] = ("score", "row", "text")
    stored = _stored_in(corpus)
    if vectors is not None and (stored == "vectors" or (stored is None and corpus.is_dir())):
        fail(Errors.SEARCH_OF_VECTORS.format(vectors=vectors, corpus=corpus))
    if stored is None:
        work = partial(search_texts, queries=queries, k=k, index=index, kind=kind, query_prompt=query_prompt)
    else:
        if index is not None or kind is not None:
            fail(Errors.SEARCH_OF_TEXTS.format(option="--kind" if index is None else "--index", folder=corpus))
        work = _in_folder(queries, k, vectors, query_prompt, is_index=stored == "index")
        columns = ("score", "file", "row", "id", "text")
    own = Path(vectors) if vectors is not None and stored is None else None
    found = _run(work, pipeline, corpus, how, output, own)
    for query, best in zip(queries, found, strict=True):
        shown = [
            (f"{score:.4f}", *("" if value is None else str(value)[:SHOWN] for value in row)) for score, *row in best
        ]
        msg.table(shown, header=[name.capitalize() for name in columns], title=query[:SHOWN], divider=True)
    if output is not None:
        rows = [(query, *one) for query, best in zip(queries, found, strict=True) for one in best]
        _write(output, ("query", *columns), rows)


def _stored_in(corpus: Path) -> Literal["vectors", "index"] | None:
    """What a folder has in place of texts: the vectors of files, or an index of such."""
    from ..bulk.manifest import JOB
    from ..search.in_folders import is_of_stored

    if (corpus / JOB).is_file():
        return "vectors"
    with or_fail(f"Cannot search in {corpus}"):
        return "index" if corpus.is_dir() and is_of_stored(corpus) else None


def _in_folder(
    queries: list[str], k: int, vectors: str | None, query_prompt: str | None, *, is_index: bool
) -> Callable[..., Any]:
    """The search in a folder that has vectors in place of texts, which `_run` is to do."""
    from ..bulk import PartVectors
    from ..search.in_folders import search_folder

    def work(pipe: Any, folder: Path, **_: object) -> Any:  # of texts it has no column
        return search_folder(
            pipe,
            folder,
            queries,
            k=k,
            is_index=is_index,
            open_vectors=PartVectors,
            vectors=vectors,
            query_prompt=query_prompt,
        )

    return work


@app.command("mine")
@takes_options
def mine_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Output,
    k: Annotated[int, Option("--k", "-k", help="The most pairs to write", min=1)] = 100,
    min_score: Annotated[float, Option("--min-score", help="Least cosine similarity of a pair")] = -1.0,
    vectors: Vectors = None,
    *,
    how: How,
) -> None:
    """Write the most similar pairs of texts: paraphrases, duplicates."""
    from ..search.texts import mine_texts

    rows = _run(partial(mine_texts, k=k, min_score=min_score), pipeline, corpus, how, output, vectors)
    _write(output, ("score", "first_row", "second_row", "first", "second"), rows)
    if len(rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")


@app.command("cluster")
@takes_options
def cluster_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Output,
    method: Annotated[str, Option("--method", "-m", help="communities, hierarchical or kmeans")] = "communities",
    vectors: Vectors = None,
    *,
    options: ClusterOptions,
    how: How,
) -> None:
    """Write the cluster of each text, -1 for texts in none."""
    from ..search.texts import NO_CLUSTER, cluster_texts

    rows = _run(partial(cluster_texts, method=method, **given(options)), pipeline, corpus, how, output, vectors)
    _write(output, ("cluster", "row", "text"), rows)
    alone = sum(row[0] == NO_CLUSTER for row in rows)
    msg.info(
        f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in none"
    )


def _run(
    work: Callable[..., list[RowT]],
    pipeline: str,
    corpus: Path,
    how: How,
    output: Path | None,
    vectors: Path | None = None,
) -> list[RowT]:
    """Load the pipeline, and do the work with its pipe; errors that say what is wrong end the command."""
    from ..bulk import load_pipe
    from ..search.texts import check_output

    use_gpu(how.gpu_id)
    with or_fail(f"Cannot work on {corpus}", RuntimeError):
        if output is not None:
            check_output(output)  # before hours of work
        pipe = load_pipe(pipeline, name=how.pipe)
        if vectors is not None:
            work = partial(work, vectors=vectors_of(vectors, pipe, corpus, how.column, header=how.header))
        return work(pipe, corpus, progress=True, column=how.column, header=how.header)


def vectors_of(path: Path, pipe: Any, corpus: Path, column: str, *, header: bool = True) -> Any:
    """The vectors of a file's texts, float32 (n, width), from a file that `encode` wrote of them with this pipe."""
    from ..bulk import FileVectors
    from ..files.texts import TextColumns
    from ..search.encoder import check_encoder, identify
    from ..search.stored import identity_of

    found = FileVectors(path)
    check_encoder(identity_of(found), identify(pipe), path)
    return found.of_texts(corpus, TextColumns(column, None, header))


def _write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    from ..search.texts import write_table

    with or_fail(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
