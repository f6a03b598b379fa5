"""Folders of files, on this machine or in a store such as S3, by Arrow's file systems."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import Errors

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


@dataclass(frozen=True)
class Place:
    """A folder. It goes to other processes as its address.

    address (str): a path, or an address that pyarrow.fs knows: s3://bucket/folder, gs://..., hdfs://...
    """

    address: str = field(repr=False)

    @property
    def name(self) -> str:
        """The address without a user's name and key, for messages and files."""
        return re.sub("://[^/]*@", "://", self.address)

    def open(self) -> tuple["FileSystem", str]:
        """RETURNS (FileSystem, str): the file system, and the path of the folder in it.

        RAISES (ImportError): without pyarrow. (ValueError): if the address is none, or cannot be reached.
        """
        try:
            from pyarrow import ArrowException
            from pyarrow.fs import FileSystem
        except ImportError as error:
            raise ImportError(Errors.BULK_NO_PYARROW.format(path=self.name)) from error
        given = self.address if "://" in self.address else str(Path(self.address).absolute())
        try:
            files, path = FileSystem.from_uri(given)
        except (ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        return files, path.rstrip("/")

    def _unreadable(self, error: Exception) -> ValueError:
        said = str(error).replace(self.address, self.name).partition("\n")[0]  # Java's absence has a hundred lines
        return ValueError(Errors.BULK_NO_PLACE.format(given=self.name, reason=said))

    def files(self) -> Iterator["FileInfo"]:
        """All files below, in the order of their paths.

        RAISES (ValueError): if there is no such folder.
        """
        from pyarrow.fs import FileSelector, FileType

        files, root = self.open()
        try:
            found = files.get_file_info(FileSelector(root, recursive=True))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        yield from sorted((one for one in found if one.type == FileType.File), key=lambda one: one.path)

    def read(self, path: str) -> bytes | None:
        """The bytes of a small file, None if it is not there. path (str): below the folder."""
        files, root = self.open()
        try:
            with files.open_input_stream(f"{root}/{path}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        """Write a small file; folders are made."""
        files, root = self.open()
        files.create_dir(f"{root}/{path}".rpartition("/")[0], recursive=True)
        with files.open_output_stream(f"{root}/{path}") as stream:
            stream.write(data)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        from pyarrow.fs import FileType

        files, root = self.open()
        if files.get_file_info(f"{root}/{path}").type == FileType.File:
            files.delete_file(f"{root}/{path}")

    def fetch(self, path: str, local: Path) -> None:
        """Copy a file from there to this machine."""
        from pyarrow.fs import LocalFileSystem, copy_files

        files, root = self.open()
        copy_files(f"{root}/{path}", str(local), source_filesystem=files, destination_filesystem=LocalFileSystem())

    def put(self, local: Path, path: str) -> None:
        """Copy a file of this machine there; folders are made."""
        from pyarrow.fs import LocalFileSystem, copy_files

        files, root = self.open()
        files.create_dir(f"{root}/{path}".rpartition("/")[0], recursive=True)
        copy_files(str(local), f"{root}/{path}", source_filesystem=LocalFileSystem(), destination_filesystem=files)

    def size(self, path: str) -> int | None:
        """How many bytes a file has, None if it is not there."""
        files, root = self.open()
        return files.get_file_info(f"{root}/{path}").size
