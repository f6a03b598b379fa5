"""How a run writes: what fails says that the work is kept, and how to go on."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from ..files import whole
from .errors import Errors


def writing(path: Path) -> AbstractContextManager[None]:
    """Name the file, and how to go on, where writing it fails. RAISES (OSError): in place of another."""
    return whole.writing(path, Errors.BULK_CANNOT_WRITE)


def write_all(file: BinaryIO, data: memoryview) -> None:
    """Write to an unbuffered file, which may take only a part at a time, as where the disk is nearly full.

    A buffered one would try to write the rest once more when it is closed.
    """
    left = data.cast("B")
    while left:
        left = left[file.write(left) :]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of a locked folder whole or not at all: what a killed run left under the other name is replaced."""
    new = path.with_name(path.name + ".new")
    with whole.whole_file(path, temporary=new, message=Errors.BULK_CANNOT_WRITE) as file:
        file.write(data)
