"""What is read of a text that is longer than the encoder's limit, and the one table of the ways."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import BeforeValidator

from ..errors import Warnings

# A function from n, room and cuts_left, see OverflowMode, to the wordpieces of each window
_Rule = Callable[[int, int, bool], Sequence[Sequence[int]]]


@dataclass(frozen=True)
class OverflowMode:
    """One way to read a text that is longer than the encoder's limit.

    rule (Callable): from the wordpieces of such a text (n), how many of them a window holds (room),
        and whether the tokenizer cuts at the left (truncation_side), to the indices of the
        wordpieces in each window, ascending. Every window has special tokens of its own beside.
    keeps_prompt (bool): whether every window begins with the whole prompt, so that it can be left
        out of the pooling.
    library_windows (slice): which windows of a text are read that the tokenizers library makes,
        where it has the same rule; None if it has not, so that the rule picks from the whole text.
    as_spacy_transformers (bool): whether what the rule returns is cut once more, at the right, with
        the special tokens there, and a Doc is read without its last space.
    export_warning (str): what an export to sentence-transformers, which truncates, warns of.
    """

    rule: _Rule
    keeps_prompt: bool
    library_windows: slice | None = None
    as_spacy_transformers: bool = False
    export_warning: str = ""

    @property
    def is_of_library(self) -> bool:
        """Whether the tokenizers library cuts texts before it adds special tokens."""
        return self.library_windows is not None and not self.as_spacy_transformers


def _truncated(n: int, room: int, cuts_left: bool) -> list[range]:
    if cuts_left:
        return [range(n - room, n)]
    return [range(room)]


def _windows(n: int, room: int, cuts_left: bool) -> list[range]:
    # The short window is the last, or the first if the tokenizer cuts at the left
    borders = [*range(0, n, room), n]
    if cuts_left:
        borders = [0, *range(n % room or room, n + 1, room)]
    return [range(start, end) for start, end in pairwise(borders)]


def _whole(n: int, room: int, cuts_left: bool) -> list[range]:
    return [range(n)]


# The keys are the names that configs use
OVERFLOW = {
    "truncate": OverflowMode(_truncated, keeps_prompt=True, library_windows=slice(1)),
    "windows": OverflowMode(
        _windows,
        keeps_prompt=False,
        library_windows=slice(None),
        export_warning=Warnings.EXPORT_WINDOWS,
    ),
    "cut": OverflowMode(
        _whole,
        keeps_prompt=True,
        library_windows=slice(1),
        as_spacy_transformers=True,
        export_warning=Warnings.EXPORT_CUT,
    ),
}


def _check_name(name: object) -> object:
    *others, last = map(repr, OVERFLOW)
    if name not in list(OVERFLOW):
        raise ValueError(f"{', '.join(others)} or {last}")
    return name


# A name of OVERFLOW, as a setting
Overflow = Annotated[str, BeforeValidator(_check_name)]
