"""Damaged files: bytes that were changed, and a judge of what reads them, which ends what hangs and sees what runs."""

import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from counting import Cases

SECONDS = 60  # which no case comes near
RUNS_CODE = {"pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"}
EXECUTED: list[str] = []
WATCHED = [False]


class Hangs(BaseException):
    """Not an error that any code catches."""


def _watch(event: str, args: Any) -> None:
    if WATCHED[0] and event in RUNS_CODE:
        EXECUTED.append(event)


sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[None]:
    """End what hangs, and note what is executed."""

    def stop(number: int, frame: Any) -> None:
        raise Hangs(f"no end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    EXECUTED.clear()
    WATCHED[0] = True
    try:
        yield
    finally:
        WATCHED[0] = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damages(data: bytes, rng: random.Random, n: int, landmarks: Sequence[bytes] = ()) -> Iterator[tuple[str, bytes]]:
    """Damage data n times: one bit, some bytes, or the end; every second time at the beginning or a landmark.

    YIELDS (tuple): what was done, and the damaged data.
    """
    marks = [at for mark in landmarks if (at := data.find(mark)) >= 0] or [0]
    for number in range(n):
        near = min(rng.choice(marks) + rng.randrange(200 if landmarks else 300), max(len(data) - 1, 0))
        at = near if number % 2 else rng.randrange(max(len(data), 1))
        kind = rng.choice(("flip", "flip", "flip", "cut", "zeros", "swap", "removed", "inserted"))
        changed, end = bytearray(data), min(at + rng.randrange(1, 64), len(data))
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


def judge(cases: Cases, case: str, use: Callable[[], Any], is_same: Callable[[Any], bool], *named: str) -> None:
    """Right if what is read is the same, refused with an error in which all `named` stand, and nothing is executed."""
    try:
        with watched():
            found = use()
    except (ValueError, OSError) as error:
        missing = [name for name in named if name not in str(error)]
        if missing:
            cases.wrong(f"{case}: the message does not name {missing}: {type(error).__name__}: {str(error)[:300]}")
        else:
            cases.refused()
    except (Exception, Hangs) as error:  # the case is judged, not the test ended
        cases.wrong(f"{case}: {type(error).__name__}: {str(error)[:300]}")
    else:
        cases.check(is_same(found), f"{case}: other results")
    if EXECUTED:
        cases.wrong(f"{case}: executed {EXECUTED}")
