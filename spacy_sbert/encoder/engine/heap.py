"""Freed memory back to the system: of what threads free, glibc keeps the more the longer they run."""

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

EVERY = 2**13  # wordpieces; less frees too little
STATM = Path("/proc/self/statm")
GROWTH = 1.01  # of resident memory, since the first work after it was given back
_done = 0
_usual: int | None = None


def note_work(n_wordpieces: int) -> None:
    """Count wordpieces that were encoded on the CPU in this process, and give freed memory back once it has grown.

    The next work takes most of it anew, page by page, which costs a few per cent of the time if it happens every time.
    """
    global _done, _usual
    _done += n_wordpieces  # a count that another thread overwrites is only late
    give_back = _malloc_trim()
    if _done < EVERY or give_back is None:
        return
    _done, now, usual = 0, _resident(), _usual  # which another thread may forget meanwhile
    if usual is None:
        _usual = now
    elif now > GROWTH * usual:
        give_back(0)
        _usual = None


def _resident() -> int:
    """Bytes of this process that are in memory."""
    return int(STATM.read_text(encoding="utf8").split()[1]) * mmap.PAGESIZE


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """That of glibc, where memory can be looked at; other systems have none, and nothing to mend."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" and STATM.is_file() else None
