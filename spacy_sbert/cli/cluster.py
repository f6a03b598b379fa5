"""`python -m spacy sbert cluster`: groups of similar texts in a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Option
from wasabi import msg

from ._util import app, check_columns, exit_on_error
from .corpus_options import Corpus, How, Table, check_table, run, with_ids, write
from .options import Pipeline, Seed, Vectors, set_options, takes_options


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


@app.command("cluster")
@takes_options
def cluster_cli(
    pipeline: Pipeline,
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

    It is a number from 0, or -1 for texts in none, and has a name, the words that tell its texts from others. The other
    columns of a table are kept.
    """
    check_table(output, overwrite=how.overwrite)
    check_columns(corpus, how.column, header=how.header)

    from ..progress import ticking
    from ..search.corpus_search import NO_CLUSTER, check_method, cluster_texts

    asked = set_options(options)
    with exit_on_error(f"Cannot work on {corpus}"):
        check_method(method, asked)
    work = partial(cluster_texts, method=cast(Any, method), **asked)
    found = run(work, pipeline, corpus, how, vectors, others=True)
    rows = found.rows
    with ticking("Naming", shown=how.shown):
        names = _names(found.nlp, rows)
    _write(output, [(cluster, names[cluster], *row) for cluster, *row in rows], found.read)
    alone = sum(row[0] == NO_CLUSTER for row in rows)
    msg.info(
        f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in none"
    )
    blank = found.read.rows[-1] + 1 - len(rows) if rows else 0
    if blank:
        msg.warn(f"Rows without text, which are left out: {blank}", 'The column "row" has the numbers of the others.')
    if 2 * alone > len(rows):
        msg.warn("Most texts are in no cluster", "A lower --threshold, or a smaller --min-size, takes in more.")


def _names(nlp: Any, rows: Sequence[tuple[int, int, str]]) -> dict[int, str]:
    """Return the name of each cluster: the terms that a map shows; none for texts in no cluster."""
    from ..search.corpus_search import NO_CLUSTER
    from ..visual.labels import class_terms, words_of

    clusters = sorted({cluster for cluster, *_ in rows})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    words = (words_of(nlp.make_doc(text)) for *_, text in rows)
    terms = class_terms(words, [places[cluster] for cluster, *_ in rows], len(clusters))
    named = {cluster: ", ".join(own) for cluster, own in zip(clusters, terms, strict=True)}
    return named | ({NO_CLUSTER: ""} if NO_CLUSTER in named else {})


def _write(output: Path, rows: Sequence[tuple[Any, ...]], read: Any) -> None:
    """Write clusters, with the ids and the other columns of the texts; a column whose name is taken gets another."""
    from ..files.tables import distinct

    names: tuple[str, ...] = ("cluster", "name", "row", *(() if read.ids is None else ("id",)), "text")
    others = read.others or [{}] * len(rows)
    keys = list(dict.fromkeys(key for one in others for key in one))
    kept = [tuple(one.get(key) for key in keys) for one in others]
    write(
        output, (*names, *distinct(keys, names)), [(*a, *b) for a, b in zip(with_ids(rows, read, 2), kept, strict=True)]
    )
