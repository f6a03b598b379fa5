"""Who computes with weights, and who changes them, where several threads share an encoder."""

import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any


class WeightsLock:
    """Many may read weights at a time; who changes them is alone.

    So every batch is computed with one state of the weights. A change waits for the batches that other threads are at,
    and those that come after wait for it. A thread that reads may change, and one that changes may read: nobody waits
    for itself. A fork waits for a change to end; a copy, a pickle and a forked process have a lock of their own.
    """

    def __init__(self) -> None:
        self.reset()
        _guard_forks().add(self)

    def __reduce__(self) -> tuple[type, tuple]:
        return WeightsLock, ()

    def reset(self) -> None:
        """Forget who holds it, in a process in which those threads are not."""
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()
        self._writer: int | None = None
        self._waiting: set[int] = set()  # to change

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Compute with the weights."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._readers[me] or self._writer == me or not self._changes)
            self._readers[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers[me] -= 1
                self._readers = +self._readers  # without zeros
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the weights."""
        me = threading.get_ident()
        with self._changed:
            outer = self._writer
            self._waiting.add(me)
            try:
                self._changed.wait_for(lambda: self._writer in (None, me) and not self._readers.keys() - {me})
            finally:
                self._waiting.discard(me)
                self._changed.notify_all()
            self._writer = me
        try:
            yield
        finally:
            with self._changed:
                self._writer = me if outer == me else None
                self._changed.notify_all()

    @property
    def _changes(self) -> bool:
        return self._writer is not None or bool(self._waiting)


@cache
def loading_lock() -> WeightsLock:
    """That of all weights while some are loaded: Hugging Face's from_pretrained is not made for several threads."""
    return WeightsLock()


@cache
def _guard_forks() -> Any:
    """The locks of this process, all of which a fork holds: no child begins with weights that are half changed."""
    locks: weakref.WeakSet[WeightsLock] = weakref.WeakSet()
    held: dict[int, ExitStack] = {}  # by thread

    def hold() -> None:
        stack = held[threading.get_ident()] = ExitStack()
        for lock in list(locks):
            stack.enter_context(lock.reading())

    def release() -> None:
        held.pop(threading.get_ident()).close()

    def reset() -> None:
        for stack in held.values():
            stack.pop_all()
        held.clear()
        for lock in list(locks):
            lock.reset()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=reset)
    return locks
