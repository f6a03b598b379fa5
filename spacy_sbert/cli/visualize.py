"""`python -m spacy sbert visualize`: a heat map of similarity, of texts or tokens, or a map of a collection."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from spacy.language import Language
from spacy.tokens import Doc, Span
from typer import Argument, Option
from wasabi import msg

from ..files.atomic import atomic_write
from ..files.tables import TABLES, read_table
from ..files.text_lines import check_cell, check_label, format_suffix, read_lines
from ..progress import progress_of, ticking
from ..validation import NonNegative
from ._util import check_new, command, exit_on_error, fail, named_file
from .options import (
    COLUMN,
    Corpus,
    HasHeader,
    Limit,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    Seed,
    TextColumn,
    Vectors,
    warn_of_unread_texts,
    without_none,
)
from .search import check_vectors, vectors_of

if TYPE_CHECKING:
    import numpy

    from ..bulk import FileVectors


@dataclass
class _Options:
    """The options of pictures."""

    projection: Annotated[
        str | None, Option(help="Of a map: pca or tsne, the default with scikit-learn.")
    ] = None
    seed: Seed = None
    terms: Annotated[
        bool | None, Option("--terms/--no-terms", help="Name labels by the words of their texts.")
    ] = None
    order: Annotated[
        str | None, Option("--order", help="The order of a heat map: similarity or given.")
    ] = None
    low: Annotated[float | None, Option("--low", help="The similarity of the first colour.")] = None
    high: Annotated[float | None, Option("--high", help="The similarity of the last colour.")] = (
        None
    )
    title: Annotated[str | None, Option("--title", "-t", help="The title above the picture.")] = (
        None
    )


@command("visualize")
def _visualize_cli(
    pipeline: Pipeline,
    texts_path: Corpus,
    output: Annotated[Path, Argument(help="The HTML file to write.", parser=named_file)],
    loading: LoadingOnGpu,
    options: _Options,
    style: Annotated[
        str, Option("--style", "-s", help="The kind of picture: heatmap, map or tokens.")
    ] = "heatmap",
    sentences: Annotated[
        bool, Option("--sentences", help="Draw the sentences of the file, as one text.")
    ] = False,
    column: TextColumn = None,
    header: HasHeader = True,
    labels: Annotated[
        str | None, Option("--labels", "-l", help="The column of a table that colours a map.")
    ] = None,
    clusters: Annotated[
        int, Option(help="Label a map by so many clusters, by k-means.", min=0)
    ] = 0,
    limit: Limit = 0,
    vectors: Vectors = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw a heat map, a map or tokens of texts.

    A heat map shows the similarity of every two texts, a map has a point for each, and "tokens"
    compares the tokens of two texts. The picture is one HTML file.
    """
    if sentences and (column or labels or limit or vectors or not header):
        fail(
            "--sentences draws one whole text: leave --column, --no-header, --labels, --limit and "
            "--vectors out"
        )
    if clusters and (labels or style != "map"):
        fail(
            "--clusters finds the labels of a map: use it with --style map, and leave --labels out"
        )
    check_new(output, texts_path, vectors, overwrite=overwrite)

    from ..search.clustering import import_kmeans, kmeans_clusters
    from ..visual import check_options, render
    from ..visual.page import as_rows, row_vector

    shown, given = not loading.quiet, without_none(**vars(options))
    with exit_on_error(f"Cannot draw {texts_path}"):
        check_options(style, given | ({"labels": labels} if labels else {}))
        docs: Doc | Iterable[Doc | Span]
        if sentences:
            nlp = loading.load(pipeline, answering=True)
            with ticking("Encoding", shown=shown):
                docs = nlp("".join(line for _, line in read_lines(texts_path)))
        else:
            if column is None:
                warn_of_unread_texts(texts_path)
            with ticking("Reading", shown=shown):
                texts, found = read_texts(
                    texts_path, column=column, label=labels, limit=limit, header=header
                )
            given |= {} if found is None else {"labels": found}
            check_options(style, given, n_texts=len(texts))
            if clusters:
                import_kmeans()
            nlp = loading.load(pipeline, answering=vectors is None)
            if vectors is not None:
                docs = _with_vectors(
                    nlp,
                    loading.pipe,
                    texts,
                    vectors_of(vectors, texts_path, column or COLUMN, header=header),
                )
            else:
                docs = nlp.pipe(texts)
                docs = progress_of(
                    docs, total=len(texts), desc="Encoding", unit="texts", shown=shown, leave=False
                )
        with ticking("Drawing", shown=shown):
            if clusters:
                docs = list(as_rows(docs))
                rows = list(map(row_vector, docs, count()))
                given["labels"] = kmeans_clusters(
                    rows, n_clusters=clusters, seed=given.get("seed", 0)
                ).tolist()
            page = render(docs, cast(Any, style), page=True, jupyter=False, options=given)
        with atomic_write(output) as file:
            file.write(cast(str, page).encode("utf8"))
    msg.good(f"Saved the picture to {output}")


def _with_vectors(
    nlp: Language,
    name: str | None,
    texts: Sequence[str],
    stored: "tuple[FileVectors, numpy.ndarray]",
) -> Iterator[Doc]:
    """Yield Docs whose vectors are those that `encode` wrote."""
    from ..bulk.loading import find_pipe

    pipe = find_pipe(nlp, name)
    # Of all texts, if they are limited
    vectors = check_vectors(pipe, *stored)[: len(texts)]
    for text, vector in zip(texts, vectors, strict=True):
        # The language's own tokenizer is not at hand
        words = re.findall(r"\w+|\W+", text)
        doc = Doc(pipe.vocab, words, [False] * len(words))
        doc.user_hooks["has_vector"] = lambda _: True
        doc.user_hooks["vector"] = lambda _, vector=vector: vector
        yield doc


def read_texts(
    path: Path,
    *,
    column: str | None = None,
    label: str | None = None,
    limit: NonNegative = 0,
    header: bool = True,
) -> tuple[list[str], list[str] | None]:
    """Read texts, and their labels if a column is named for them.

    path (Path): one text a line, blank lines left out; or a table, of which column and label are
        names.
    limit (int): how many to read, 0 for all. header (bool), RAISES (ValueError): as read_table.
    """
    end = limit or None
    if format_suffix(path) in TABLES or column is not None or label is not None or not header:
        names = [column or "text", *([] if label is None else [label])]
        rows = list(islice(read_table(path, names, header=header), end))
        texts = [check_cell(record[0], names[0], path, line) for line, record in rows]
        return texts, None if label is None else [
            check_label(record[1], label, path, line) for line, record in rows
        ]
    return list(islice((text.strip() for _, text in read_lines(path) if text.strip()), end)), None
