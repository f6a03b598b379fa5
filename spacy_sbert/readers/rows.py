"""An example as it stands in a file, and the checks that every layout makes of one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..files.lines import check_text
from .errors import Errors

TRIPLET = 3
BOOLEANS = {"true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0}
LONGEST = 9  # characters of one of these with white space around it


@dataclass(frozen=True)
class Row:
    """An example as it stands in a file.

    members: its texts, in order, without white space around them. line: where it starts, counted from 1.
    score: gold similarity from 0 to 1, None where there is none. label: gold label, None where there is none.
    """

    members: tuple[str, ...]
    line: int
    score: float | None = None
    label: str | None = None


def from_boolean(value: object) -> object:
    """Return a boolean that is written as a word, such as "True" or "no", as 1 or 0; other values as they are."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return value
    return BOOLEANS.get(value.strip().lower(), value)


def check_members(texts: Sequence[object], names: Sequence[str], path: Path, line: int) -> tuple[str, ...]:
    """The members of an example, without white space around them.

    texts: what the columns hold. names (Sequence[str]): what to call the columns in errors.
    RAISES (ValueError): for a text that is empty or cannot be encoded, or two equal members of a triplet.
    """
    members = tuple(check_text(text, name, path, line) for text, name in zip(texts, names, strict=True))
    if len(members) == TRIPLET and len(set(members)) < TRIPLET:
        same = [name for name, member in zip(names, members, strict=True) if members.count(member) > 1]
        raise ValueError(Errors.EQUAL_MEMBERS.format(path=path, line=line, columns=" and ".join(same)))
    return members


def check_score(value: object, low: float, high: float, path: Path, line: int, column: str) -> float:
    """A score scaled from low..high to 0..1. RAISES (ValueError): if it is not a number from low to high."""
    try:
        score = float(cast(float, value))
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not low <= score <= high:  # also refuses nan
        given = {"given": value, "low": low, "high": high, "column": column}
        raise ValueError(Errors.BAD_SCORE.format(path=path, line=line, **given))
    return (score - low) / (high - low)
