"""What `search`, `mine` and `cluster` have in common: work on the texts of a file, and a table of what is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument
from wasabi import msg

from ._util import Computing, check_corpus, check_new, check_pipeline, exit_on_error
from .options import COLUMN, TEXTS, Column, Header, IdColumn, Overwrite

Corpus = Annotated[Path, Argument(help=TEXTS, exists=True, dir_okay=False, callback=check_corpus)]
Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.")]


@dataclass(frozen=True)
class How(Computing):
    """Which pipe encodes which texts of the file, and where."""

    column: Column = None
    id_column: IdColumn = None
    header: Header = True
    overwrite: Overwrite = False


def check_table(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where the table of what is found could not be written."""
    from ..files.tables import check_name

    check_new(path, overwrite=overwrite)
    if path is not None:
        with exit_on_error(f"Cannot write {path}"):
            check_name(path)


@dataclass(frozen=True)
class Worked:
    """What a command found, and with what: the pipeline, and the texts of the file, None of a folder."""

    rows: Any
    nlp: Any
    read: Any


def run(
    work: Callable[..., Any],
    pipeline: str,
    corpus: Path,
    how: How,
    vectors: Path | None = None,
    *,
    others: bool = False,
) -> Worked:
    """Read the texts, load the pipeline, and do the work with its pipe; errors end the command.

    others (bool): whether the other columns of a table are read, too.
    """
    check_pipeline(pipeline)
    column = how.column or COLUMN

    from ..search.corpus import read_corpus

    with exit_on_error(f"Cannot take the vectors in {vectors}"):
        stored = None if vectors is None else vectors_of(vectors, corpus, column, header=how.header)
    settings: dict[str, Any] = {"progress": how.shown}
    with exit_on_error(f"Cannot work on {corpus}"):
        if not corpus.is_dir():
            settings["read"] = read_corpus(
                corpus,
                column,
                id_column=how.id_column,
                header=how.header,
                others=others,
                progress=how.shown,
            )
    nlp = how.load(pipeline)
    with exit_on_error(f"Cannot work on {corpus}", RuntimeError):
        from ..bulk.loading import find_pipe

        pipe = find_pipe(nlp, how.pipe)
        if stored is not None:
            settings["vectors"] = made_by(pipe, *stored)
        return Worked(work(pipe, corpus, **settings), nlp, settings.get("read"))


def with_ids(rows: Sequence[tuple[Any, ...]], read: Any, *places: int) -> list[tuple[Any, ...]]:
    """Return results with the ids of their texts, if the file has some.

    rows: results. read (Corpus): the texts. places (int): where the numbers of their rows are; ids follow the last.
    """
    if read is None or read.ids is None:
        return list(rows)
    ids = dict(zip(read.rows, read.ids, strict=True))
    end = places[-1] + 1
    return [(*row[:end], *(ids[row[place]] for place in places), *row[end:]) for row in rows]


def vectors_of(path: Path, corpus: Path, column: str, *, header: bool = True) -> tuple[Any, Any]:
    """A file that `encode` wrote, and the vectors of a file's texts in it, float32 (n, width)."""
    from ..bulk import FileVectors
    from ..files.tables import TextColumns

    found = FileVectors(path)
    return found, found.of_texts(corpus, TextColumns(column, None, header))


def made_by(pipe: Any, found: Any, vectors: Any) -> Any:
    """The vectors of vectors_of. RAISES (ValueError): if another encoder made them."""
    from ..search.memory_mapped import check_encoder, identify, identity_of

    check_encoder(identity_of(found), identify(pipe), found.path)
    return vectors


def write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    """Write a table of what was found."""
    from ..files.tables import write_table

    with exit_on_error(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
