"""`python -m spacy sbert visualize`: heat maps of texts or tokens, and maps of collections."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from typer import Argument, Option
from wasabi import msg

from ..files.atomic import write_text
from ..files.tables import COLUMN, TextColumns, read_texts
from ..files.text_lines import read_lines
from ..progress import progress_of, ticking
from ._util import check_new, command, exit_on_error, fail, named_file
from .options import (
    CorpusPath,
    HasHeader,
    Limit,
    LoadingOnGpu,
    Overwrite,
    Pipeline,
    SeedOption,
    TextColumn,
    Vectors,
    warn_of_unread_texts,
    without_none,
)

if TYPE_CHECKING:
    import numpy

    from ..search.texts import TextVectors


@dataclass
class _Texts:
    """The texts that are drawn, and what is known of them."""

    column: TextColumn = None
    header: HasHeader = True
    labels: Annotated[
        str | None, Option("--labels", "-l", help="The column of a table that colours a map.")
    ] = None
    limit: Limit = 0
    vectors: Vectors = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return self != _Texts()

    def load_vectors(self, path: Path) -> "TextVectors":
        """Read the vectors that `encode` wrote of the texts of a file."""
        from ..search.texts import TextVectors

        columns = TextColumns(self.column or COLUMN, header=self.header)
        return TextVectors(cast(Path, self.vectors), path, columns)


@dataclass
class _Options:
    """The options of pictures."""

    projection: Annotated[
        str | None, Option(help="Of a map: pca or tsne, the default with scikit-learn.")
    ] = None
    seed: SeedOption = None
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
    texts_path: CorpusPath,
    output: Annotated[Path, Argument(help="The HTML file to write.", parser=named_file)],
    loading: LoadingOnGpu,
    source: _Texts,
    options: _Options,
    style: Annotated[
        str, Option("--style", "-s", help="The kind of picture: heatmap, map or tokens.")
    ] = "heatmap",
    sentences: Annotated[
        bool, Option("--sentences", help="Draw the sentences of the file, as one text.")
    ] = False,
    clusters: Annotated[
        int, Option(help="Label a map by so many clusters, by k-means.", min=0)
    ] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Draw a heat map, a map or tokens of texts.

    A heat map shows the similarity of every two texts, a map has a point for each, and "tokens"
    compares the tokens of two texts. The picture is one HTML file.
    """
    _check_options(style, source, sentences=sentences, clusters=clusters)
    check_new(output, texts_path, source.vectors, overwrite=overwrite)

    from ..search.clustering import import_kmeans
    from ..visual import check_options, render

    given = without_none(**vars(options))
    with exit_on_error(f"Cannot draw {texts_path}"):
        check_options(style, {**given, **without_none(labels=source.labels)})
        if clusters:
            import_kmeans()
        docs: Doc | Iterable[Doc | Span]
        if sentences:
            docs = _sentences(texts_path, loading, pipeline)
        else:
            texts, labels = _read(texts_path, source, shown=loading.shown)
            given |= without_none(labels=labels)
            check_options(style, given, n_texts=len(texts))
            docs = _docs(texts, texts_path, source, loading, pipeline)
        with ticking("Drawing", shown=loading.shown):
            if clusters:
                docs, given["labels"] = _clustered(docs, clusters, given.get("seed", 0))
            page = render(docs, cast(Any, style), page=True, jupyter=False, options=given)
        write_text(output, cast(str, page))
    msg.good(f"Saved the picture to {output}")


def _check_options(style: str, source: _Texts, *, sentences: bool, clusters: int) -> None:
    """End the command if options do not fit together."""
    if sentences and source.is_given:
        fail(
            "--sentences draws one whole text: leave --column, --no-header, --labels, --limit and "
            "--vectors out"
        )
    if clusters and (source.labels or style != "map"):
        fail(
            "--clusters finds the labels of a map: use it with --style map, and leave --labels out"
        )


def _read(path: Path, source: _Texts, *, shown: bool) -> tuple[list[str], list[str] | None]:
    """Return the texts of a file, and their labels if a column is named for them."""
    if source.column is None:
        warn_of_unread_texts(path)
    with ticking("Reading", shown=shown):
        return read_texts(
            path,
            column=source.column,
            label=source.labels,
            limit=source.limit,
            header=source.header,
        )


def _sentences(path: Path, loading: LoadingOnGpu, pipeline: str) -> Doc:
    """Return a file as one text, whose sentences are drawn."""
    nlp = loading.load(pipeline, answering=True)
    with ticking("Encoding", shown=loading.shown):
        return nlp("".join(line for _, line in read_lines(path)))


def _docs(
    texts: Sequence[str], path: Path, source: _Texts, loading: LoadingOnGpu, pipeline: str
) -> Iterable[Doc]:
    """Return Docs of the texts of a file, with the given vectors or those of the pipeline."""
    if source.vectors is not None:
        stored = source.load_vectors(path)
        return _with_vectors(texts, loading, pipeline, stored)
    docs = loading.load(pipeline, answering=True).pipe(texts)
    return progress_of(
        docs, total=len(texts), desc="Encoding", unit="texts", shown=loading.shown, leave=False
    )


def _with_vectors(
    texts: Sequence[str], loading: LoadingOnGpu, pipeline: str, stored: "TextVectors"
) -> Iterator[Doc]:
    """Return Docs whose vectors are those that `encode` wrote."""
    from ..bulk.loading import find_pipe

    pipe = find_pipe(loading.load(pipeline), loading.pipe)
    # They are of all texts of the file, of which the first were read
    return _docs_of(texts, stored.by(pipe)[: len(texts)], pipe.vocab)


def _docs_of(texts: Sequence[str], vectors: "numpy.ndarray", vocab: Vocab) -> Iterator[Doc]:
    for text, vector in zip(texts, vectors, strict=True):
        # The language's own tokenizer is not at hand
        words = re.findall(r"\w+|\W+", text)
        doc = Doc(vocab, words, [False] * len(words))
        doc.user_hooks["has_vector"] = lambda _: True
        doc.user_hooks["vector"] = lambda _, vector=vector: vector
        yield doc


def _clustered(
    docs: Doc | Iterable[Doc | Span], n_clusters: int, seed: int
) -> tuple[list[Doc | Span], list[int]]:
    """Return the texts that are drawn, and the cluster of each."""
    from ..search.clustering import kmeans_clusters
    from ..visual.page import row_vector, texts_to_draw

    rows = list(texts_to_draw(docs))
    vectors = [row_vector(row, number) for number, row in enumerate(rows)]
    return rows, kmeans_clusters(vectors, n_clusters=n_clusters, seed=seed).tolist()
