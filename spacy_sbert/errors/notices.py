"""What a pipe says of its work: each thing once, and of many cut texts how many."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, Protocol, TypeVar

# Packages whose lines tell nobody where to look: this one, and those that call it.
INNER = ("spacy_sbert", "spacy", "spacy_transformers", "spacy_curated_transformers", "thinc", "srsly", "contextlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into this package or spaCy, however deep below it the warning is raised."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class Cuts(Protocol):
    """Counts the texts that were longer than a limit. message: what to say of them."""

    count: int

    @property
    def message(self) -> str: ...


CutsT = TypeVar("CutsT", bound=Cuts)


class Notices(Generic[CutsT]):
    """The warnings of one pipe.

    new_cuts (Callable): makes what counts cut texts. cuts: the one in use.
    """

    def __init__(self, new_cuts: Callable[[], CutsT]):
        self._new_cuts = new_cuts
        self.cuts = new_cuts()
        self._said: set[str] = set()

    def is_new(self, what: str) -> bool:
        """Whether something is said for the first time."""
        is_new = what not in self._said
        self._said.add(what)
        return is_new

    def once(self, message: str) -> None:
        """Warn, unless that was said before."""
        if self.is_new(message):
            warn(message)

    @contextmanager
    def one_for_cuts(self) -> Iterator[None]:
        """Collect the cut texts of many Docs for one warning."""
        try:
            yield
        finally:
            cuts, self.cuts = self.cuts, self._new_cuts()
            if cuts.count:
                warn(cuts.message)
