"""Files that are nothing but files: what is read neither hangs nor goes on for ever, what is written is not a link."""

import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

from .errors import Errors

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
        raise ValueError(Errors.NOT_A_FILE.format(path=path, kind=_kind(found)))


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
