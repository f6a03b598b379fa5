"""`python -m spacy sbert search`, `mine`, `cluster`: what is similar in a file of texts."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option
from wasabi import msg

from .group import app
from .ending import fail, use_gpu

SHOWN = 100  # characters of a text
CORPUS_HELP = "Texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet"
Pipeline = Annotated[str, Argument(help="A folder or an installed package with an sbert pipe")]
Corpus = Annotated[Path, Argument(help=CORPUS_HELP, exists=True, dir_okay=False)]
Output = Annotated[Path, Argument(help="The .tsv or .jsonl file to write")]
Pipe = Annotated[str | None, Option("--name", help="The sbert pipe to encode with; by default the last")]
Column = Annotated[str, Option("--column", "-c", help="Column or JSON field of the texts")]
NoHeader = Annotated[bool, Option("--no-header", help="Columns of .csv and .tsv are named 0, 1, ...")]
Gpu = Annotated[int, Option("--gpu-id", "-g", help="GPU to use, -1 for the CPU", min=-1)]


@app.command("search")
def search_cli(
    pipeline: Pipeline,
    corpus: Annotated[Path, Argument(help=f"{CORPUS_HELP}, or the folder of a saved index", exists=True)],
    queries: Annotated[list[str], Argument(help="What to search for")],
    k: Annotated[int, Option("--k", "-k", help="Texts for each query", min=1)] = 10,
    index: Annotated[Path | None, Option("--index", "-i", help="Folder of an index; built there if need be")] = None,
    kind: Annotated[str | None, Option("--kind", help="Of the index: flat, hnsw or ivf")] = None,
    query_prompt: Annotated[str | None, Option("--query-prompt", help="Name of the queries' prompt")] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="A .tsv or .jsonl file for the results")] = None,
    pipe: Pipe = None,
    column: Column = "text",
    no_header: NoHeader = False,
    gpu_id: Gpu = -1,
) -> None:
    """Find the texts that are most similar to each query, exactly or through a saved index."""
    from ..search.texts import search_texts, write_table

    how = {"k": k, "index": index, "kind": kind, "column": column, "header": not no_header}
    found = _run(pipeline, pipe, gpu_id, output, search_texts, corpus, queries, query_prompt=query_prompt, **how)
    for query, best in zip(queries, found, strict=True):
        rows = [(f"{score:.4f}", str(row), text[:SHOWN]) for score, row, text in best]
        msg.table(rows, header=("Score", "Row", "Text"), title=query[:SHOWN], divider=True)
    if output is not None:
        rows = [(query, *one) for query, best in zip(queries, found, strict=True) for one in best]
        _write(write_table, output, ("query", "score", "row", "text"), rows)


@app.command("mine")
def mine_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Output,
    k: Annotated[int, Option("--k", "-k", help="The most pairs to write", min=1)] = 100,
    min_score: Annotated[float, Option("--min-score", help="Least cosine similarity of a pair")] = -1.0,
    pipe: Pipe = None,
    column: Column = "text",
    no_header: NoHeader = False,
    gpu_id: Gpu = -1,
) -> None:
    """Write the most similar pairs of texts: paraphrases, duplicates."""
    from ..search.texts import mine_texts, write_table

    rows = _run(
        pipeline,
        pipe,
        gpu_id,
        output,
        mine_texts,
        corpus,
        k=k,
        min_score=min_score,
        column=column,
        header=not no_header,
    )
    _write(write_table, output, ("score", "first_row", "second_row", "first", "second"), rows)


@app.command("cluster")
def cluster_cli(
    pipeline: Pipeline,
    corpus: Corpus,
    output: Output,
    method: Annotated[str, Option("--method", "-m", help="communities, hierarchical or kmeans")] = "communities",
    threshold: Annotated[
        float | None,
        Option(
            "--threshold", "-t", help="communities: least cosine (0.75); hierarchical: largest distance, 1 - cosine"
        ),
    ] = None,
    min_size: Annotated[int | None, Option("--min-size", help="communities: texts that make one (10)")] = None,
    n_clusters: Annotated[int | None, Option("--n-clusters", "-n", help="hierarchical, kmeans: how many")] = None,
    linkage: Annotated[str | None, Option("--linkage", help="hierarchical: average, complete or single")] = None,
    seed: Annotated[int | None, Option("--seed", help="kmeans: of the first means (0)")] = None,
    pipe: Pipe = None,
    column: Column = "text",
    no_header: NoHeader = False,
    gpu_id: Gpu = -1,
) -> None:
    """Write the cluster of each text, -1 for texts in none."""
    from ..search.texts import NO_CLUSTER, cluster_texts, write_table

    given = {"threshold": threshold, "min_size": min_size, "n_clusters": n_clusters, "linkage": linkage, "seed": seed}
    options = {name: value for name, value in given.items() if value is not None}
    rows = _run(
        pipeline,
        pipe,
        gpu_id,
        output,
        cluster_texts,
        corpus,
        method=method,
        column=column,
        header=not no_header,
        **options,
    )
    _write(write_table, output, ("cluster", "row", "text"), rows)
    msg.info(f"{len({row[0] for row in rows} - {NO_CLUSTER})} clusters of {len(rows)} texts")


def _run(
    pipeline: str,
    pipe: str | None,
    gpu_id: int,
    output: Path | None,
    work: Any,
    corpus: Path,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Load the pipeline, and do the work with its pipe; errors that say what is wrong end the command."""
    import spacy

    from ..component.sbert import find_sbert
    from ..search.texts import check_output

    use_gpu(gpu_id)
    try:
        if output is not None:
            check_output(output)  # before hours of work
        sbert = find_sbert(spacy.load(pipeline), pipe)
        return work(sbert, corpus, *args, progress=True, **kwargs)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        fail(f"Cannot work on {corpus}", str(error))


def _write(write: Any, output: Path, names: tuple[str, ...], rows: Any) -> None:
    try:
        write(output, names, rows)
    except (OSError, ValueError) as error:
        fail(f"Cannot write {output}", str(error))
    msg.good(f"Wrote {len(rows)} rows to {output}")
