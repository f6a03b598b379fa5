"""Counted cases: each is right or refused by name, and what is neither is listed when its test ends."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

SHOWN = 10  # of what went wrong
COUNTS = pytest.StashKey[dict[str, Counter]]()  # by promise


@dataclass
class Cases:
    """The cases of one promise, such as "a Doc that travelled answers as before, or says that it cannot".

    A case ends in right(), in refused() with a message that names its cause, or in wrong().
    """

    promise: str
    counts: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def right(self, n: int = 1) -> None:
        self.counts["right"] += n

    def refused(self, n: int = 1) -> None:
        self.counts["refused"] += n

    def wrong(self, what: str) -> None:
        """what (str): the case, what was expected and what came, enough to repeat it."""
        self.counts["wrong"] += 1
        self.failures.append(what)

    def check(self, holds: Any, what: str) -> None:
        """A case that is right if something holds."""
        if holds:
            self.right()
        else:
            self.wrong(what)

    @contextmanager
    def refuses(self, what: str, *named: str, errors: tuple[type[Exception], ...] = (ValueError,)) -> Iterator[None]:
        """A case that is refused: with one of these errors, and a message in which each of `named` stands."""
        try:
            yield
        except errors as error:
            missing = [name for name in named if name not in str(error)]
            if missing:
                self.wrong(f"{what}: the message does not name {missing}: {error}")
            else:
                self.refused()
        except Exception as error:  # the case is judged, not the test ended
            self.wrong(f"{what}: {type(error).__name__}: {error}")
        else:
            self.wrong(f"{what}: accepted")


def parts(n: int, *, quick: int = 1) -> list[Any]:
    """Numbers 0 to n - 1 to parametrize with, seeds of a part each; those from `quick` on are marked slow.

    n (int): parts of the whole. quick (int): how many of them every run of the suite takes.
    """
    return [pytest.param(part, marks=pytest.mark.slow if part >= quick else ()) for part in range(n)]
