"""What `search`, `mine` and `cluster` have in common: work on the texts of a file, and a table of what is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Argument, Option
from wasabi import msg

from .ending import check_new, or_fail, use_gpu
from .options import TEXTS, Column, Gpu, Header, Overwrite, Pipe, Quiet

Corpus = Annotated[Path, Argument(help=TEXTS, exists=True, dir_okay=False)]
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


def run(
    work: Callable[..., list[RowT]],
    pipeline: str,
    corpus: Path,
    how: How,
    output: Path | None,
    vectors: Path | None = None,
) -> list[RowT]:
    """Load the pipeline, and do the work with its pipe; errors that say what is wrong end the command."""
    from ..bulk import load_pipe
    from ..search.texts import check_output

    check_new(output, overwrite=how.overwrite)
    use_gpu(how.gpu_id)
    with or_fail(f"Cannot work on {corpus}", RuntimeError):
        if output is not None:
            check_output(output)  # before hours of work
        pipe = load_pipe(pipeline, name=how.pipe_name)
        if vectors is not None:
            work = partial(work, vectors=vectors_of(vectors, pipe, corpus, how.column, header=how.header))
        return work(pipe, corpus, progress=not how.quiet, column=how.column, header=how.header)


def vectors_of(path: Path, pipe: Any, corpus: Path, column: str, *, header: bool = True) -> Any:
    """The vectors of a file's texts, float32 (n, width), from a file that `encode` wrote of them with this pipe."""
    from ..bulk import FileVectors
    from ..files.texts import TextColumns
    from ..search.encoder import check_encoder, identify
    from ..search.stored import identity_of

    found = FileVectors(path)
    check_encoder(identity_of(found), identify(pipe), path)
    return found.of_texts(corpus, TextColumns(column, None, header))


def write(output: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    from ..search.texts import write_table

    with or_fail(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
