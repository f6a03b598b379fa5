"""Shuffling of what is streamed, in constant memory."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def shuffle(items: Iterable[Item], size: int, random: Random) -> Iterator[Item]:
    """Shuffle a stream through a buffer: each item moves back as far as chance has it, forward by the buffer at most.

    items (Iterable): the stream.
    size (int): how many items are held, 0 to leave the order as it is.
    random (Random): where chance comes from; the global generator is left alone.
    YIELDS: every item once.
    """
    if not size:
        yield from items
        return
    held: list[Item] = []
    for item in items:
        if len(held) < size:
            held.append(item)
            continue
        place = random.randrange(size)
        yield held[place]
        held[place] = item
    random.shuffle(held)
    yield from held
