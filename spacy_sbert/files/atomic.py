"""Write files and folders whole or not at all, and open only regular files."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import filelock

from ..errors import Errors

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


def check_input(path: Path) -> None:
    """Raise ValueError for a folder, a pipe, a socket or a device.

    Links are followed, and a missing file passes.
    """
    if (kind := _kind(path, follow_symlinks=True)) is not None:
        raise ValueError(
            f"{path} is {kind}: expected a file. Write what is to be read to one, and give its "
            "name."
        )


def check_output(path: Path, *, is_folder: bool = False) -> None:
    """Raise ValueError for a name that something else than a file has.

    is_folder (bool): whether it should be a folder.
    """
    kind = _kind(path)
    if kind is not None and not (is_folder and kind == _KINDS[stat.S_IFDIR]):
        raise ValueError(Errors.NOT_TO_WRITE.format(path=path, kind=kind))


def _kind(path: Path, *, follow_symlinks: bool = False) -> str | None:
    """Return what a path is; None for a regular file, or nothing."""
    try:
        mode = path.stat(follow_symlinks=follow_symlinks).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def check_apart(source: Path, target: Path) -> None:
    """Raise ValueError if an output is the file that is read, maybe by another name or a link."""
    if source.exists() and target.exists() and target.samefile(source):
        raise ValueError(
            f"{target} is the input, and was given as the output, too. Give the output another "
            "name."
        )


@contextmanager
def atomic_folder(path: Path | str, *, replace: bool = False) -> Iterator[Path]:
    """Yield a folder to write to, which gets its name when the block has ended without an error.

    path (Path): the name; an empty folder may be there. replace (bool): or a folder of any content,
        or a file, which stays until then.
    YIELDS (Path): a folder beside it.
    RAISES (FileExistsError): if there is something else already. (OSError): see rewrite_os_errors.
    """
    path = Path(path)
    if path.exists() and not replace and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(
            f"There is something at {path} already: give the name of a new folder, or remove it."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    former = new.with_name(f"{new.name}-former")
    try:
        # Only its owner could enter a folder as mkdtemp makes it
        new.chmod(0o755)
        with rewrite_os_errors(path):
            yield new
        if os.path.lexists(path):
            path.rename(former)
        new.rename(path)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if former.is_dir() and not former.is_symlink():
            shutil.rmtree(former, ignore_errors=True)
        else:
            former.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path, *, temporary: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a file to write, which gets its name when all of it is on the disk.

    Until then an older one stays.

    path (Path): the file; its folder is made. temporary (Path): the name until then; by default one
        for each process, so that several may write the file.
    RAISES (ValueError): see check_output. (OSError): if it cannot be written.
    """
    check_output(path)
    temporary = temporary or path.with_name(f".{path.name}.{os.getpid()}")
    with rewrite_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # A killed run may have left one
            temporary.unlink(missing_ok=True)
            # A link is never followed
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as atomic_write does."""
    with atomic_write(path) as file:
        file.write(text.encode("utf8"))


@contextmanager
def rewrite_os_errors(path: Path) -> Iterator[None]:
    """Name the file, and the remedy, in an error of writing it.

    An error that names another file stays, and one that is not of the system, such as an encoder
    that is not found.

    RAISES (OSError): in place of the first, with its errno.
    """
    try:
        yield
    except OSError as error:
        # Without a number it is not of the system
        is_ours = bool(error.errno)
        if error.filename is not None:
            is_ours = path.name in str(error.filename)
        is_rewritten = isinstance(error.__cause__, OSError)
        if not is_ours or is_rewritten:
            raise
        reason = error.strerror or error
        raise OSError(error.errno, Errors.CANNOT_WRITE.format(path=path, reason=reason)) from error


def _sync(folder: Path) -> None:
    """Have the names of files in a folder on the disk."""
    # Elsewhere a folder cannot be opened
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Of file systems that cannot do it
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


class Lock:
    """Lock on a folder of output, which one process holds at a time.

    The system releases that of a dead one.

    path (Path): the file that is locked; it is made.
    RAISES (RuntimeError): if another process holds the lock. (ValueError): if the file is a link.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = filelock.FileLock(path)
        check_output(path)
        if path.exists() and path.stat().st_nlink > 1:
            raise ValueError(Errors.NOT_TO_WRITE.format(path=path, kind="a hard link"))
        with rewrite_os_errors(path):
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout as error:
                # An OSError, too
                raise RuntimeError(
                    f"Another process writes the same output: it has locked {path}. Wait until it "
                    "is done, or stop it."
                ) from error

    def release(self, *, remove: bool) -> None:
        """Unlock, and remove the file if `remove` is set."""
        if remove and os.name == "posix":
            self.path.unlink(missing_ok=True)
        self._lock.release()
        # Elsewhere an open file cannot be removed
        if remove:
            self.path.unlink(missing_ok=True)
