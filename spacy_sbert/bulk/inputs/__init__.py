"""Files of texts, a reader for each format: every row of a file is one text, an empty one too."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ...files.lines import format_suffix
from ..errors import Errors
from .columns import Columns, Row
from .delimited import read_csv, read_tsv
from .jsonl import read_jsonl
from .parquet import read_parquet
from .text import read_text

READERS: dict[str, Callable[[Path, Columns], Iterator[Row]]] = {
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
    ".tsv": read_tsv,
    ".txt": read_text,
}


def reader_of(path: Path) -> Callable[[Path, Columns], Iterator[Row]]:
    """The reader of a file, by its name.

    RAISES (ValueError): for another name.
    """
    suffix = format_suffix(path)
    if suffix not in READERS or (path.suffix.lower() == ".gz" and suffix == ".parquet"):
        raise ValueError(Errors.BULK_UNKNOWN_INPUT.format(path=path, expected=", ".join(READERS)))
    return READERS[suffix]


__all__ = ["Columns", "Row", "reader_of"]
