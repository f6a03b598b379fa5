"""Freed memory back to the system: of what threads free, glibc keeps the more the longer they run."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache

EVERY = 2**13  # wordpieces, half a second of work; giving back takes some ms
_done = 0


def note_work(n_wordpieces: int) -> None:
    """Count wordpieces that were encoded in this process, and give freed memory back after so many."""
    global _done
    _done += n_wordpieces  # a count that another thread overwrites is only late
    if _done >= EVERY:
        _done = 0
        give_back = _malloc_trim()
        if give_back is not None:
            give_back(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """That of glibc; other systems have none, and nothing to mend."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
