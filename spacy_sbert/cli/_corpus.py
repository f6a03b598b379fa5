"""What commands over a file of texts share: its texts and vectors, an encoder, and their output."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.language import Language
from wasabi import msg

from ..files.tables import COLUMN, TextColumns, check_table_name, write_table
from ._util import check_new, exit_on_error
from .options import ColumnOptions

if TYPE_CHECKING:
    from ..pipeline.sbert import SentenceBert
    from ..search.texts import Corpus as Texts
    from ..search.texts import TextVectors


def check_corpus_paths(
    corpus: Path, columns: ColumnOptions, output: Path | None, *inputs: Path | None, overwrite: bool
) -> None:
    """End the command, before any work, if the output cannot be written or columns not read."""
    check_new(output, corpus, *inputs, overwrite=overwrite)
    if output is not None:
        with exit_on_error(f"Cannot write {output}"):
            check_table_name(output)
    columns.check(corpus)


def read_with_vectors(
    path: Path, columns: ColumnOptions, vectors: Path | None, *, shown: bool, others: bool = False
) -> "tuple[Texts, TextVectors | None]":
    """Return the texts of a file, and the vectors that `encode` wrote of them, if given.

    others (bool): whether to read the other columns of a table, too.
    """
    from ..search.texts import TextVectors, read_corpus

    column = columns.column or COLUMN
    stored = None
    if vectors is not None:
        with exit_on_error(f"Cannot take the vectors in {vectors}"):
            stored = TextVectors(vectors, path, TextColumns(column, header=columns.header))
    with exit_on_error(f"Cannot work on {path}"):
        texts = read_corpus(
            path,
            column,
            id_column=columns.id_column,
            header=columns.header,
            others=others,
            progress=shown,
        )
    return texts, stored


@contextmanager
def encoder_for(corpus: Path, nlp: Language, pipe: str | None) -> "Iterator[SentenceBert]":
    """Yield the pipe that encodes texts. Errors of the block end the command."""
    from ..bulk.loading import find_pipe

    with exit_on_error(f"Cannot work on {corpus}", RuntimeError):
        yield find_pipe(nlp, pipe)


def write_rows(output: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table of what was found."""
    with exit_on_error(f"Cannot write {output}"):
        write_table(output, names, rows)
    msg.good(f"Wrote {len(rows)} rows to {output}")
