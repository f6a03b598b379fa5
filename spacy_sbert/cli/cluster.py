"""`python -m spacy sbert cluster`: groups of similar texts in a file."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast

from typer import Option
from wasabi import msg

from .ending import or_fail
from .group import app
from .on_texts import Corpus, How, Table, check_table, run, write
from .options import PipelineOrEncoder, Seed, Vectors, given, takes_options


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
    check_table(output, overwrite=how.overwrite)

    from ..search.texts import NO_CLUSTER, check_method, cluster_texts

    asked = given(options)
    with or_fail(f"Cannot work on {corpus}"):
        check_method(method, asked)
    rows = run(partial(cluster_texts, method=cast(Any, method), **asked), pipeline, corpus, how, vectors)
    write(output, ("cluster", "row", "text"), rows)
    alone = sum(row[0] == NO_CLUSTER for row in rows)
    msg.info(
        f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows) - alone} texts; {alone} are in none"
    )
    if 2 * alone > len(rows):
        msg.warn("Most texts are in no cluster", "A lower --threshold, or a smaller --min-size, takes in more.")
