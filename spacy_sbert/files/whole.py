"""Files and folders that are there whole or not at all."""

import errno
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
def new_folder(path: Path | str, *, replace: bool = False) -> Iterator[Path]:
    """A folder to write to, which gets its name when the block has ended without an error.

    path (Path): the name; an empty folder may be there. replace (bool): or a folder of any content, or a file, which
        stays until then.
    YIELDS (Path): a folder beside it.
    RAISES (FileExistsError): if there is something else already.
    """
    path = Path(path)
    if path.exists() and not replace and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(Errors.FOLDER_EXISTS.format(path=path))
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    former = made.with_name(f"{made.name}-former")
    try:
        made.chmod(0o755)  # mkdtemp's is its owner's alone
        yield made
        if os.path.lexists(path):
            path.rename(former)
        made.rename(path)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if former.is_dir() and not former.is_symlink():
            shutil.rmtree(former, ignore_errors=True)
        else:
            former.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, temporary: Path | None = None, message: str = Errors.CANNOT_WRITE) -> Iterator[BinaryIO]:
    """A file to write that gets its name when all of it is on the disk; if writing fails, what stood there stays.

    path (Path): the file; its folder is made. temporary (Path): the name until then; by default one for each process,
        so that several may write the file.
    message (str): of errors, see writing.
    RAISES (ValueError): if a link, a folder, a pipe or a device stands there. (OSError): if it cannot be written.
    """
    check_output(path)
    temporary = temporary or path.with_name(f".{path.name}.{os.getpid()}")
    with writing(path, message):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_new(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as whole_file does."""
    with whole_file(path) as file:
        file.write(text.encode("utf8"))


@contextmanager
def writing(path: Path, message: str = Errors.CANNOT_WRITE) -> Iterator[None]:
    """Name the file, and the remedy, where writing it fails; an error that names another file stays.

    message (str): with {path} and {reason}.
    RAISES (OSError): in place of another, with its number.
    """
    try:
        yield
    except OSError as error:
        is_ours = error.filename is None or path.name in str(error.filename)
        if not is_ours or isinstance(error.__cause__, OSError):  # which was named already
            raise
        said = message.format(path=path, reason=error.strerror or error)
        raise (OSError(error.errno, said) if error.errno else OSError(said)) from error


def replace(new: Path, path: Path) -> None:
    """Give a file that is on the disk its final name, and have the name on the disk, too."""
    os.replace(new, path)
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of file systems that cannot do it
            raise
    finally:
        os.close(folder)
