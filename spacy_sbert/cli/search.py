"""`python -m spacy sbert search`, `mine`, `cluster` and `index`: what is similar among the texts of a file."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from spacy.language import Language
from typer import Argument, Option, get_text_stream
from wasabi import msg

from ..files.tables import TextColumns, check_table_name, distinct, write_table
from ..files.text_lines import has_text, read_lines
from ..progress import ticking
from ._util import check_corpus, check_new, command, exit_on_error, fail, named_output
from .options import (
    COLUMN,
    TEXTS,
    Columns,
    Corpus,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    Quiet,
    Seed,
    Vectors,
    without_none,
)

if TYPE_CHECKING:
    import numpy

    from ..bulk import FileVectors
    from ..pipeline.sbert import SentenceBert
    from ..search.corpus_search import Corpus as Texts

# Characters of a text that is shown
_LONGEST = 100
_SEARCHED = f"{TEXTS[:-1]}; or a folder: a saved index, or vectors by `encode`."
_Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.", parser=named_output)]
_RESULTS = "A .tsv or .jsonl file for the results."
_INDEX = "The folder of an index, built if it is new."
_METHODS = "The method: communities, hierarchical or kmeans."
_THRESHOLD = (
    "The least cosine in communities, by default 0.75; or the largest 1 - cosine in hierarchical "
    "clusters."
)
_LISTS = "The number of lists of near vectors; by default half the root of that of vectors."


@command("search")
def _search_cli(
    pipeline: Pipeline,
    corpus: Annotated[Path, Argument(help=_SEARCHED, exists=True, callback=check_corpus)],
    loading: LoadingOnGpu,
    columns: Columns,
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
    stored = None if vectors is None else Path(vectors)
    _check_paths(corpus, columns, output, queries_path, stored, overwrite=overwrite)
    asked = [*(queries or []), *_read_queries(queries_path)]
    if not asked:
        fail(
            "There is no query. Give queries after the texts, or a file of queries with --queries."
        )
    given = {"vectors": vectors, "id_column": columns.id_column, "index": index, "kind": kind}
    is_stored = corpus.is_dir() and _check_folder(corpus, **given)

    from ..search.corpus_search import search_folder, search_texts
    from ..search.index import BuiltKind, import_faiss
    from ..validation import check

    with exit_on_error(f"Cannot work on {corpus}"):
        check("kind", kind, BuiltKind | None)
        if index is not None:
            import_faiss()
    work: Any = partial(search_folder, vectors=vectors)
    if not is_stored:
        work = partial(search_texts, index=index, kind=cast(Any, kind))
    work = partial(work, queries=asked, k=k, query_prompt=query_prompt)
    is_new = index is not None and not index.exists()
    stored = Path(vectors) if vectors is not None and not is_stored else None
    results, _, _ = _run(work, pipeline, corpus, loading, columns, vectors=stored)
    has_ids = is_stored or any(hit.id is not None for hits in results for hit in hits)
    names = (
        "score",
        *(("file",) if is_stored else ()),
        "row",
        *(("id",) if has_ids else ()),
        "text",
    )
    rows = [[[getattr(hit, name) for name in names] for hit in hits] for hits in results]
    if output is None or not loading.quiet:
        _show(asked, rows, names)
    if is_new:
        msg.good(f"Saved the index to {index}")
    elif index is not None or (corpus.is_dir() and not is_stored):
        msg.info(f"Searched the index in {index or corpus}")
    if output is not None:
        _write(
            output,
            ("query", *names),
            [(q, *row) for q, found in zip(asked, rows, strict=True) for row in found],
        )


def _read_queries(path: Path | None) -> list[str]:
    """Return the lines of a file, or of standard input, that have text."""
    if path is None:
        return []

    with exit_on_error(f"Cannot read the --queries in {path}"):
        if path == Path("-"):
            lines = get_text_stream("stdin", encoding="utf8").read().split("\n")
        else:
            lines = [line for _, line in read_lines(path)]
    return [line.strip() for line in lines if has_text(line)]


def _check_folder(corpus: Path, **given: object) -> bool:
    """End the command if options do not fit a folder, and return whether it has or names stored vectors."""
    from ..bulk.dataset_encoding import JOB
    from ..search.index import Manifest

    what, is_stored = "vectors", True
    if not (corpus / JOB).is_file():
        with exit_on_error(f"Cannot work on {corpus}"):
            manifest = Manifest.read(corpus)
        what, is_stored = f"an index of the kind {manifest.kind}", manifest.vectors is not None
        if is_stored:
            # Which may have been moved
            given.pop("vectors")
    if wrong := without_none(**given):
        option = f"--{next(iter(wrong)).replace('_', '-')}"
        fail(
            f"{option} is of a file of texts, and {corpus} is a folder with {what}. Leave it out, "
            "or give the texts."
        )
    return is_stored


def _show(
    queries: Sequence[str], results: Sequence[Sequence[Sequence[Any]]], columns: Sequence[str]
) -> None:
    for query, found in zip(queries, results, strict=True):
        rows = [
            (f"{score:.4f}", *("" if value is None else _shorten(str(value)) for value in row))
            for score, *row in found
        ]
        msg.table(
            rows,
            header=[name.capitalize() for name in columns],
            title=_shorten(query),
            divider=True,
        )


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@command("mine")
def _mine_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: _Table,
    loading: LoadingOnGpu,
    columns: Columns,
    k: Annotated[
        int | None,
        Option("--k", "-k", help="The pairs to write, 0 for all; by default 100.", min=0),
    ] = None,
    min_score: Annotated[
        float | None, Option(help="The least cosine of a pair.", show_default=False)
    ] = None,
    groups: Annotated[
        bool, Option("--groups", help="Write groups, as of duplicates, that pairs connect.")
    ] = False,
    vectors: Vectors = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the most similar pairs of texts.

    They are paraphrases and duplicates, the best first. -k 0 --min-score 0.8 writes all from a
    score on, and --groups --min-score 0.9 one row for each text that has a duplicate, with the
    number of its group.
    """
    _check_paths(corpus, columns, output, vectors, overwrite=overwrite)
    if groups and (min_score is None or k is not None):
        fail("--groups needs --min-score, from which two texts are in one group, and takes no -k.")

    from ..search.corpus_search import group_texts, mine_texts

    least = -1.0 if min_score is None else min_score
    k = 100 if k is None else k
    work = (
        partial(group_texts, min_score=least)
        if groups
        else partial(mine_texts, k=k or None, min_score=least)
    )
    rows, _, read = _run(work, pipeline, corpus, loading, columns, vectors=vectors)
    if groups:
        ids = () if columns.id_column is None else ("id",)
        _write(output, ("group", "row", *ids, "text"), _with_ids(rows, read, 1))
        alone = len(read.texts) - len(rows)
        msg.info(
            f"{len({row[0] for row in rows})} groups of {len(rows)} texts; {alone} are in none"
        )
        return
    both = () if columns.id_column is None else ("first_id", "second_id")
    _write(
        output,
        ("score", "first_row", "second_row", *both, "first", "second"),
        _with_ids(rows, read, 1, 2),
    )
    if len(rows) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")


