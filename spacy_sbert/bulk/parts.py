"""The parts of a data set: each becomes one file of vectors, by itself."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from ..files.lines import format_suffix, is_gzip
from ..files.tables import TABLES
from ..files.texts import TEXT
from .errors import Errors
from .places import Place

LARGE = 2**28  # bytes above which a .parquet file is encoded by its row groups


@dataclass(frozen=True)
class Part:
    """A file, or a row group of a large .parquet file.

    path (str): of the file, below the folder of the data set. size (int): of the file, in bytes.
    modified (int): when it was, in ns since 1970; 0 where the file system does not say.
    row_group (int): which, None for all of the file.
    """

    path: str
    size: int
    modified: int
    row_group: int | None = None

    @property
    def name(self) -> str:
        """What tells it from others; vectors stand under it with their suffix."""
        return self.path if self.row_group is None else f"{self.path}.{self.row_group:05}"


def find_parts(source: Place, large: int = LARGE) -> list[Part]:
    """The parts of a data set, in the order of their paths. Files whose names begin with . or _ are none.

    large (int): bytes above which a .parquet file of several row groups is as many parts.
    RAISES (ValueError): if there is no such folder, no part in it, or a file of an unknown format.
    """
    _, root = source.open()
    parts = []
    for info in source.files():
        path = PurePosixPath(info.path)
        if any(name.startswith((".", "_")) for name in path.relative_to(root).parts):
            continue
        suffix = format_suffix(path)
        if suffix not in (*TABLES, TEXT) or (is_gzip(path) and suffix == ".parquet"):
            raise ValueError(Errors.BULK_UNKNOWN_PART.format(path=info.path, expected=", ".join((*TABLES, TEXT))))
        whole = Part(str(path.relative_to(root)), info.size, info.mtime_ns or 0)
        parts += _row_groups(source, whole) if suffix == ".parquet" and info.size > large else [whole]
    if not parts:
        raise ValueError(Errors.BULK_NO_PARTS.format(given=source.name, expected=", ".join((*TABLES, TEXT))))
    return parts


def _row_groups(source: Place, whole: Part) -> list[Part]:
    from pyarrow.parquet import ParquetFile

    files, root = source.open()
    with ParquetFile(files.open_input_file(f"{root}/{whole.path}")) as file:
        n = file.num_row_groups
    return [Part(whole.path, whole.size, whole.modified, i) for i in range(n)] if n > 1 else [whole]


def shard_of(parts: list[Part], shard: str) -> list[Part]:
    """The parts of one of several jobs that do the whole together.

    shard (str): "2/8" for the second of eight: the parts 2, 10, 18, ...
    RAISES (ValueError): for another kind of string, or a number that is not from 1 to that of all.
    """
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(Errors.BULK_BAD_SHARD.format(given=shard))
    return parts[int(number) - 1 :: int(count)]
