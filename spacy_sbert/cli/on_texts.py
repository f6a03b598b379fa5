"""What `search`, `mine` and `cluster` have in common: work on the texts of a file, and a table of what is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Argument, Option
from wasabi import msg

from .ending import check_corpus, check_new, or_fail, use_gpu
from .options import TEXTS, Column, Gpu, Header, Overwrite, Pipe, Quiet

Corpus = Annotated[Path, Argument(help=TEXTS, exists=True, dir_okay=False, callback=check_corpus)]
Table = Annotated[Path, Argument(help="The .tsv or .jsonl file to write.")]
RowT = TypeVar("RowT")


@dataclass(frozen=True)
class How:
    """Which pipe encodes which texts of the file, and where."""

    pipe: Pipe = None
    name: Annotated[str | None, Option("--name", hidden=True)] = None  # --pipe, as it was called before
    column: Column = "text"
    header: Header = True
    overwrite: Overwrite = False
    gpu_id: Gpu = -1
    quiet: Quiet = False

    @property
    def pipe_name(self) -> str | None:
        return self.name if self.pipe is None else self.pipe


def check_table(path: Path | None, *, overwrite: bool) -> None:
    """End the command, before any work, where the table of what is found could not be written."""
    from ..files.result_tables import check_name

    check_new(path, overwrite=overwrite)
    if path is not None:
        with or_fail(f"Cannot write {path}"):
            check_name(path)


def run(
    work: Callable[..., list[RowT]], pipeline: str, corpus: Path, how: How, vectors: Path | None = None
) -> list[RowT]:
    """Load the pipeline, and do the work with its pipe; errors that say what is wrong end the command."""
    from ..errors.progress import ticking

    use_gpu(how.gpu_id)
    with or_fail(f"Cannot take the vectors in {vectors}"):
        stored = None if vectors is None else vectors_of(vectors, corpus, how.column, header=how.header)
    with or_fail(f"Cannot load {pipeline}", RuntimeError), ticking("Loading", shown=not how.quiet):
        from ..bulk import load_pipe

        pipe = load_pipe(pipeline, name=how.pipe_name)
    with or_fail(f"Cannot work on {corpus}", RuntimeError):
        if stored is not None:
            work = partial(work, vectors=made_by(pipe, *stored))
        return work(pipe, corpus, progress=not how.quiet, column=how.column, header=how.header)


def vectors_of(path: Path, corpus: Path, column: str, *, header: bool = True) -> tuple[Any, Any]:
    """A file that `encode` wrote, and the vectors of a file's texts in it, float32 (n, width)."""
    from ..bulk import FileVectors
    from ..files.texts import TextColumns

    found = FileVectors(path)
    return found, found.of_texts(corpus, TextColumns(column, None, header))


def made_by(pipe: Any, found: Any, vectors: Any) -> Any:
    """The vectors of vectors_of. RAISES (ValueError): if another encoder made them."""
    from ..search.encoder import check_encoder, identify
    from ..search.stored import identity_of

    check_encoder(identity_of(found), identify(pipe), found.path)
    return vectors


def write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    """Write a table of what was found."""
    from ..files.result_tables import write_table

    with or_fail(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
