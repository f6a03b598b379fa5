"""Files that are written whole or not at all, and what is said when the disk is full."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path

from ..files.regular import open_new
from .errors import Errors


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Names the file, and the remedy, where writing it fails.

    RAISES (OSError): in place of another, with its number.
    """
    try:
        yield
    except OSError as error:
        message = Errors.BULK_CANNOT_WRITE.format(path=path, reason=error.strerror or error)
        raise (OSError(error.errno, message) if error.errno else OSError(message)) from error


def write_all(file: RawIOBase, data: memoryview) -> None:
    """Write to an unbuffered file, which may take but a part at a time, as where the disk is nearly full.

    A buffered one would try to write the rest once more when it is closed.
    """
    left = data.cast("B")
    while left:
        left = left[file.write(left) :]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name, and rename it when it is on the disk.

    RAISES (OSError): if that fails; what was there before stays.
    """
    new = path.with_name(path.name + ".new")
    with writing(path):
        try:
            with open_new(new) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            replace(new, path)
        except OSError:
            new.unlink(missing_ok=True)
            raise


def replace(new: Path, path: Path) -> None:
    """Give a file that is on the disk its final name, and have the name on the disk, too."""
    os.replace(new, path)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
