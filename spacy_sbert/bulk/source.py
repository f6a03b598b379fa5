"""A file of texts, and whether it is still the one that a run began with."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ..errors.progress import progress_of
from ..files.digests import file_digest
from ..files.texts import TextColumns, TextRow, read_text_rows
from .errors import Errors

IdType = Literal["int64", "string"] | None


class Source:
    """The rows of a file, read as often as needed.

    path (Path): the file, whose name tells its format. columns (TextColumns): what is read of it.
    sha256: of its bytes, as it was made.
    RAISES (OSError, ValueError): if it cannot be read, is not a file, or its name tells no format.
    """

    def __init__(self, path: Path, columns: TextColumns):
        self.path = path
        self.columns = columns
        self.rows()  # which refuses a name that tells no format
        self._seen = _stamp(path)
        self.sha256 = file_digest(path)

    def rows(self) -> Iterator[TextRow]:
        """RAISES (ValueError): for a bad row; the message names file and line."""
        return read_text_rows(self.path, self.columns)

    def check_contents(self, *, progress: bool) -> tuple[int, IdType]:
        """Read the whole file once: a bad row is found before any work is done.

        RETURNS (int, str): how many rows there are, and the type of all ids; None where none is read.
        RAISES (ValueError): for a bad row, or ids that are not of one type.
        """
        counts: Counter[IdType] = Counter(
            None if row.id is None else "int64" if isinstance(row.id, int) else "string"
            for row in progress_of(self.rows(), desc="Reading", unit="rows", shown=progress)
        )
        if len(counts) > 1:
            raise ValueError(Errors.BULK_MIXED_IDS.format(path=self.path, column=self.columns.id))
        return counts.total(), next(iter(counts), None)

    def check_unchanged(self) -> None:
        """RAISES (ValueError): if the file was written to since this was made."""
        if _stamp(self.path) != self._seen:
            raise ValueError(Errors.BULK_INPUT_CHANGED.format(path=self.path))


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino
