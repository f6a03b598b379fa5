"""Freed memory back to the system: of what threads free, glibc keeps the more the longer they run."""

import ctypes
import sys
import time
from collections.abc import Callable
from functools import cache

EVERY = 2**13  # wordpieces; less frees too little
REST = 0.5  # seconds between two times: giving back takes some ms, however fast the encoder is
_done, _last = 0, 0.0


def note_work(n_wordpieces: int) -> None:
    """Count wordpieces that were encoded on the CPU in this process, and give freed memory back now and then."""
    global _done, _last
    _done += n_wordpieces  # a count that another thread overwrites is only late
    if _done < EVERY or time.monotonic() < _last + REST:
        return
    _done, _last = 0, time.monotonic()
    give_back = _malloc_trim()
    if give_back is not None:
        give_back(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """That of glibc; other systems have none, and nothing to mend."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
