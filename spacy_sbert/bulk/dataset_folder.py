"""Folders of texts and of vectors, on this machine or in a store, and the shards in them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ..errors import Errors, import_extra
from ..files.manifest import Manifest
from ..files.tables import TABLES, TEXT_SUFFIX
from ..files.text_lines import format_suffix

if TYPE_CHECKING:
    from pyarrow.fs import SubTreeFileSystem

_ManifestT = TypeVar("_ManifestT", bound=Manifest)
# Bytes above which a .parquet file is encoded by its row groups
SPLIT_ABOVE = 2**28


class Shard(BaseModel, frozen=True):
    """File, or row group of a large .parquet file.

    path (str): of the file, below the folder of the data set. size (int): of the file, in bytes.
    modified (int): its time, in ns since 1970; 0 if the file system does not tell.
    row_group (int): None for all of the file.
    """

    path: str
    size: int
    modified: int
    row_group: int | None = None

    @property
    def name(self) -> str:
        """Unique name; its vectors have this name and their suffix."""
        if self.row_group is None:
            return self.path
        return f"{self.path}.{self.row_group:05}"


def _is_hidden(path: PurePath) -> bool:
    """Return whether a path below a folder is passed over: a name in it begins with . or _."""
    return any(name.startswith((".", "_")) for name in path.parts)


@dataclass(frozen=True)
class RemoteFolder:
    """Folder of this machine or of a store. Other processes receive its address only.

    address (str): a path, or an address that pyarrow.fs knows: s3://bucket/folder, gs://...,
        hdfs://...
    """

    address: str = field(repr=False)

    @property
    def name(self) -> str:
        """Address without a user's name and key, for messages and files."""
        return re.sub("://[^/]*@", "://", self.address)

    def open(self) -> "SubTreeFileSystem":
        """Return the file system of the folder.

        RAISES (ImportError, ValueError): without pyarrow, or an address.
        """
        pyarrow = import_extra("pyarrow", f"Writing {self.name} needs pyarrow", "parquet")
        from pyarrow.fs import FileSystem, SubTreeFileSystem  # noqa: PLC0415 (an extra)

        uri = self.address
        if "://" not in uri:
            uri = str(Path(uri).absolute())
        try:
            files, path = FileSystem.from_uri(uri)
        except (pyarrow.ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        return SubTreeFileSystem(path, files)

    def _unreadable(self, error: Exception) -> ValueError:
        # The other lines are Java's stack trace
        reason = str(error).replace(self.address, self.name).partition("\n")[0]
        return ValueError(
            f"Cannot read the folder {self.name}: {reason}. Expected a folder of this machine, or "
            "an address such as s3://bucket/folder, with the rights to read it."
        )

    def shards(self, large: int = SPLIT_ABOVE) -> list[Shard]:
        """Return the shards of a data set, in the order of their paths.

        Names that begin with . or _ are left out.

        large (int): bytes above which each row group of a .parquet file is a shard.
        RAISES (ValueError): if there is no such folder, no shard in it, or a file of an unknown
            format.
        """
        known = ", ".join((*TABLES, TEXT_SUFFIX))
        files = self.open()
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 (an extra)

        try:
            infos = files.get_file_info(FileSelector("", recursive=True))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        found: list[Shard] = []
        for info in sorted(infos, key=lambda info: info.path):
            path = PurePosixPath(info.path)
            if info.type != FileType.File or _is_hidden(path):
                continue
            suffix = format_suffix(path)
            if suffix not in (*TABLES, TEXT_SUFFIX):
                raise ValueError(
                    f"{self.name}/{path} is no file of texts: expected names that end in one of "
                    f"{known}, all but .parquet also .gz. Move it away, or begin its name with a "
                    "dot."
                )
            whole = Shard(path=info.path, size=info.size, modified=info.mtime_ns or 0)
            if suffix == ".parquet" and info.size > large:
                found += self._row_groups(whole)
            else:
                found.append(whole)
        if not found:
            raise ValueError(
                f"{self.name} has no files of texts: expected names that end in one of {known}."
            )
        return found

    def _row_groups(self, whole: Shard) -> list[Shard]:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 (an extra)

        with ParquetFile(self.open().open_input_file(whole.path)) as file:
            n = file.num_row_groups
        if n <= 1:
            return [whole]
        return [whole.model_copy(update={"row_group": i}) for i in range(n)]

    def check_apart(self, target: "RemoteFolder") -> None:
        """Raise ValueError if files in a target would be read as texts.

        They are if it is in this folder, also through a link.
        """
        ours = self.open()
        theirs = target.open()
        if ours.base_fs.type_name != theirs.base_fs.type_name:
            return
        places = [(ours.base_path, theirs.base_path)]
        if ours.base_fs.type_name == "local":
            real = os.path.realpath(ours.base_path)
            places += [(real, os.path.realpath(theirs.base_path)), (real, theirs.base_path)]
        for folder, inside in places:
            below = PurePath(inside)
            if below.is_relative_to(folder) and not _is_hidden(below.relative_to(folder)):
                raise ValueError(
                    f"The target {target.name} is in the source {self.name}, whose files are read "
                    "as texts. Give a folder outside of it, or one whose name begins with a dot."
                )

    def read(self, path: str, kind: type[_ManifestT]) -> _ManifestT | None:
        """Read a manifest; None if it is missing or damaged."""
        try:
            with self.open().open_input_stream(path) as stream:
                return kind.from_json(bytes(stream.read()))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def write(self, path: str, manifest: Manifest) -> None:
        """Write a manifest. Folders are made."""
        with self._naming(path), self._made(path).open_output_stream(path) as stream:
            stream.write(manifest.to_json())

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.size(path) is not None:
            self.open().delete_file(path)

    def fetch(self, path: str, local: Path) -> None:
        """Copy a file to this machine."""
        from pyarrow.fs import LocalFileSystem, copy_files  # noqa: PLC0415 (an extra)

        copy_files(
            path,
            str(local),
            source_filesystem=self.open(),
            destination_filesystem=LocalFileSystem(),
        )

    def put(self, local: Path, path: str) -> None:
        """Copy a file of this machine there. Folders are made."""
        from pyarrow.fs import LocalFileSystem, copy_files  # noqa: PLC0415 (an extra)

        with self._naming(path):
            copy_files(
                str(local),
                path,
                source_filesystem=LocalFileSystem(),
                destination_filesystem=self._made(path),
            )

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        """Name the file in an error of writing it, as Arrow does not always."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error).replace(self.address, self.name)
            raise OSError(
                error.errno, Errors.CANNOT_WRITE.format(path=f"{self.name}/{path}", reason=reason)
            ) from error

    def size(self, path: str) -> int | None:
        """Return the bytes of a file, None if it is not there."""
        return self.open().get_file_info(path).size

    def modified(self, path: str) -> int:
        """Return when a file was modified, in ns since 1970; 0 if it is missing, or not known.

        Of a file of this machine also when it was moved there, or got another time.
        """
        files = self.open()
        if files.base_fs.type_name == "local":
            try:
                stat = os.stat(f"{files.base_path}{path}")
            except OSError:
                return 0
            return max(stat.st_mtime_ns, stat.st_ctime_ns)
        return files.get_file_info(path).mtime_ns or 0

    def _made(self, path: str) -> "SubTreeFileSystem":
        """Return the file system in which the folder of a file exists."""
        files = self.open()
        files.base_fs.create_dir(f"{files.base_path}{path}".rpartition("/")[0], recursive=True)
        return files
