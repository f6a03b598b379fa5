"""Where the official data sets lie, how many examples they have, and where to get them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy

from ..files.digests import file_digest
from .errors import Errors

Row = TypeVar("Row")

# Folders inside the one that was given: beside each other, or as SentEval has them.
PREFIXES = tuple(
    "/".join(part for part in (base, folder) if part)
    for base in ("", "senteval", "data", "senteval/data")
    for folder in ("", "sts", "STS", "nli", "argument", "probing", "downstream", "downstream/STS")
)


class MissingData(Exception):
    """A data set is not there: its task is listed as skipped, with the reason, and the others run."""


@dataclass(frozen=True)
class Place:
    """Where a data set is looked for, and where it comes from.

    names: folders or files, below the given folder or one of PREFIXES; the first that is there counts.
    source: who publishes it, an address.
    """

    names: tuple[str, ...]
    source: str

    def found(self, root: Path) -> Path | None:
        """The first of the names that is there; None if none is."""
        paths = (root / prefix / name for name in self.names for prefix in PREFIXES)
        return next((path for path in paths if path.exists()), None)

    def find(self, root: Path) -> Path:
        """The first of the names that is there. RAISES (MissingData): if none is."""
        return self.found(root) or self.refuse(self.names[0], root)

    def refuse(self, name: str | Path, root: Path) -> NoReturn:
        """RAISES (MissingData): says what is not below the root, and where to get it."""
        raise MissingData(Errors.MISSING_DATA.format(names=name, root=root, source=self.source))


def check_count(given: int, official: int | None, path: Path, any_count: bool) -> list[str]:
    """Refuse a data set that is not whole, or note it where any number will do.

    RETURNS (list of str): notes for the result.
    RAISES (ValueError): if the number of examples is not the official one, and must be.
    """
    if official is None or given == official:
        return []
    if not any_count:
        raise ValueError(Errors.NOT_OFFICIAL.format(path=path, given=given, official=official))
    said = f"{path.name}: {given:,} examples, where the official data set has {official:,}"
    return [f"{said}: cannot be compared with published figures."]


def filled(rows: Iterable[Row], path: Path) -> list[Row]:
    """What is read of a file. RAISES (ValueError): if it is empty."""
    found = list(rows)
    if not found:
        raise ValueError(Errors.NO_PAIRS.format(path=path, expected="one example per line"))
    return found


def indices_by_name(names: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Where each name stands, int (n,) each, in the order in which they first occur."""
    each = numpy.array(names)
    return {name: numpy.flatnonzero(each == name) for name in dict.fromkeys(names)}


def digests(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """The SHA-256 of each file by its path below the root."""
    return {path.relative_to(root).as_posix(): file_digest(path) for path in sorted(paths)}
