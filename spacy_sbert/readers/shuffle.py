"""Shuffling of what is streamed, in constant memory."""

from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def shuffle(items: Iterable[Item], size: int, random: Random) -> Iterator[Item]:
    """Shuffle a stream through a buffer: each item moves back as far as chance has it, forward by the buffer at most.

    size (int): how many items are held, 0 to leave the order as it is. random (Random): where chance comes from.
    YIELDS: every item once.
    """
    if not size:
        yield from items
        return
    stream = iter(items)
    held = list(islice(stream, size))
    for item in stream:
        place = random.randrange(size)
        yield held[place]
        held[place] = item
    random.shuffle(held)
    yield from held
