"""Shards of a data set: files or row groups of a folder, local or remote."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ..files.serialization import checksummed_json, parse_checksummed
from ..files.tables import TABLES, TEXT
from ..files.text_lines import format_suffix, is_gzip
from .embeddings_file import NO_PYARROW

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class RemoteFolder:
    """Folder of this machine or of a store. It goes to other processes as its address.

    address (str): a path, or an address that pyarrow.fs knows: s3://bucket/folder, gs://..., hdfs://...
    """

    address: str = field(repr=False)

    @property
    def name(self) -> str:
        """Address without a user's name and key, for messages and files."""
        return re.sub("://[^/]*@", "://", self.address)

    def open(self) -> tuple["FileSystem", str]:
        """Return the file system, and the path of the folder in it.

        RAISES (ImportError): without pyarrow. (ValueError): if the address is none, or cannot be reached.
        """
        try:
            from pyarrow import ArrowException  # noqa: PLC0415 (an extra)
            from pyarrow.fs import FileSystem  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise ImportError(NO_PYARROW.format(path=self.name)) from error
        uri = self.address if "://" in self.address else str(Path(self.address).absolute())
        try:
            files, path = FileSystem.from_uri(uri)
        except (ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        return files, path.rstrip("/")

    def _unreadable(self, error: Exception) -> ValueError:
        reason = str(error).replace(self.address, self.name).partition("\n")[0]  # Java's absence has a hundred lines
        return ValueError(
            f"Cannot read the folder {self.name}: {reason}. Expected a folder of this machine, or an address "
            "such as s3://bucket/folder, gs://bucket/folder or hdfs://host/folder, with the rights to read it."
        )

    def files(self) -> Iterator["FileInfo"]:
        """Yield all files below, in the order of their paths.

        RAISES (ValueError): if there is no such folder.
        """
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 (an extra)

        files, root = self.open()
        try:
            infos = files.get_file_info(FileSelector(root, recursive=True))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        yield from sorted((info for info in infos if info.type == FileType.File), key=lambda info: info.path)

    def read_json(self, path: str, model: type[ModelT]) -> ModelT | None:
        """Read what write_json wrote, None if it is not there or not whole. path (str): below the folder."""
        files, root = self.open()
        try:
            with files.open_input_stream(f"{root}/{path}") as stream:
                return parse_checksummed(model, bytes(stream.read()))
        except (FileNotFoundError, ValueError):
            return None

    def write_json(self, path: str, content: BaseModel) -> None:
        """Write an object with its checksum; folders are made."""
        data = json.dumps(checksummed_json(content.model_dump()), indent=2).encode("utf8")
        files, root = self.open()
        files.create_dir(f"{root}/{path}".rpartition("/")[0], recursive=True)
        with files.open_output_stream(f"{root}/{path}") as stream:
            stream.write(data)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        from pyarrow.fs import FileType  # noqa: PLC0415 (an extra)

        files, root = self.open()
        if files.get_file_info(f"{root}/{path}").type == FileType.File:
            files.delete_file(f"{root}/{path}")

    def fetch(self, path: str, local: Path) -> None:
        """Copy a file from there to this machine."""
        from pyarrow.fs import LocalFileSystem, copy_files  # noqa: PLC0415 (an extra)

        files, root = self.open()
        copy_files(f"{root}/{path}", str(local), source_filesystem=files, destination_filesystem=LocalFileSystem())

    def put(self, local: Path, path: str) -> None:
        """Copy a file of this machine there; folders are made."""
        from pyarrow.fs import LocalFileSystem, copy_files  # noqa: PLC0415 (an extra)

        files, root = self.open()
        files.create_dir(f"{root}/{path}".rpartition("/")[0], recursive=True)
        copy_files(str(local), f"{root}/{path}", source_filesystem=LocalFileSystem(), destination_filesystem=files)

    def size(self, path: str) -> int | None:
        """Return how many bytes a file has, None if it is not there."""
        files, root = self.open()
        return files.get_file_info(f"{root}/{path}").size


SPLIT_ABOVE = 2**28  # bytes above which a .parquet file is encoded by its row groups


@dataclass(frozen=True)
class Shard:
    """File, or row group of a large .parquet file.

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
        """Name that tells it from others; vectors stand under it with their suffix."""
        return self.path if self.row_group is None else f"{self.path}.{self.row_group:05}"


def find_shards(source: RemoteFolder, large: int = SPLIT_ABOVE) -> list[Shard]:
    """Find the parts of a data set, in the order of their paths. Files whose names begin with . or _ are none.

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
            raise ValueError(
                f"{info.path} is no file of texts: expected names that end in one of "
                f"{', '.join((*TABLES, TEXT))}, all but .parquet also .gz. Move it away, or begin its name "
                "with a dot."
            )
        whole = Shard(str(path.relative_to(root)), info.size, info.mtime_ns or 0)
        parts += _row_groups(source, whole) if suffix == ".parquet" and info.size > large else [whole]
    if not parts:
        raise ValueError(
            f"{source.name} has no files of texts: expected some whose names end in one of "
            f"{', '.join((*TABLES, TEXT))}."
        )
    return parts


def _row_groups(source: RemoteFolder, whole: Shard) -> list[Shard]:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (an extra)

    files, root = source.open()
    with ParquetFile(files.open_input_file(f"{root}/{whole.path}")) as file:
        n = file.num_row_groups
    return [Shard(whole.path, whole.size, whole.modified, i) for i in range(n)] if n > 1 else [whole]


def shard_of(parts: list[Shard], shard: str) -> list[Shard]:
    """Return the parts of one of several jobs that do the whole together.

    shard (str): "2/8" for the second of eight: the parts 2, 10, 18, ...
    RAISES (ValueError): for another kind of string, or a number that is not from 1 to that of all.
    """
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(
            f"Cannot do the shard '{shard}': expected I/N, the I-th of N, such as 2/8 for the second of eight."
        )
    return parts[int(number) - 1 :: int(count)]
