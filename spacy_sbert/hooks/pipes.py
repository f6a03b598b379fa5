"""The living `sbert` pipes: who made the vectors of a Doc can encode a text to compare with them."""

from itertools import chain, count
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy
from spacy.vocab import Vocab


@runtime_checkable
class LivingPipe(Protocol):
    """What others need of a pipe."""

    name: str
    vocab: Vocab

    def encode(self, texts: list[str], *, prompt_name: str | None) -> numpy.ndarray: ...

    def fingerprint(self, *, load: bool) -> str: ...

    def notify(self, message: str) -> None: ...


_pipes: WeakKeyDictionary[LivingPipe, int] = WeakKeyDictionary()  # when each was last registered
_times = count()


def register(pipe: LivingPipe) -> None:
    """Remember a pipe as long as it lives."""
    _pipes[pipe] = next(_times)


def find_pipe(vocab: Vocab, name: str, fingerprint: str = "") -> LivingPipe | None:
    """Return the pipe that made the vectors of a Doc, or one with the same encoder; None if there is none in memory.

    vocab (Vocab): of the Doc. name (str): under which its vectors are stored. fingerprint (str): of the encoder; "" if
        it is not known: then vocab and name must be those of the pipe.
    RAISES (OSError, ValueError): if the encoder of a pipe with this vocab is not found. That of others is not loaded.
    """

    def nearness(one: tuple[LivingPipe, int]) -> tuple[bool, bool, int]:
        pipe, time = one
        return pipe.vocab is vocab, pipe.name == name, time

    found = [pipe for pipe, _ in sorted(list(_pipes.items()), key=nearness, reverse=True)]
    if not fingerprint:
        return next((pipe for pipe in found if pipe.vocab is vocab and pipe.name == name), None)
    loaded = (pipe for pipe in found if pipe.fingerprint(load=False) == fingerprint)
    others = (pipe for pipe in found if pipe.vocab is vocab and pipe.fingerprint(load=True) == fingerprint)
    return next(chain(loaded, others), None)
