"""`python -m spacy sbert cluster`: groups of similar texts in a file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option
from wasabi import msg

from ._util import app, check_columns, exit_on_error
from .corpus_options import Corpus, Table, check_table, run, with_ids, write
from .options import Code, Column, Gpu, Header, IdColumn, Overwrite, Pipe, Pipeline, Quiet, Seed, Vectors, without_none

if TYPE_CHECKING:
    from spacy.language import Language

    from ..search.corpus import Corpus as Texts


_Threshold = Annotated[
    float | None,
    Option(
        "--threshold",
        "-t",
        help="The least cosine in communities, by default 0.75; or the largest distance (1 - cosine) in "
        "hierarchical clusters.",
    ),
]
_MinSize = Annotated[int | None, Option("--min-size", help="The least number of texts in communities, by default 10.")]
_NClusters = Annotated[
    int | None, Option("--n-clusters", "-n", help="The number of clusters, of hierarchical and kmeans.")
]
_Linkage = Annotated[str | None, Option("--linkage", help="The linkage of hierarchical: average, complete or single.")]
_NInit = Annotated[
    int | None, Option("--n-init", help="The number of tries of kmeans, of which the best is kept, by default 10.")
]


@app.command("cluster")
def _cluster_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Table,
    method: Annotated[
        str, Option("--method", "-m", help="The method: communities, hierarchical or kmeans.")
    ] = "communities",
    vectors: Vectors = None,
    threshold: _Threshold = None,
    min_size: _MinSize = None,
    n_clusters: _NClusters = None,
    linkage: _Linkage = None,
    seed: Seed = None,
    n_init: _NInit = None,
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    column: Column = None,
    id_column: IdColumn = None,
    header: Header = True,
    overwrite: Overwrite = False,
) -> None:
    """Write the cluster of each text.

    It is a number from 0, or -1 for texts in none, and has a name, the words that tell its texts from others. The other
    columns of a table are kept.
    """
    check_table(output, overwrite=overwrite)
    check_columns(corpus, column, header=header)

    from ..progress import ticking
    from ..search.corpus_search import check_method, cluster_texts

    options = without_none(
        threshold=threshold, min_size=min_size, n_clusters=n_clusters, linkage=linkage, seed=seed, n_init=n_init
    )
    with exit_on_error(f"Cannot work on {corpus}"):
        check_method(method, options)
    work = partial(cluster_texts, method=cast(Any, method), **options)
    rows, nlp, read = run(
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
        vectors=vectors,
        others=True,
    )
    with ticking("Naming", shown=not quiet):
        names = _names(nlp, rows)
    _write(output, [(cluster, names[cluster], *row) for cluster, *row in rows], read)
    _summarize(rows, read.rows)


def _summarize(rows: Sequence[tuple[int, int, str]], numbers: Sequence[int]) -> None:
    """Print how many clusters there are, and what is in none; numbers: of the rows that have text."""
    from ..search.corpus_search import NO_CLUSTER

    alone = sum(row[0] == NO_CLUSTER for row in rows)
    msg.info(
        f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in none"
    )
    blank = numbers[-1] + 1 - len(rows) if rows else 0
    if blank:
        msg.warn(f"Rows without text, which are left out: {blank}", 'The column "row" has the numbers of the others.')
    if 2 * alone > len(rows):
        msg.warn("Most texts are in no cluster", "A lower --threshold, or a smaller --min-size, takes in more.")


def _names(nlp: "Language", rows: Sequence[tuple[int, int, str]]) -> dict[int, str]:
    """Return the name of each cluster: the terms that a map shows; none for texts in no cluster."""
    from ..search.corpus_search import NO_CLUSTER
    from ..visual.labels import class_terms, words_of

    clusters = sorted({cluster for cluster, *_ in rows})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    words = (words_of(nlp.make_doc(text)) for *_, text in rows)
    terms = class_terms(words, [places[cluster] for cluster, *_ in rows], len(clusters))
    named = {cluster: ", ".join(words) for cluster, words in zip(clusters, terms, strict=True)}
    return named | ({NO_CLUSTER: ""} if NO_CLUSTER in named else {})


def _write(output: Path, rows: Sequence[tuple[Any, ...]], read: "Texts") -> None:
    """Write clusters, with the ids and the other columns of the texts; a column whose name is taken gets another."""
    from ..files.tables import distinct

    names: tuple[str, ...] = ("cluster", "name", "row", *(() if read.ids is None else ("id",)), "text")
    others = read.others or [{}] * len(rows)
    keys = list(dict.fromkeys(key for record in others for key in record))
    kept = [tuple(record.get(key) for key in keys) for record in others]
    write(
        output, (*names, *distinct(keys, names)), [(*a, *b) for a, b in zip(with_ids(rows, read, 2), kept, strict=True)]
    )
