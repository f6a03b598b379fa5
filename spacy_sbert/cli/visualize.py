"""`python -m spacy sbert visualize`: a heat map of similarity, of texts or tokens, or a map of a collection."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option
from wasabi import msg

from ..files.tables import TABLES, read_table
from ..files.text_lines import check_label, check_text, format_suffix, read_lines
from ..validation import NonNegative
from ._util import app, check_corpus, check_new, check_pipeline, exit_on_error, fail, load, load_answering
from .corpus_options import check_vectors, vectors_of
from .options import Code, Gpu, Limit, Overwrite, Pipe, Pipeline, Quiet, Seed, Vectors, without_none

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


_Projection = Annotated[
    str | None,
    Option("--projection", help="How a map is projected: pca or tsne. By default tsne, if scikit-learn is installed."),
]
_Terms = Annotated[
    bool | None, Option("--terms/--no-terms", help="Name the labels of a map by the words of their texts.")
]
_Order = Annotated[str | None, Option("--order", help="The order of a heat map: similarity or given.")]
_Low = Annotated[float | None, Option("--low", help="The similarity of the first colour.")]
_High = Annotated[float | None, Option("--high", help="The similarity of the last colour.")]
_Title = Annotated[str | None, Option("--title", "-t", help="The title above the picture.")]


@app.command("visualize")
def _visualize_cli(
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
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: Gpu = -1,
    projection: _Projection = None,
    seed: Seed = None,
    terms: _Terms = None,
    order: _Order = None,
    low: _Low = None,
    high: _High = None,
    title: _Title = None,
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

    from ..visual import check_options

    options = without_none(projection=projection, seed=seed, terms=terms, order=order, low=low, high=high, title=title)
    with exit_on_error(f"Cannot draw {texts_path}"):
        check_options(style, options | ({"labels": labels} if labels else {}))
        texts: list[str] | None = None
        if not sentences:
            texts, found = _read(texts_path, column, labels, limit, clusters, style, shown=not quiet)
            options |= {} if found is None else {"labels": found}
        if vectors is None:
            nlp = load_answering(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id)
            docs = _encode(nlp, texts_path, texts, shown=not quiet)
        else:
            nlp = load(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id)
            docs = _with_vectors(nlp, pipe, texts or [], vectors, texts_path, column or "text")
        _draw(docs, output, style, clusters, options, shown=not quiet)
    msg.good(f"Saved the picture to {output}")


def _read(
    path: Path, column: str | None, label: str | None, limit: int, clusters: int, style: str, *, shown: bool
) -> tuple[list[str], list[str] | None]:
    """Read the texts of a picture and their labels, and check their number."""
    from ..progress import ticking
    from ..search.clustering import import_kmeans
    from ..visual.heatmap import check_counts
    from ..visual.scatter import check_sizes

    with ticking("Reading", shown=shown):
        texts, labels = read_texts(path, column=column, label=label, limit=limit)
    if style == "heatmap":
        check_counts(len(texts), len(texts), square=True)
    if clusters:
        import_kmeans()
        check_sizes(len(texts), clusters)
    return texts, labels


def _encode(nlp: "Language", path: Path, texts: list[str] | None, *, shown: bool) -> "Doc | Iterable[Doc]":
    """Return Docs of texts, which are made while the picture is drawn; without texts the whole file as one Doc."""
    from ..progress import progress_of, ticking

    if texts is None:
        with ticking("Encoding", shown=shown):
            return nlp("".join(line for _, line in read_lines(path)))
    return progress_of(nlp.pipe(texts), total=len(texts), desc="Encoding", unit="texts", shown=shown, leave=False)


def _draw(
    docs: "Doc | Iterable[Doc]", output: Path, style: str, clusters: int, options: dict[str, Any], *, shown: bool
) -> None:
    """Draw the picture and write it."""
    from ..files.atomic import atomic_write
    from ..progress import ticking
    from ..visual import render
    from ..visual.page import as_rows, row_vector

    with ticking("Drawing", shown=shown):
        if clusters:
            from ..search import kmeans_clusters

            docs = cast("list[Doc]", list(as_rows(docs)))
            vectors = [row_vector(doc, number) for number, doc in enumerate(docs)]
            found = kmeans_clusters(vectors, n_clusters=clusters, seed=options.get("seed", 0))
            options["labels"] = found.tolist()
        page = render(docs, cast(Any, style), page=True, jupyter=False, options=options)
    with atomic_write(output) as file:
        file.write(page.encode("utf8"))


def _with_vectors(
    nlp: "Language", name: str | None, texts: Sequence[str], path: Path, corpus: Path, column: str
) -> Iterator["Doc"]:
    """Yield Docs whose vectors are those that `encode` wrote."""
    from spacy.tokens import Doc

    from ..bulk.loading import find_pipe

    pipe = find_pipe(nlp, name)
    vectors = check_vectors(pipe, *vectors_of(path, corpus, column))[: len(texts)]  # of all texts, if they are limited
    for text, vector in zip(texts, vectors, strict=True):
        words = re.findall(r"\w+|\W+", text)  # the language's own tokenizer is not at hand
        doc = Doc(pipe.vocab, words, [False] * len(words))
        doc.user_hooks["has_vector"] = lambda _: True
        doc.user_hooks["vector"] = lambda _, vector=vector: vector
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
