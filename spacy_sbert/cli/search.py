"""`python -m spacy sbert search`, `mine`, `cluster` and `index`: similar texts of a file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    from ..pipeline.sbert import SentenceBert
    from ..search.searchable import FoundText, Searchable
    from ..search.texts import Corpus as Texts
    from ..search.texts import TextVectors

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
    if corpus.is_dir():
        collection = _open_folder(
            corpus, vectors=vectors, id_column=columns.id_column, index=index, kind=kind
        )
    else:
        collection = _open_file(
            corpus, columns, index=index, kind=kind, vectors=stored, shown=loading.shown
        )
    folder = collection.index_folder
    is_new = folder is not None and not folder.exists()
    nlp = loading.load(pipeline)
    with _encoder_for(corpus, nlp, loading.pipe) as encoder:
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


def _open_folder(folder: Path, *, vectors: str | None, **of_files: object) -> "Searchable":
    """Open a saved index or stored vectors. End the command if options for files were given."""
    from ..bulk.dataset_encoding import JOB
    from ..search.faiss_index import import_faiss
    from ..search.index_folder import IndexManifest
    from ..search.searchable import Searchable

    with exit_on_error(f"Cannot work on {folder}"):
        manifest = None if (folder / JOB).is_file() else IndexManifest.read(folder)
    content = "vectors" if manifest is None else f"an index of the kind {manifest.kind}"
    # The stored vectors of an index may have been moved
    if manifest is None or manifest.vectors is None:
        of_files = {"vectors": vectors, **of_files}
    if wrong := without_none(**of_files):
        option = f"--{next(iter(wrong)).replace('_', '-')}"
        fail(
            f"{option} is of a file of texts, and {folder} is a folder with {content}. Leave it "
            "out, or give the texts."
        )
    with exit_on_error(f"Cannot work on {folder}"):
        if manifest is not None:
            import_faiss()
        return Searchable.open(folder, vectors=vectors)


def _open_file(
    path: Path,
    columns: Columns,
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
    read, stored = _read_texts(path, columns, vectors, shown=shown)
    return SearchableTexts(path, read, index=index, kind=cast(Any, kind), vectors=stored)


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
    return "" if value is None else _shorten(str(value))


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
    rows = [
        (query, *(getattr(hit, name) for name in columns))
        for query, hits in zip(queries, found, strict=True)
        for hit in hits
    ]
    _write(output, ("query", *columns), rows)


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

    read, stored = _read_texts(corpus, columns, vectors, shown=loading.shown)
    ids = dict(zip(read.rows, read.ids or [], strict=False))
    given: dict[str, Any] = {"read": read, "vectors": stored, "progress": loading.shown}
    if min_score is not None:
        given["min_score"] = min_score
    nlp = loading.load(pipeline)
    if groups:
        with _encoder_for(corpus, nlp, loading.pipe) as encoder:
            members = group_texts(encoder, corpus, **given)
        _write_groups(output, members, ids)
        n_groups = len({group for group, *_ in members})
        alone = len(read.texts) - len(members)
        msg.info(f"{n_groups} groups of {len(members)} texts; {alone} are in none")
        return
    k = 100 if k is None else k
    with _encoder_for(corpus, nlp, loading.pipe) as encoder:
        pairs = mine_texts(encoder, corpus, k=k or None, **given)
    _write_pairs(output, pairs, ids)
    if len(pairs) == k:
        msg.info(f"There may be more pairs: these are the {k} best, as many as -k allows")


def _write_groups(
    output: Path, members: Sequence[tuple[int, int, str]], ids: Mapping[int, str | int]
) -> None:
    """Write a record for each text that is in a group. ids (dict): by row; none if not read."""
    if not ids:
        _write(output, ("group", "row", "text"), members)
        return
    rows = [(group, row, ids[row], text) for group, row, text in members]
    _write(output, ("group", "row", "id", "text"), rows)


def _write_pairs(
    output: Path,
    pairs: Sequence[tuple[float, int, int, str, str]],
    ids: Mapping[int, str | int],
) -> None:
    """Write a record for each pair. ids (dict): by row; none if not read."""
    if not ids:
        _write(output, ("score", "first_row", "second_row", "first", "second"), pairs)
        return
    header = ("score", "first_row", "second_row", "first_id", "second_id", "first", "second")
    rows = [(score, i, j, ids[i], ids[j], first, second) for score, i, j, first, second in pairs]
    _write(output, header, rows)


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
    read, stored = _read_texts(corpus, columns, vectors, shown=loading.shown, others=True)
    nlp = loading.load(pipeline)
    with _encoder_for(corpus, nlp, loading.pipe) as encoder:
        rows = cluster_texts(
            encoder,
            corpus,
            method=cast(Any, method),
            read=read,
            vectors=stored,
            progress=loading.shown,
            **options,
        )
    _write_clusters(output, rows, _names(nlp, rows, shown=loading.shown), read)
    clusters = [cluster for cluster, *_ in rows]
    alone = clusters.count(NO_CLUSTER)
    n_clusters = len(set(clusters) - {NO_CLUSTER})
    msg.info(f"{n_clusters} clusters of {len(rows) - alone} texts; {alone} are in none")
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
    names = {cluster: ", ".join(of) for cluster, of in zip(clusters, terms, strict=True)}
    if NO_CLUSTER in names:
        names[NO_CLUSTER] = ""
    return names


def _write_clusters(
    output: Path, rows: Sequence[tuple[int, int, str]], names: dict[int, str], read: "Texts"
) -> None:
    """Write clusters, with the ids and the other columns of the texts.

    Columns get another name if it is taken.
    """
    header = ["cluster", "name", "row", "text"]
    table: list[list[object]] = [
        [cluster, names[cluster], row, text] for cluster, row, text in rows
    ]
    if read.ids is not None:
        header.insert(3, "id")
        for record, row_id in zip(table, read.ids, strict=True):
            record.insert(3, row_id)
    if read.others is not None:
        keys = list(dict.fromkeys(key for own in read.others for key in own))
        for record, own in zip(table, read.others, strict=True):
            record.extend(own.get(key) for key in keys)
        header.extend(distinct(keys, tuple(header)))
    _write(output, header, table)


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


def _check_paths(
    corpus: Path, columns: Columns, output: Path | None, *inputs: Path | None, overwrite: bool
) -> None:
    """End the command, before any work, if the output cannot be written or columns not read."""
    check_new(output, corpus, *inputs, overwrite=overwrite)
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            check_table_name(output)
    columns.check(corpus)


def _read_texts(
    path: Path, columns: Columns, vectors: Path | None, *, shown: bool, others: bool = False
) -> "tuple[Texts, TextVectors | None]":
    """Return the texts of a file, and the vectors that `encode` wrote of them, if given."""
    column = columns.column or COLUMN

    from ..search.texts import TextVectors, read_corpus

    stored = None
    if vectors is not None:
        with exit_on_error(f"Cannot take the vectors in {vectors}"):
            stored = TextVectors(vectors, path, TextColumns(column, None, columns.header))
    with exit_on_error(f"Cannot work on {path}"):
        read = read_corpus(
            path,
            column,
            id_column=columns.id_column,
            header=columns.header,
            others=others,
            progress=shown,
        )
    return read, stored


@contextmanager
def _encoder_for(corpus: Path, nlp: Language, pipe: str | None) -> "Iterator[SentenceBert]":
    """Yield the pipe that encodes texts. Errors of the block end the command."""
    from ..bulk.loading import find_pipe

    with exit_on_error(f"Cannot work on {corpus}", RuntimeError):
        yield find_pipe(nlp, pipe)


def _write(output: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table of what was found."""
    with exit_on_error(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
