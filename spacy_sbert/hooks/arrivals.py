"""A warning where Docs arrive without their hooks: until `restore`, spaCy answers `doc.vector` with its defaults.

Nothing in spaCy tells a new Doc of what it receives, so hooks cannot come back by themselves: what can be noticed is a
record that is read (`Doc.from_bytes`, `DocBin.get_docs`, `nlp.pipe(n_process=2)`) or moved (`Doc.from_docs`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import srsly

from ..errors.notices import warn
from .errors import Warnings

_are_restored: ContextVar[bool] = ContextVar("are_restored", default=False)
_said: set[str] = set()  # in this process


def install() -> None:
    """Let every reading of msgpack in this process notice records."""
    srsly.msgpack_decoders.register("spacy-sbert.record", func=decode)


def decode(obj: dict[object, object], chain: Callable[[dict[object, object]], object] | None = None) -> object:
    """Warn if what was decoded is the record of a pipe that answers `doc.vector`, and leave it as it is.

    chain (Callable): the next decoder. RETURNS: what that makes of it.
    """
    if "set_hooks" in obj and obj["set_hooks"] and "vectors" in obj:
        _warn(Warnings.ARRIVED)
    return obj if chain is None else chain(obj)


class Place(int):
    """A character of a Doc, in the key of a record; `Doc.from_docs` alone adds to it."""

    def __add__(self, offset: int) -> "Place":
        _warn(Warnings.JOINED)
        return Place(int(self) + offset)

    def __sub__(self, offset: int) -> "Place":
        """As `Span.as_doc` does, which keeps hooks."""
        return Place(int(self) - offset)


@contextmanager
def are_restored() -> Iterator[None]:
    """Docs that are read in here get their hooks back: no warning."""
    token = _are_restored.set(True)
    try:
        yield
    finally:
        _are_restored.reset(token)


def _warn(message: str) -> None:
    if message not in _said and not _are_restored.get():
        _said.add(message)
        warn(message)
