"""A file of texts, and whether it is still the one that a run began with."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from ..files.digests import file_digest
from ..files.texts import TextColumns, TextRow, read_text_rows
from .errors import Errors

IdType = Literal["int64", "string"] | None


@dataclass(frozen=True)
class Contents:
    """What a file holds. rows: how many. id_type: "int64" or "string", of all ids; None where none is read."""

    rows: int
    id_type: IdType


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

    def check_contents(self, *, progress: bool) -> Contents:
        """Read the whole file once: a bad row is found before any work is done.

        RAISES (ValueError): for a bad row, or ids that are not of one type.
        """
        rows = 0
        id_types: set[IdType] = set()
        for row in tqdm(self.rows(), desc="Reading", unit=" rows", disable=not progress):
            rows += 1
            id_types.add(None if row.id is None else "int64" if isinstance(row.id, int) else "string")
        if len(id_types) > 1:
            raise ValueError(Errors.BULK_MIXED_IDS.format(path=self.path, column=self.columns.id))
        return Contents(rows, next(iter(id_types), None))

    def check_unchanged(self) -> None:
        """RAISES (ValueError): if the file was written to since this was made."""
        if _stamp(self.path) != self._seen:
            raise ValueError(Errors.BULK_INPUT_CHANGED.format(path=self.path))


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino
