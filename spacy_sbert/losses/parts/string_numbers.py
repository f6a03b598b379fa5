"""Numbers in place of texts and labels, so that equality can be computed on the device."""

from collections.abc import Iterable
from types import ModuleType

import numpy
from thinc.types import Ints2d


def number_rows(rows: Iterable[Iterable[str]], xp: ModuleType) -> Ints2d:
    """Give equal strings equal numbers.

    rows (Iterable[Iterable[str]]): strings, the same number in each row.
    xp (module): numpy or cupy, where the numbers go.
    RETURNS (int (n_rows, n)): a number for each string.
    """
    known: dict[str, int] = {}
    return xp.asarray(numpy.array([[known.setdefault(text, len(known)) for text in row] for row in rows], dtype="i"))
