"""Counted cases of tests/reliability: each is right, refused by name, or wrong. And damaged files,
and their judge.
"""

import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

# Of what went wrong
SHOWN = 10
# By promise
COUNTS = pytest.StashKey[dict[str, Counter]]()
# Which no case comes near
SECONDS = 60
RUNS_CODE = {"pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"}


@dataclass
class Cases:
    """The cases of one promise, such as "a text has the same vector by nlp and encode", with what
    went wrong.
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
        if holds:
            self.right()
        else:
            self.wrong(what)

    def check_message(self, error: object, what: str, *named: str) -> None:
        """Count a refusal: its message must contain all of `named`."""
        missing = [name for name in named if name not in str(error)]
        if missing:
            self.wrong(
                f"{what}: the message does not name {missing}: {type(error).__name__}: "
                f"{str(error)[:300]}"
            )
        else:
            self.refused()

    @contextmanager
    def refuses(
        self, what: str, *named: str, errors: tuple[type[Exception], ...] = (ValueError,)
    ) -> Iterator[None]:
        """Count a case that must be refused: with one of these errors, and a message that contains
        all of `named`.
        """
        try:
            yield
        except errors as error:
            self.check_message(error, what, *named)
        except Exception as error:
            # The case is judged, not the test ended
            self.wrong(f"{what}: {type(error).__name__}: {error}")
        else:
            self.wrong(f"{what}: accepted")


def parts(n: int, *, quick: int = 1) -> list[Any]:
    """Numbers 0 to n - 1 to parametrize with, seeds of a part each; those from `quick` on are
    marked slow.
    """
    return [
        pytest.param(part, marks=pytest.mark.slow if part >= quick else ()) for part in range(n)
    ]


def damages(
    data: bytes, rng: random.Random, n: int, landmarks: Sequence[bytes] = ()
) -> Iterator[tuple[str, bytes]]:
    """Damage data n times: one bit, some bytes, or the end; every second time at the beginning or a
    landmark.

    YIELDS (tuple): what was done, and the damaged data.
    """
    marks = [at for mark in landmarks if (at := data.find(mark)) >= 0] or [0]
    for number in range(n):
        near = min(
            rng.choice(marks) + rng.randrange(200 if landmarks else 300), max(len(data) - 1, 0)
        )
        at = near if number % 2 else rng.randrange(max(len(data), 1))
        kind = rng.choice(("flip", "flip", "flip", "cut", "zeros", "swap", "removed", "inserted"))
        changed = bytearray(data)
        end = min(at + rng.randrange(1, 64), len(data))
        if kind == "flip" and data:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del changed[at:]
        elif kind == "zeros":
            changed[at:end] = bytes(end - at)
        elif kind == "swap":
            changed[at:end] = changed[at:end][::-1]
        elif kind == "removed":
            del changed[at:end]
        else:
            changed[at:at] = rng.randbytes(max(end - at, 1))
        yield f"{kind} at {at} of {len(data)}", bytes(changed)


class Hangs(BaseException):
    """Not an error that any code catches."""


_watched = [False]
_executed = []


def _watch(event: str, args: Any) -> None:
    if _watched[0] and event in RUNS_CODE:
        _executed.append(event)


sys.addaudithook(_watch)


def judge(
    cases: Cases, case: str, use: Callable[[], Any], is_same: Callable[[Any], bool], *named: str
) -> None:
    """Right if what is read is the same, refused with an error that names all of `named`; nothing
    hangs or runs.
    """

    def stop(number: int, frame: Any) -> None:
        raise Hangs(f"no end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    _executed.clear()
    _watched[0] = True
    try:
        found = use()
    except (ValueError, OSError) as error:
        cases.check_message(error, case, *named)
    except (Exception, Hangs) as error:
        # The case is judged, not the test ended
        cases.wrong(f"{case}: {type(error).__name__}: {str(error)[:300]}")
    else:
        cases.check(is_same(found), f"{case}: other results")
    finally:
        _watched[0] = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if _executed:
        cases.wrong(f"{case}: executed {_executed}")
