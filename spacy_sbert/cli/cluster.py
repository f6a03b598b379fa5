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

    from ..search.corpus_search import Corpus as Texts


@app.command("cluster")
def _cluster_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Table,
    method: Annotated[
        str, Option("--method", "-m", help="The method: communities, hierarchical or kmeans.")
    ] = "communities",
    vectors: Vectors = None,
    threshold: Annotated[
        float | None,
        Option(
            "--threshold",
            "-t",
            help="The least cosine in communities, by default 0.75; or the largest distance (1 - cosine) in "
            "hierarchical clusters.",
        ),
    ] = None,
    min_size: Annotated[int | None, Option(help="The least number of texts in communities, by default 10.")] = None,
    n_clusters: Annotated[
        int | None, Option("--n-clusters", "-n", help="The number of clusters, of hierarchical and kmeans.")
    ] = None,
    linkage: Annotated[str | None, Option(help="The linkage of hierarchical: average, complete or single.")] = None,
    seed: Seed = None,
    n_init: Annotated[
        int | None, Option(help="The number of tries of kmeans, of which the best is kept, by default 10.")
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
    """Write the cluster of each text.

    It is a number from 0, or -1 for texts in none, and has a name, the words that tell its texts from others. The other
    columns of a table are kept.
    """
    check_table(output, overwrite=overwrite)
    check_columns(corpus, column, header=header)

    from ..progress import ticking
    from ..search.corpus_search import NO_CLUSTER, check_method, cluster_texts

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
    alone = sum(cluster == NO_CLUSTER for cluster, *_ in rows)
    n_clusters = len({cluster for cluster, *_ in rows} - {NO_CLUSTER})
    msg.info(f"{n_clusters} clusters of {len(rows) - alone} texts; {alone} are in none")
    if blank := read.rows[-1] + 1 - len(rows):
        msg.warn(f"Rows without text, which are left out: {blank}", 'The column "row" has the numbers of the others.')
    if 2 * alone > len(rows):
        msg.warn("Most texts are in no cluster", "A lower --threshold, or a smaller --min-size, takes in more.")


def _names(nlp: "Language", rows: Sequence[tuple[int, int, str]]) -> dict[int, str]:
    """Return the name of each cluster: the terms that a map shows; an empty one for texts in no cluster."""
    from ..search.corpus_search import NO_CLUSTER
    from ..visual.scatter import class_terms, words_of

    clusters = sorted({cluster for cluster, *_ in rows})
    places = {cluster: place for place, cluster in enumerate(clusters)}
    words = (words_of(nlp.make_doc(text)) for *_, text in rows)
    terms = class_terms(words, [places[cluster] for cluster, *_ in rows], len(clusters))
    return {c: "" if c == NO_CLUSTER else ", ".join(words) for c, words in zip(clusters, terms, strict=True)}


def _write(output: Path, rows: Sequence[tuple[Any, ...]], read: "Texts") -> None:
    """Write clusters, with the ids and the other columns of the texts, whose names may be changed."""
    from ..files.tables import distinct

    names: tuple[str, ...] = ("cluster", "name", "row", *(() if read.ids is None else ("id",)), "text")
    others = read.others or [{}] * len(rows)
    keys = list(dict.fromkeys(key for record in others for key in record))
    kept = [tuple(record.get(key) for key in keys) for record in others]
    table = [(*row, *more) for row, more in zip(with_ids(rows, read, 2), kept, strict=True)]
    write(output, (*names, *distinct(keys, names)), table)
