"""`python -m spacy sbert visualize`: a heat map of similarity, of texts or tokens, or a map of a collection."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from ..files.tables import TABLES, read_table
from ..files.text_lines import check_label, check_text, format_suffix, read_lines
from ..validation import NonNegative
from ._util import Computing, app, check_corpus, check_new, check_pipeline, exit_on_error, fail
from .corpus_options import made_by, vectors_of
from .options import Limit, Overwrite, Pipeline, Seed, Vectors, set_options, takes_options

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span


@dataclass(frozen=True)
class Drawing:
    """How a picture is drawn; None as its style has it."""

    projection: Annotated[
        str | None,
        Option(
            "--projection", help="How a map is projected: pca or tsne. By default tsne, if scikit-learn is installed."
        ),
    ] = None
    seed: Seed = None
    terms: Annotated[
        bool | None, Option("--terms/--no-terms", help="Name the labels of a map by the words of their texts.")
    ] = None
    order: Annotated[str | None, Option("--order", help="The order of a heat map: similarity or set_options.")] = None
    low: Annotated[float | None, Option("--low", help="The similarity of the first colour.")] = None
    high: Annotated[float | None, Option("--high", help="The similarity of the last colour.")] = None
    title: Annotated[str | None, Option("--title", "-t", help="The title above the picture.")] = None


@app.command("visualize")
@takes_options
def visualize_cli(
    pipeline: Pipeline,
    texts_path: Annotated[
        Path,
        Argument(help="The file of texts: one a line, or a table.", exists=True, dir_okay=False, callback=check_corpus),
    ],
    output: Annotated[Path, Argument(help="The HTML file to write.", dir_okay=False)],
    style: Annotated[str, Option("--style", "-s", help="The kind of picture: heatmap, map or tokens.")] = "heatmap",
    sentences: Annotated[
        bool, Option("--sentences", help="Take the file as one text, and draw its sentences.")
    ] = False,
    column: Annotated[str | None, Option("--column", "-c", help="The column or JSON field of the texts.")] = None,
    labels: Annotated[str | None, Option("--labels", "-l", help="The column of a table that colours a map.")] = None,
    clusters: Annotated[
        int, Option("--clusters", help="Find so many clusters, by k-means, as the labels of a map.", min=0)
    ] = 0,
    limit: Limit = 0,
    vectors: Vectors = None,
    overwrite: Overwrite = False,
    *,
    loading: Computing,
    drawing: Drawing,
) -> None:
    """Draw a heat map, a map or tokens of texts.

    A heat map shows the similarity of every two texts, a map has a point for each, and "tokens" compares the tokens of
    two texts. The picture is one HTML file.
    """
    if sentences and (column or labels or limit or vectors):
        fail("--sentences draws one whole text: leave --column, --labels, --limit and --vectors out")
    if clusters and (labels or style != "map"):
        fail("--clusters finds the labels of a map: use it with --style map, and leave --labels out")
    check_new(output, overwrite=overwrite)
    check_pipeline(pipeline)

    from ..files.atomic import atomic_write
    from ..progress import ticking

    pass
    from ..search.clustering import import_kmeans
    from ..visual import render
    from ..visual.heatmap import check_counts
    from ..visual.render import check_options
    from ..visual.scatter import check_sizes

    options, shown = set_options(drawing), loading.shown
    with exit_on_error(f"Cannot draw {texts_path}"):
        docs: Doc | Iterable[Doc | Span]
        check_options(style, options | ({"labels": labels} if labels else {}))
        if sentences:
            docs = _document(pipeline, texts_path, loading)
        else:
            with ticking("Reading", shown=shown):
                texts, found = read_texts(texts_path, column=column, label=labels, limit=limit)
            options |= {} if found is None else {"labels": found}
            if style == "heatmap":
                check_counts(len(texts), len(texts), square=True)
            if clusters:
                import_kmeans()
                check_sizes(len(texts), clusters)
            docs = _docs(pipeline, texts, vectors, texts_path, column or "text", loading)
        with ticking("Drawing", shown=shown):
            if clusters:
                docs, options["labels"] = _clustered(docs, clusters, drawing.seed or 0)
            page = render(docs, cast(Any, style), page=True, jupyter=False, options=options)
        with atomic_write(output) as file:
            file.write(str(page).encode("utf8"))
    msg.good(f"Saved the picture to {output}")


def _clustered(docs: "Doc | Iterable[Doc | Span]", count: int, seed: int) -> tuple[list["Doc | Span"], list[int]]:
    """The texts of a map, and the number of the cluster of each."""
    import numpy

    from ..search import kmeans_clusters
    from ..visual.rows import as_rows, row_vector

    rows = list(as_rows(docs))
    vectors = numpy.stack([row_vector(row, number) for number, row in enumerate(rows)])
    return rows, kmeans_clusters(vectors, n_clusters=count, seed=seed).tolist()


def _document(pipeline: str, path: Path, loading: Computing) -> "Doc":
    """A whole file as one Doc."""
    from ..progress import ticking

    pass

    nlp = loading.load_answering(pipeline)
    with ticking("Encoding", shown=loading.shown):
        return nlp(read_document(path))


def _docs(
    pipeline: str, texts: Sequence[str], vectors: Path | None, corpus: Path, column: str, loading: Computing
) -> "Iterable[Doc | Span]":
    """Docs of the first texts of a file, with the vectors of the pipeline, or those that `encode` wrote."""
    from ..progress import progress_of

    if vectors is not None:
        return _with_vectors(pipeline, texts, vectors, corpus, column, loading)
    docs = loading.load_answering(pipeline).pipe(texts)
    # They are made while the picture is drawn, under the bar of which this one stands.
    return progress_of(docs, total=len(texts), desc="Encoding", unit="texts", shown=loading.shown, leave=False)


def _with_vectors(
    pipeline: str, texts: Sequence[str], path: Path, corpus: Path, column: str, loading: Computing
) -> Iterator["Doc"]:
    """Docs whose vectors are those that `encode` wrote."""
    from spacy.tokens import Doc

    from ..bulk.loading import find_pipe

    stored = vectors_of(path, corpus, column)
    pipe = find_pipe(loading.load(pipeline), loading.pipe)
    vectors = made_by(pipe, *stored)[: len(texts)]  # of all texts, if they are limited
    for text, vector in zip(texts, vectors, strict=True):
        words = re.findall(r"\w+|\W+", text)  # the language's own tokenizer is not at hand
        doc = Doc(pipe.vocab, words, [False] * len(words))
        doc.user_hooks["has_vector"] = lambda _: True
        doc.user_hooks["vector"] = lambda _, own=vector: own
        yield doc


def read_texts(
    path: Path, *, column: str | None = None, label: str | None = None, limit: NonNegative = 0
) -> tuple[list[str], list[str] | None]:
    """Read texts, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table with a header, .csv, .tsv, .jsonl, .parquet,
        or .txt if a column is named.
    column, label (str): columns of a table; by default texts are in "text". limit (int): how many to read, 0 for all.
    RETURNS (list of str, list of str or None).
    RAISES (ValueError): as table_rows.
    """
    end = limit or None
    if format_suffix(path) in TABLES or column is not None or label is not None:
        names = [column or "text", *([] if label is None else [label])]
        rows = list(islice(read_table(path, names), end))
        texts = [check_text(record[0], names[0], path, line) for line, record in rows]
        return texts, None if label is None else [check_label(record[1], label, path, line) for line, record in rows]
    return list(islice((text.strip() for _, text in read_lines(path) if text.strip()), end)), None


def read_document(path: Path) -> str:
    """The whole file as one text, in UTF-8."""
    return "".join(line for _, line in read_lines(path))
