"""Shared parts of `search`, `mine` and `cluster`: they work on the texts of a file, and write a table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument
from wasabi import msg

from ._util import check_corpus, check_new, check_pipeline, exit_on_error, load
from .options import COLUMN, TEXTS

if TYPE_CHECKING:
    import numpy

    from ..bulk import FileVectors
    from ..pipeline.sbert import SentenceBert
    from ..search.corpus_search import Corpus as Texts

Corpus = Annotated[Path, Argument(help=TEXTS, exists=True, dir_okay=False, callback=check_corpus)]
Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.")]


def check_table(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where the table of what is found could not be written."""
    from ..files.tables import check_name

    check_new(path, overwrite=overwrite)
    if path is not None:
        with exit_on_error(f"Cannot write {path}"):
            check_name(path)


def run(
    work: Callable[..., Any],
    pipeline: str,
    corpus: Path,
    *,
    pipe: str | None,
    code: Path | None,
    quiet: bool,
    gpu_id: int,
    column: str | None,
    id_column: str | None,
    header: bool,
    vectors: Path | None = None,
    others: bool = False,
) -> tuple[Any, Any, Any]:
    """Read the texts, load the pipeline, and do the work with its pipe; errors end the command.

    vectors (Path): stored vectors of the texts. others (bool): whether the other columns of a table are read, too.
    RETURNS (tuple): what the work returns, the pipeline, and the texts of the file, None for a folder.
    """
    check_pipeline(pipeline)
    column = column or COLUMN

    from ..search.corpus_search import read_corpus

    with exit_on_error(f"Cannot take the vectors in {vectors}"):
        stored = None if vectors is None else vectors_of(vectors, corpus, column, header=header)
    settings: dict[str, Any] = {"progress": not quiet}
    with exit_on_error(f"Cannot work on {corpus}"):
        if not corpus.is_dir():
            settings["read"] = read_corpus(
                corpus, column, id_column=id_column, header=header, others=others, progress=not quiet
            )
    nlp = load(pipeline, pipe, code, quiet=quiet, gpu_id=gpu_id)
    with exit_on_error(f"Cannot work on {corpus}", RuntimeError):
        from ..bulk.loading import find_pipe

        encoder = find_pipe(nlp, pipe)
        if stored is not None:
            settings["vectors"] = check_vectors(encoder, *stored)
        return work(encoder, corpus, **settings), nlp, settings.get("read")


def with_ids(rows: Sequence[tuple[Any, ...]], read: "Texts | None", *places: int) -> list[tuple[Any, ...]]:
    """Return results with the ids of their texts, if the file has some.

    rows: results. read (Corpus): the texts. places (int): where the numbers of their rows are; ids follow the last.
    """
    if read is None or read.ids is None:
        return list(rows)
    ids = dict(zip(read.rows, read.ids, strict=True))
    end = places[-1] + 1
    return [(*row[:end], *(ids[row[place]] for place in places), *row[end:]) for row in rows]


def vectors_of(path: Path, corpus: Path, column: str, *, header: bool = True) -> "tuple[FileVectors, numpy.ndarray]":
    """Return a file that `encode` wrote, and the vectors of a file's texts in it, float32 (n, width)."""
    from ..bulk import FileVectors
    from ..files.tables import TextColumns

    file = FileVectors(path)
    return file, file.of_texts(corpus, TextColumns(column, None, header))


def check_vectors(pipe: "SentenceBert", file: "FileVectors", vectors: "numpy.ndarray") -> "numpy.ndarray":
    """Return the vectors of vectors_of. RAISES (ValueError): if another encoder made them."""
    from ..search.encoder_identity import EncoderIdentity, check_encoder, identify

    check_encoder(EncoderIdentity.of(file), identify(pipe), file.path)
    return vectors


def write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    """Write a table of what was found."""
    from ..files.tables import write_table

    with exit_on_error(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
