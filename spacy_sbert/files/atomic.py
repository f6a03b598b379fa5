"""Write files and folders whole or not at all, and open only regular files."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import Errors

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}
# Windows has neither, and opens no links of others.
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def check_input(path: Path) -> None:
    """Refuse a folder, a pipe, a socket or a device before a byte is read of it; a link to a file is one.

    RAISES (ValueError): if it is one. What is not there passes: opening says so.
    """
    found = _stat(path, follow_symlinks=True)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise ValueError(
            f"{path} is {_kind(found)}: expected a file. Write what is to be read to one, and give its name."
        )


def check_output(path: Path) -> None:
    """Refuse a name that a file cannot be written under: through a link another one would be overwritten.

    RAISES (ValueError): if a link, a folder, a pipe, a socket or a device stands there.
    """
    found = _stat(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise ValueError(Errors.NOT_TO_WRITE.format(path=path, kind=_kind(found)))


def check_folder(path: Path) -> None:
    """Refuse a folder whose name we chose where it is a link: whoever made that wants our files elsewhere.

    RAISES (ValueError): if it is a link.
    """
    if path.is_symlink():
        raise ValueError(Errors.NOT_TO_WRITE.format(path=path, kind=KINDS[stat.S_IFLNK]))


def open_own(path: Path, mode: str, buffering: int = -1) -> BinaryIO:
    """Open a file of which nobody else has a name: it is written in place, or what is read of it is trusted.

    mode (str), buffering (int): as of open; of bytes.
    RAISES (ValueError): for a link, symbolic or hard, and for what is not a file.
    """
    check_output(path)
    found = _stat(path)
    if found is not None and found.st_nlink > 1:
        raise ValueError(Errors.NOT_TO_WRITE.format(path=path, kind="a hard link"))
    return cast(BinaryIO, open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags | FLAGS, 0o666)))


def open_new(path: Path) -> BinaryIO:
    """Make a file of ours anew, to write: what a killed run left under its name is removed, a link never followed."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def _stat(path: Path, *, follow_symlinks: bool = False) -> os.stat_result | None:
    try:
        return path.stat(follow_symlinks=follow_symlinks)
    except OSError:
        return None


def _kind(found: os.stat_result) -> str:
    return KINDS.get(stat.S_IFMT(found.st_mode), "not a regular file")


@contextmanager
def atomic_folder(path: Path | str, *, replace: bool = False) -> Iterator[Path]:
    """A folder to write to, which gets its name when the block has ended without an error.

    path (Path): the name; an empty folder may be there. replace (bool): or a folder of any content, or a file, which
        stays until then.
    YIELDS (Path): a folder beside it.
    RAISES (FileExistsError): if there is something else already.
    """
    path = Path(path)
    if path.exists() and not replace and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"There is something at {path} already: give the name of a new folder, or remove it.")
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
def atomic_write(
    path: Path, *, temporary: Path | None = None, message: str = Errors.CANNOT_WRITE
) -> Iterator[BinaryIO]:
    """A file to write that gets its name when all of it is on the disk; if writing fails, what stood there stays.

    path (Path): the file; its folder is made. temporary (Path): the name until then; by default one for each process,
        so that several may write the file.
    message (str): of errors, see writing.
    RAISES (ValueError): if a link, a folder, a pipe or a device stands there. (OSError): if it cannot be written.
    """
    check_output(path)
    temporary = temporary or path.with_name(f".{path.name}.{os.getpid()}")
    with rewrite_os_errors(path, message):
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
    with atomic_write(path) as file:
        file.write(text.encode("utf8"))


@contextmanager
def rewrite_os_errors(path: Path, message: str = Errors.CANNOT_WRITE) -> Iterator[None]:
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


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

AT = 64  # the byte that is locked on Windows, where nobody can read a locked one: behind the number of the process


class Lock:
    """A locked file that holds the number of the process.

    path (Path): the file; it is made.
    RAISES (RuntimeError): if another process has locked it.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file = _locked(path)
        try:
            with rewrite_os_errors(path):
                self._file.truncate(0)
                self._file.write(b"%d" % os.getpid())
        except OSError:
            self.release(remove=True)
            raise

    def release(self, *, remove: bool) -> None:
        """Unlock, and remove the file if it is to be removed."""
        if remove and sys.platform != "win32":
            self.path.unlink(missing_ok=True)
        self._file.close()
        if remove and sys.platform == "win32":  # an open file cannot be removed
            self.path.unlink(missing_ok=True)


def _locked(path: Path) -> BinaryIO:
    while True:
        file = open_own(path, "a+b", buffering=0)
        try:
            _lock(file)
        except OSError as error:
            file.seek(0)
            holder = file.read(20).decode("ascii", "replace") or "unknown"
            file.close()
            raise RuntimeError(
                f"Another process (number {holder}) writes the same output: it has locked {path}. Wait until "
                "it is done, or stop it."
            ) from error
        # Whoever held it may have removed it in between: then it locks nobody out.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.lstat()):
            return file
        file.close()


def _lock(file: BinaryIO) -> None:
    if sys.platform == "win32":
        file.seek(AT)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