@command("cluster")
def _cluster_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: _Table,
    loading: LoadingOnGpu,
    columns: Columns,
    method: Annotated[str, Option("--method", "-m", help=_METHODS)] = "communities",
    vectors: Vectors = None,
    threshold: Annotated[float | None, Option("--threshold", "-t", help=_THRESHOLD)] = None,
    min_size: Annotated[
        int | None, Option(help="The least number of texts in communities, by default 10.")
    ] = None,
    n_clusters: Annotated[
        int | None, Option("--n-clusters", "-n", help="For hierarchical and kmeans.")
    ] = None,
    linkage: Annotated[
        str | None, Option(help="The linkage of hierarchical: average, complete or single.")
    ] = None,
    seed: Seed = None,
    n_init: Annotated[
        int | None, Option(help="The tries of kmeans, of which the best counts; by default 10.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the cluster of each text.

    It is a number from 0, or -1 for texts in none, and has a name, the words that tell its texts
    from others. The other columns of a table are kept.
    """
    _check_paths(corpus, columns, output, vectors, overwrite=overwrite)

    from ..search.corpus_search import NO_CLUSTER, check_method, cluster_texts

    options = without_none(
        threshold=threshold,
        min_size=min_size,
        n_clusters=n_clusters,
        linkage=linkage,
        seed=seed,
        n_init=n_init,
    )
    with exit_on_error(f"Cannot work on {corpus}"):
        check_method(method, options)
    work = partial(cluster_texts, method=cast(Any, method), **options)
    rows, nlp, read = _run(work, pipeline, corpus, loading, columns, vectors=vectors, others=True)
    clusters = [cluster for cluster, *_ in rows]
    _write_clusters(output, rows, _names(nlp, rows, shown=not loading.quiet), read)
    alone = clusters.count(NO_CLUSTER)
    msg.info(
        f"{len({*clusters} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in "
        "none"
    )
    if blank := read.rows[-1] + 1 - len(rows):
        msg.warn(
            f"Rows without text, which are left out: {blank}",
            'The column "row" has the numbers of the others.',
        )
    if 2 * alone > len(rows):
        msg.warn(
            "Most texts are in no cluster",
            "A lower --threshold, or a smaller --min-size, takes in more.",
        )


def _names(nlp: Language, rows: Sequence[tuple[int, int, str]], *, shown: bool) -> dict[int, str]:
    """Return the name of each cluster: the terms that a map shows.

    An empty one for texts in no cluster.
    """
    from ..search.corpus_search import NO_CLUSTER
    from ..visual.scatter import class_terms, words_of

    clusters = sorted({cluster for cluster, *_ in rows})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    with ticking("Naming", shown=shown):
        words = (words_of(nlp.make_doc(text)) for *_, text in rows)
        terms = class_terms(words, [places[cluster] for cluster, *_ in rows], len(clusters))
    return {
        c: "" if c == NO_CLUSTER else ", ".join(words)
        for c, words in zip(clusters, terms, strict=True)
    }


def _write_clusters(
    output: Path, rows: Sequence[tuple[int, int, str]], names: dict[int, str], read: "Texts"
) -> None:
    """Write clusters, with the ids and the other columns of the texts, whose names may be changed."""
    header: tuple[str, ...] = (
        "cluster",
        "name",
        "row",
        *(() if read.ids is None else ("id",)),
        "text",
    )
    others = read.others or [{}] * len(rows)
    keys = list(dict.fromkeys(key for record in others for key in record))
    named = [(cluster, names[cluster], *row) for cluster, *row in rows]
    table = [
        (*row, *map(record.get, keys))
        for row, record in zip(_with_ids(named, read, 2), others, strict=True)
    ]
    _write(output, (*header, *distinct(keys, header)), table)


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
            f"{vectors} is a file: expected a folder of vectors. `search --vectors --index` "
            "builds one of a file."
        )
    with exit_on_error(f"Cannot build an index of {vectors}", RuntimeError):
        stored = PartVectors(vectors)
        index = build_ivfpq(
            stored, index_path, n_lists=n_lists, code_bytes=code_bytes, progress=not quiet
        )
    msg.good(f"Wrote an index of {len(index)} vectors to {index_path}")


def _check_paths(
    corpus: Path, columns: Columns, output: Path | None, *inputs: Path | None, overwrite: bool
) -> None:
    """End the command, before any work, where the table of what is found could not be written, or columns not read."""
    check_new(output, corpus, *inputs, overwrite=overwrite)
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            check_table_name(output)
    columns.check(corpus)


def _run(
    work: Callable[..., Any],
    pipeline: str,
    corpus: Path,
    loading: LoadingOnGpu,
    columns: Columns,
    *,
    vectors: Path | None,
    others: bool = False,
) -> tuple[Any, Any, Any]:
    """Read texts, load the pipeline, and return what the work returns, the pipeline and the texts, if of a file."""
    column, shown = columns.column or COLUMN, not loading.quiet

    from ..search.corpus_search import TextVectors, read_corpus

    with exit_on_error(f"Cannot take the vectors in {vectors}"):
        stored = (
            None if vectors is None else vectors_of(vectors, corpus, column, header=columns.header)
        )
    settings: dict[str, Any] = {"progress": shown}
    with exit_on_error(f"Cannot work on {corpus}"):
        if not corpus.is_dir():
            ids: dict[str, Any] = {"id_column": columns.id_column, "others": others}
            settings["read"] = read_corpus(
                corpus, column, header=columns.header, progress=shown, **ids
            )
    nlp = loading.load(pipeline)
    with exit_on_error(f"Cannot work on {corpus}", RuntimeError):
        from ..bulk.loading import find_pipe

        encoder = find_pipe(nlp, loading.pipe)
        if stored is not None:
            settings["vectors"] = TextVectors(check_vectors(encoder, *stored))
        return work(encoder, corpus, **settings), nlp, settings.get("read")


def _with_ids(
    rows: Sequence[tuple[Any, ...]], read: "Texts", *places: int
) -> list[tuple[Any, ...]]:
    """Return results with the ids of their texts, if there are some, behind the last of the places of their rows."""
    if read.ids is None:
        return list(rows)
    ids = dict(zip(read.rows, read.ids, strict=True))
    end = places[-1] + 1
    return [(*row[:end], *(ids[row[place]] for place in places), *row[end:]) for row in rows]


def vectors_of(
    path: Path, corpus: Path, column: str, *, header: bool = True
) -> "tuple[FileVectors, numpy.ndarray]":
    """Return a file that `encode` wrote, and the vectors of a file's texts in it, float32 (n, width)."""
    from ..bulk import FileVectors

    file = FileVectors(path)
    return file, file.of_texts(corpus, TextColumns(column, None, header))


def check_vectors(
    pipe: "SentenceBert", file: "FileVectors", vectors: "numpy.ndarray"
) -> "numpy.ndarray":
    """Return the vectors of vectors_of. RAISES (ValueError): if another encoder made them."""
    from ..search.index import EncoderIdentity, check_encoder, identify

    check_encoder(EncoderIdentity.of(file), identify(pipe), file.path)
    return vectors


def _write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    """Write a table of what was found."""
    with exit_on_error(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
