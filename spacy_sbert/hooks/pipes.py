"""The living `sbert` pipes: who made the vectors of a Doc can encode a text to compare with them."""

from itertools import count
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy
from spacy.vocab import Vocab


class LivingPipe(Protocol):
    """What others need of a pipe."""

    name: str
    vocab: Vocab

    def encode(self, texts: list[str], *, prompt_name: str | None) -> numpy.ndarray: ...

    def notify(self, message: str) -> None: ...


_pipes: WeakKeyDictionary[LivingPipe, int] = WeakKeyDictionary()  # when each was last registered
_times = count()


def register(pipe: LivingPipe) -> None:
    """Remember a pipe as long as it lives."""
    _pipes[pipe] = next(_times)


def find_pipe(vocab: Vocab, name: str) -> LivingPipe | None:
    """The pipe of this name in a pipeline with this vocab; of several, one may have replaced the other, the last that
    was made or at work."""
    found = [(time, pipe) for pipe, time in list(_pipes.items()) if pipe.vocab is vocab and pipe.name == name]
    return max(found, key=lambda one: one[0])[1] if found else None
