"""One process at a time: a file that the system unlocks when its process ends, however it ends."""

import os
import sys
from pathlib import Path
from typing import BinaryIO

from .errors import Errors
from .regular import open_own
from .whole import writing

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
            with writing(path):
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
            raise RuntimeError(Errors.LOCKED.format(path=path, pid=holder)) from error
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
