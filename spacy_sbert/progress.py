"""Progress bars on standard error."""

import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

# Between two lines in a log file
_LINE_SECONDS = 30.0
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
    """Show a tqdm bar.

    Where standard error is a file or a pipe, such as a log file, a line every 30 seconds at most.

    shown (bool): whether there is a bar; None for one on a terminal alone. layout (str): as
        bar_format of tqdm.
    total, unit, desc, initial, leave: as of tqdm.
    YIELDS (tqdm): whose update(n) moves it on.
    """
    # Of a program without a console, or a daemon
    if sys.stderr is None or getattr(
        sys.stderr,
        "closed",
        False,
    ):
        shown = False
    # Of the process; a notebook has another one, and shows bars
    own = sys.__stderr__
    settings: dict[str, Any] = {
        "disable": None if shown is None else not shown,
        "leave": leave,
        "bar_format": layout,
    }
    if shown and own is not None and sys.stderr is own and not own.isatty():
        settings |= {
            "file": _Lines(own),
            "mininterval": _LINE_SECONDS,
            "maxinterval": _LINE_SECONDS,
        }
    with tqdm(total=total, initial=initial, desc=desc, unit=f" {unit}", **settings) as bar:
        yield bar


class _Lines:
    """A file in which each state of a bar is a line of its own."""

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


def progress_of(
    items: Iterable[ItemT],
    *,
    shown: bool | None,
    unit: str = "it",
    desc: str | None = None,
    total: int | None = None,
    leave: bool = True,
) -> Iterator[ItemT]:
    """Yield the items, with a bar that each of them moves on when the next is asked for.

    See progress_bar.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(total, shown=shown, unit=unit, desc=desc, leave=leave) as bar:
        for item in items:
            yield item
            bar.update()


@contextmanager
def ticking(desc: str, *, shown: bool | None) -> Iterator[None]:
    """Show a bar of one step for work that nobody can count, such as loading weights.

    See progress_bar.
    """
    with progress_bar(1, shown=shown, desc=desc, layout="{l_bar}{bar}| {elapsed}") as bar:
        yield
        bar.update()
