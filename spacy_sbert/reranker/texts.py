"""The texts of pairs as they are given, and as they are returned."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from ..errors.checks import check_text, shown
from ..errors.texts import NOT_SEVERAL, Text, column_names, text_of
from .errors import Errors
from .tokenizer import Pair

TextT = TypeVar("TextT", bound=Text)
WINDOW = 4096  # pairs that are tokenised and sorted together


@dataclass(frozen=True)
class Ranked(Generic[TextT]):
    """One of the texts that were ranked.

    text: as it was given. score: that of its pair with the query. index: its place among those given.
    """

    text: TextT
    score: float
    index: int


def read_windows(pairs: Iterable[tuple[Text, Text]], size: int = WINDOW) -> Iterator[list[Pair]]:
    """The texts of pairs, so many at a time. RAISES (TypeError): if one is not a pair of texts."""
    if not isinstance(pairs, Iterable) or isinstance(pairs, NOT_SEVERAL) or column_names(pairs) is not None:
        raise TypeError(Errors.RERANKER_NO_PAIRS.format(given=" ".join(shown(pairs).split())))
    stream = (_texts_of(pair, number) for number, pair in enumerate(pairs))
    while window := list(islice(stream, size)):
        yield window


def _texts_of(pair: object, number: int) -> Pair:
    if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(text, Text) for text in pair)):
        raise TypeError(Errors.RERANKER_NO_PAIR.format(number=number, given=repr(pair)[:100]))
    first, second = map(text_of, pair)
    check_text(first, f"the first text of pair number {number}")
    check_text(second, f"the second text of pair number {number}")
    return first, second
