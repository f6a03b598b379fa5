"""What is wrong in the lines of a table: all kinds of it, in one message."""

import re
from collections.abc import Sequence
from pathlib import Path

from .errors import Errors

SAID = 5  # lines of a kind that a message names


class BadLines:
    """What is wrong in a table so far.

    path (Path): the table.
    """

    def __init__(self, path: Path):
        self.path = path
        # By their code: the message of the first, lines of others, how many there are.
        self._kinds: dict[str, tuple[str, list[int], int]] = {}

    def add(self, error: ValueError, line: int | None = None) -> None:
        """Note an error of a line, or one whose message names all its lines; of a kind the first is said in full."""
        said = str(error)
        code = re.match(r"\[[\w-]+\]", said)
        kind = code[0] if code else said
        first, known, before = self._kinds.get(kind, (said, [], 0))
        others = [line] if before and line is not None and len(known) < SAID else []
        self._kinds[kind] = first, [*known, *others], before + 1

    def check(self) -> None:
        """RAISES (ValueError): if there was something."""
        said = [
            f"{first} The same in {listed(others, count - 1)}." if others else first
            for first, others, count in self._kinds.values()
        ]
        if len(said) == 1:
            raise ValueError(said[0])
        if said:
            raise ValueError(Errors.TABLE_BAD_LINES.format(path=self.path, count=len(said), said="\n".join(said)))


def listed(lines: Sequence[int], count: int) -> str:
    """Lines by their numbers, the first of so many."""
    named = ", ".join(map(str, lines[:SAID]))
    more = count - len(lines[:SAID])
    return f"line{'s' if count > 1 else ''} {named}{f' and {more} more' if more else ''}"
