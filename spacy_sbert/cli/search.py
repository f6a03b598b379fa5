"""`python -m spacy sbert search`, `mine`, `cluster`: what is similar in a file of texts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from typer import Argument, Option, get_text_stream
from wasabi import msg

from .ending import check_new, fail, or_fail, use_gpu
from .errors import Errors
from .group import app
from .options import (
    TEXTS,
    VECTORS,
    Column,
    Gpu,
    Header,
    Overwrite,
    Pipe,
    PipelineOrEncoder,
    Quiet,
    Seed,
    Vectors,
    given,
    takes_options,
)

SHOWN = 100  # characters of a text
STDIN = Path("-")
Corpus = Annotated[Path, Argument(help=TEXTS, exists=True, dir_okay=False)]
Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.")]
RowT = TypeVar("RowT")


@dataclass(frozen=True)
class How:
    """Which pipe encodes which texts of the file, and where."""

    pipe: Pipe = None
    name: Annotated[str | None, Option("--name", hidden=True)] = None  # --pipe, as it was called before
    column: Column = "text"
    header: Header = True
    overwrite: Overwrite = False
    gpu_id: Gpu = -1
    quiet: Quiet = False

    @property
    def pipe_name(self) -> str | None:
        return self.name if self.pipe is None else self.pipe


@dataclass(frozen=True)
class ClusterOptions:
    """What the methods of clustering are told; None as they have it."""

    threshold: Annotated[
        float | None,
        Option(
            "--threshold",
            "-t",
            help="The least cosine in communities, by default 0.75; or the largest distance (1 - cosine) in "
            "hierarchical clusters.",
        ),
    ] = None
    min_size: Annotated[
        int | None, Option("--min-size", help="The least number of texts in communities, by default 10.")
    ] = None
    n_clusters: Annotated[
        int | None, Option("--n-clusters", "-n", help="The number of clusters, of hierarchical and kmeans.")
    ] = None
    linkage: Annotated[
        str | None, Option("--linkage", help="The linkage of hierarchical: average, complete or single.")
    ] = None
    seed: Seed = None
    n_init: Annotated[
        int | None, Option("--n-init", help="The number of tries of kmeans, of which the best is kept, by default 10.")
    ] = None


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
    pipeline: PipelineOrEncoder,
    corpus: Annotated[
        Path, Argument(help=f"{TEXTS[:-1]}; or a folder: a saved index, or vectors by `encode`.", exists=True)
    ],
    queries: Annotated[list[str] | None, Argument(help="The texts to search for.")] = None,
    queries_path: Annotated[
        Path | None,
        Option(
            "--queries",
            help="A file of texts to search for, one a line, or - for what is typed or piped in.",
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
    from ..search.texts import search_texts

    work: Callable[..., Any]
    columns: tuple[str, ...] = ("score", "row", "text")
    check_new(output, overwrite=how.overwrite)
    queries = [*(queries or []), *(_read_queries(queries_path) if queries_path is not None else [])]
    if not queries:
        fail(Errors.NO_QUERY)
    stored = _stored_in(corpus)
    if found.vectors is not None and (stored == "vectors" or (stored is None and corpus.is_dir())):
        fail(Errors.SEARCH_OF_VECTORS.format(vectors=found.vectors, corpus=corpus))
    asked = asdict(found)
    vectors = asked.pop("vectors")
    if stored is None:
        work = partial(search_texts, queries=queries, **asked)
    else:
        if found.index is not None or found.kind is not None:
            fail(Errors.SEARCH_OF_TEXTS.format(option="--kind" if found.index is None else "--index", folder=corpus))
        work = _in_folder(queries, found, is_index=stored == "index")
        columns = ("score", "file", "row", "id", "text")
    own = Path(vectors) if vectors is not None and stored is None else None
    is_new = stored is None and found.index is not None and not found.index.exists()
    results = _run(work, pipeline, corpus, how, output, own)
    for query, best in zip(queries, results, strict=True):
        shown = [
            (f"{score:.4f}", *("" if value is None else _shortened(str(value)) for value in row))
            for score, *row in best
        ]
        msg.table(shown, header=[name.capitalize() for name in columns], title=_shortened(query), divider=True)
    if is_new:
        msg.good(f"Saved the index to {found.index}")
    if output is not None:
        rows = [(query, *one) for query, best in zip(queries, results, strict=True) for one in best]
        _write(output, ("query", *columns), rows)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _read_queries(path: Path) -> list[str]:
    """The lines of a file, or of what is typed or piped in, that have text."""
    from ..files.lines import has_text, read_lines

    with or_fail(f"Cannot read the --queries in {path}"):
        if path == STDIN:
            lines = get_text_stream("stdin", encoding="utf8").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _stored_in(corpus: Path) -> Literal["vectors", "index"] | None:
    """What a folder has in place of texts: the vectors of files, or an index of such."""
    from ..bulk.manifest import JOB
    from ..search.in_folders import is_of_stored

    if (corpus / JOB).is_file():
        return "vectors"
    with or_fail(f"Cannot search in {corpus}"):
        return "index" if corpus.is_dir() and is_of_stored(corpus) else None


def _in_folder(queries: list[str], found: Found, *, is_index: bool) -> Callable[..., Any]:
    """The search in a folder that has vectors in place of texts, which `_run` is to do."""
    from ..bulk import PartVectors
    from ..search.in_folders import search_folder

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


@app.command("mine")
@takes_options
def mine_cli(
    pipeline: PipelineOrEncoder,
    corpus: Corpus,
    output: Table,
    k: Annotated[int, Option("--k", "-k", help="The number of pairs to write, or 0 for all.", min=0)] = 100,
    min_score: Annotated[float, Option("--min-score", help="The least cosine similarity of a pair.")] = -1.0,
    vectors: Vectors = None,
    *,
    how: How,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a score on.
    """
    from ..search.texts import mine_texts

    rows = _run(partial(mine_texts, k=k or None, min_score=min_score), pipeline, corpus, how, output, vectors)
    _write(output, ("score", "first_row", "second_row", "first", "second"), rows)
    if len(rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")


@app.command("cluster")
@takes_options
def cluster_cli(
    pipeline: PipelineOrEncoder,
    corpus: Corpus,
    output: Table,
    method: Annotated[
        str, Option("--method", "-m", help="The method: communities, hierarchical or kmeans.")
    ] = "communities",
    vectors: Vectors = None,
    *,
    options: ClusterOptions,
    how: How,
) -> None:
    """Write the cluster of each text.

    It is a number from 0, or -1 for texts in none.
    """
    from ..search.texts import NO_CLUSTER, cluster_texts

    rows = _run(partial(cluster_texts, method=method, **given(options)), pipeline, corpus, how, output, vectors)
    _write(output, ("cluster", "row", "text"), rows)
    alone = sum(row[0] == NO_CLUSTER for row in rows)
    msg.info(
        f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in none"
    )
    if 2 * alone > len(rows):
        msg.warn("Most texts are in no cluster", "A lower --threshold, or a smaller --min-size, takes in more.")


def _run(
    work: Callable[..., list[RowT]],
    pipeline: str,
    corpus: Path,
    how: How,
    output: Path | None,
    vectors: Path | None = None,
) -> list[RowT]:
    """Load the pipeline, and do the work with its pipe; errors that say what is wrong end the command."""
    from ..errors.progress import ticking
    from ..search.texts import check_output

    check_new(output, overwrite=how.overwrite)
    use_gpu(how.gpu_id)
    with or_fail(f"Cannot work on {corpus}", RuntimeError):
        if output is not None:
            check_output(output)  # before hours of work
        with ticking("Loading", shown=not how.quiet):
            from ..bulk import load_pipe

            pipe = load_pipe(pipeline, name=how.pipe_name)
        if vectors is not None:
            work = partial(work, vectors=vectors_of(vectors, pipe, corpus, how.column, header=how.header))
        return work(pipe, corpus, progress=not how.quiet, column=how.column, header=how.header)


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
