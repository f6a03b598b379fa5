"""Progress bars that tick: whoever waits sees that work goes on, also while one long step of it is under way."""

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

from tqdm import tqdm

SECONDS = 1.0  # between two ticks
ONE_STEP = "{l_bar}{bar}| {elapsed}"  # where nothing is counted
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

    total (int): how many steps there are, if that is known; initial (int): how many of them are done.
    shown (bool): whether there is a bar; None for one on a terminal alone.
    unit, desc (str): what is counted, and what is done. leave (bool): whether the bar stays when all is done.
    layout (str): as bar_format of tqdm; None for its own.
    YIELDS (tqdm): whose update(n) moves it on.
    """
    disable = None if shown is None else not shown
    settings = {"desc": desc, "unit": f" {unit}", "leave": leave, "disable": disable, "bar_format": layout}
    with tqdm(total=total, initial=initial, **settings) as bar:
        if bar.disable:
            yield bar
            return
        ended = Event()
        ticker = Thread(target=_tick, args=(bar, ended), name="progress", daemon=True)
        ticker.start()
        try:
            yield bar
        finally:
            ended.set()
            ticker.join()


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
def ticking(desc: str, *, shown: bool | None) -> Iterator[None]:
    """A bar for work that nobody can count, such as loading weights: it shows the time that goes by; see progress_bar.

    desc (str): what is done.
    """
    with progress_bar(1, shown=shown, desc=desc, layout=ONE_STEP) as bar:
        yield
        bar.update()


def _tick(bar: tqdm, ended: Event) -> None:
    while not ended.wait(SECONDS):
        bar.refresh()
