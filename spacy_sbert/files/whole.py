"""Files and folders that are there whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import Errors
from .regular import check_output, open_new


@contextmanager
def new_folder(path: Path | str) -> Iterator[Path]:
    """A folder to write to, which gets its name when the block has ended without an error.

    path (Path): the name; an empty folder may be there.
    YIELDS (Path): a folder beside it.
    RAISES (FileExistsError): if there is something already.
    """
    path = Path(path)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise FileExistsError(Errors.FOLDER_EXISTS.format(path=path))
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        made.chmod(0o755)  # mkdtemp's is its owner's alone
        yield made
        if path.exists():
            path.rmdir()
        made.rename(path)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that gets its name when all is written; if writing fails, what stood there stays.

    path (Path): the file; its folder is made.
    RAISES (ValueError): if a link, a folder, a pipe or a device stands there. (OSError): if it cannot be written.
    """
    check_output(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open_new(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        reason = os.strerror(error.errno)
        raise OSError(error.errno, Errors.CANNOT_WRITE.format(path=path, reason=reason)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as whole_file does."""
    with whole_file(path) as file:
        file.write(text.encode("utf8"))
