"""Progress bars that tick: whoever waits sees that work goes on, also while one long step of it is under way."""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

SECONDS = 1.0  # between two ticks
LINE_SECONDS = 30.0  # between two lines in a log file
ONE_STEP = "{l_bar}{bar}| {elapsed}"  # where nothing is counted
ONE_STEP_BEGUN = "{desc}:   0%|          | "  # as tqdm has it
APART = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
shown, seconds, began, ended = sys.argv[1], float(sys.argv[2]), time.monotonic(), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
while not ended.wait(seconds):
    minutes, rest = divmod(int(time.monotonic() - began), 60)
    sys.stderr.write(f"\\r{shown}{minutes:02d}:{rest:02d}")
    sys.stderr.flush()
"""
ItemT = TypeVar("ItemT")


@contextmanager
def progress_bar(
    total: int | None = None,
    *,
    shown: bool | None,
    unit: str = "it",
    desc: str | None = None,
    initial: int = 0,
    leave: bool = True,
    layout: str | None = None,
) -> Iterator[tqdm]:
    """A bar that is drawn anew every second, with the time that went by, even if nothing moves it on.

    Where standard error is a file or a pipe, such as a log file, the bar is a line every 30 seconds instead.

    total (int): how many steps there are, if that is known; initial (int): how many of them are done.
    shown (bool): whether there is a bar; None for one on a terminal alone.
    unit, desc (str): what is counted, and what is done. leave (bool): whether the bar stays when all is done.
    layout (str): as bar_format of tqdm; None for its own.
    YIELDS (tqdm): whose update(n) moves it on.
    """
    disable = None if shown is None else not shown
    settings: dict[str, Any] = {
        "desc": desc,
        "unit": f" {unit}",
        "leave": leave,
        "disable": disable,
        "bar_format": layout,
    }
    seconds = SECONDS
    if shown and _is_log():
        seconds = LINE_SECONDS
        settings |= {"file": _Lines(sys.stderr), "mininterval": seconds, "maxinterval": seconds}
    with tqdm(total=total, initial=initial, **settings) as bar:
        if bar.disable:
            yield bar
            return
        ended = Event()
        ticker = Thread(target=_tick, args=(bar, ended, seconds), name="progress", daemon=True)
        ticker.start()
        try:
            yield bar
        finally:
            ended.set()
            ticker.join()


class _Lines:
    """A file in which each drawing of a bar is a line of its own."""

    def __init__(self, file: TextIO):
        self._file = file
        self._last = ""
        self.encoding = file.encoding

    def write(self, text: str) -> None:
        line = text.strip()
        if line and line != self._last:
            self._last = line
            self._file.write(f"{line}\n")

    def flush(self) -> None:
        self._file.flush()


def _is_log() -> bool:
    """Whether standard error is that of the process, and no terminal: a notebook's is its own, and shows bars."""
    own = sys.__stderr__
    return own is not None and sys.stderr is own and not own.isatty()


def progress_of(
    items: Iterable[ItemT],
    *,
    shown: bool | None,
    unit: str = "it",
    desc: str | None = None,
    total: int | None = None,
    leave: bool = True,
) -> Iterator[ItemT]:
    """The items, with a bar that each of them moves on when the next is asked for; see progress_bar.

    total (int): how many, if they do not tell.
    """
    count = len(items) if total is None and isinstance(items, Sized) else total
    with progress_bar(count, shown=shown, unit=unit, desc=desc, leave=leave) as bar:
        for item in items:
            yield item
            bar.update()


@contextmanager
def ticking(desc: str, *, shown: bool | None, alone: bool = False) -> Iterator[None]:
    """A bar for work that nobody can count, such as loading weights: it shows the time that goes by; see progress_bar.

    desc (str): what is done. alone (bool): whether the work lets no other thread of Python run, as SciPy's linear
        algebra and linkage do not: another process draws the bar meanwhile.
    """
    with progress_bar(1, shown=shown, desc=desc, layout=ONE_STEP) as bar, ExitStack() as stack:
        if alone and not bar.disable:
            stack.enter_context(_drawn_apart(desc))
        yield
        stack.close()
        bar.update()


@contextmanager
def _drawn_apart(desc: str) -> Iterator[None]:
    """Another process draws the bar of ticking every second, until its standard input ends: also if this one dies."""
    if not sys.executable or sys.stderr is not sys.__stderr__ or _is_log():  # where it would not write, or not draw
        yield
        return
    command = [sys.executable, "-I", "-c", APART, ONE_STEP_BEGUN.format(desc=desc), str(SECONDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
        yield
        other.communicate()


def _tick(bar: tqdm, ended: Event, seconds: float) -> None:
    while not ended.wait(seconds):
        bar.refresh()
