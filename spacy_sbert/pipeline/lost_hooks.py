"""The warning about Docs whose hooks spaCy has dropped.

Light, as `spacy_sbert_msgpack` imports it.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

from ..errors import Warnings, warn

ItemT = TypeVar("ItemT")
_are_restored = ContextVar("are_restored", default=False)
# In this process
_warned: set[str] = set()


def warn_of_lost_hooks() -> None:
    """Warn, once in a process, that the hooks of a Doc are lost, unless `restore` reads it."""
    if not _are_restored.get() and Warnings.LOST_HOOKS not in _warned:
        _warned.add(Warnings.LOST_HOOKS)
        warn(Warnings.LOST_HOOKS)


def next_to_restore(docs: Iterator[ItemT]) -> ItemT:
    """Return the next Doc of a stream without the warning: its hooks will be set again."""
    token = _are_restored.set(True)
    try:
        return next(docs)
    finally:
        _are_restored.reset(token)


class Start(int):
    """First character of a record, in its key.

    `Doc.from_docs`, which drops the hooks, adds to it.
    """

    def __add__(self, offset: int) -> "Start":
        warn_of_lost_hooks()
        return Start(int(self) + offset)

    # Of Span.as_doc, which keeps them
    def __sub__(self, offset: int) -> "Start":
        return Start(int(self) - offset)

    def __deepcopy__(self, memo: object) -> "Start":
        # As of an int
        return self
