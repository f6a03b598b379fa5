"""`python -m spacy sbert visualize`: a heat map of similarity, or a map of a collection."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option
from wasabi import msg

from .ending import check_new, fail, or_fail, use_gpu
from .group import app
from .options import Gpu, Limit, Overwrite, Pipeline, Seed, Vectors, given, takes_options
from .search import vectors_of

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass(frozen=True)
class Drawing:
    """How a picture is drawn; None as its style has it."""

    projection: Annotated[str | None, Option("--projection", help="How a map is projected: pca or tsne.")] = None
    seed: Seed = None
    low: Annotated[float | None, Option("--low", help="The similarity of the first colour of a heat map.")] = None
    high: Annotated[float | None, Option("--high", help="The similarity of the last colour of a heat map.")] = None
    title: Annotated[str | None, Option("--title", "-t", help="The title above the picture.")] = None


@app.command("visualize")
@takes_options
def visualize_cli(
    pipeline: Pipeline,
    texts_path: Annotated[
        Path, Argument(help="The file of texts: one a line, or a table.", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, Argument(help="The HTML file to write.", dir_okay=False)],
    style: Annotated[str, Option("--style", "-s", help="The kind of picture: heatmap or map.")] = "heatmap",
    sentences: Annotated[
        bool, Option("--sentences", help="Take the file as one text, and draw its sentences.")
    ] = False,
    column: Annotated[str | None, Option("--column", "-c", help="The column or JSON field of the texts.")] = None,
    labels: Annotated[str | None, Option("--labels", "-l", help="The column of a table that colours a map.")] = None,
    limit: Limit = 0,
    vectors: Vectors = None,
    overwrite: Overwrite = False,
    gpu_id: Gpu = -1,
    *,
    drawing: Drawing,
) -> None:
    """Draw a heat map or a map of texts.

    A heat map shows the similarity of every two of them, and a map has a point for each. The picture is one HTML file.
    """
    import spacy

    from ..files.whole import whole_file
    from ..readers.texts import read_document, read_texts
    from ..visual import render

    if sentences and (column or labels or limit or vectors):
        fail("--sentences draws one whole text: leave --column, --labels, --limit and --vectors out")
    check_new(output, overwrite=overwrite)
    use_gpu(gpu_id)
    options = given(drawing)
    with or_fail(f"Cannot draw {texts_path}"):
        docs: Doc | Iterable[Doc]
        if sentences:
            docs = spacy.load(pipeline)(read_document(texts_path))
        else:
            texts, found = read_texts(texts_path, column=column, label=labels, limit=limit)
            options |= {} if found is None else {"labels": found}
            if vectors is None:
                docs = spacy.load(pipeline).pipe(texts)
            else:
                docs = _with_vectors(pipeline, texts, vectors, texts_path, column or "text")
        page = render(docs, style, page=True, jupyter=False, options=options)
        with whole_file(output) as file:
            file.write(str(page).encode("utf8"))
    msg.good(f"Saved the picture to {output}")


def _with_vectors(pipeline: str, texts: Sequence[str], path: Path, corpus: Path, column: str) -> Iterator["Doc"]:
    """Docs of the first texts of a file, a word each, whose vectors are those that `encode` wrote."""
    from spacy.tokens import Doc

    from ..bulk import load_pipe

    pipe = load_pipe(pipeline)
    vectors = vectors_of(path, pipe, corpus, column)[: len(texts)]  # of all texts, if they are limited
    for text, vector in zip(texts, vectors, strict=True):
        doc = Doc(pipe.vocab, [text], [False])
        doc.user_hooks["has_vector"] = lambda _: True
        doc.user_hooks["vector"] = lambda _, own=vector: own
        yield doc
