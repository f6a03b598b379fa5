"""A matrix of similarities: its cells, its legend, and how similar tokens are to what stands on the other side."""

from collections.abc import Sequence

import numpy

from ..render.markup import clean
from .colours import STEPS, step
from .errors import Errors
from .rows import Text

LOWEST, HIGHEST = -1.0, 1.0  # the ends of the scale for which a picture has none of its own
LEAST = 0.01  # difference between similarities that the colours of a picture span
APART = 0.15  # of the length of the legend, between two numbers


def check_range(low: float | None, high: float | None) -> None:
    """RAISES (ValueError): if no colours can be given to similarities between these ends."""
    low, high = LOWEST if low is None else low, HIGHEST if high is None else high
    if not (low < high and high > 0):
        raise ValueError(Errors.VISUAL_RANGE.format(low=low, high=high))


def range_of(cosines: numpy.ndarray, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the similarities of the outermost colours: those given, or the range of cosines in whole hundredths.

    cosines (float64): those to tell apart, without that of any text to itself. low, high: None for one not given. If
        only one is given, the other is -1 or 1; so are both if all cosines are equal but for less than 0.01.
    """
    if low is None and high is None and cosines.size and numpy.ptp(cosines) >= LEAST:
        ends = float(numpy.floor(100 * cosines.min() + 1e-6)), float(numpy.ceil(100 * cosines.max() - 1e-6))
        return ends[0] / 100, ends[1] / 100
    return LOWEST if low is None else low, HIGHEST if high is None else high


Head = dict[str, object]  # of a row or column: its place, its number ("" for none) and its label


def table(
    heads: Sequence[Head], columns: Sequence[Head], cosines: numpy.ndarray, low: float, high: float
) -> dict[str, object]:
    """What visual/heatmap.html speaks of.

    heads (n), columns (m): of the rows and of the columns. cosines: float64 (n, m).
    """
    rows = [(head, cells(row, low, high)) for head, row in zip(heads, cosines.tolist(), strict=True)]
    return {"columns": columns, "rows": rows, **legend(low, high)}


def cells(row: Sequence[float], low: float, high: float) -> list[dict[str, str]]:
    """How each similarity of a row is shown: its colour, and the number with four digits and with two."""
    return [
        {"kind": _kind(step(value, low, high)), "exact": _rounded(value, 4), "short": _rounded(value, 2)}
        for value in row
    ]


def steps(low: float, high: float) -> list[int]:
    """The place among the colours of each similarity from -1 to 1, by hundredths."""
    return [step(hundredths / 100, low, high) + STEPS for hundredths in range(-100, 101)]


def legend(low: float, high: float) -> dict[str, object]:
    """Return the colours from low to high, the similarities below them with their places from 0 to 1, and the
    similarity from which the bars of the cells are measured."""
    inner = 0.0 if low < 0 < high else (low + high) / 2
    share = (inner - low) / (high - low)
    marks = [(low, 0.0), *([(inner, share)] if APART <= share <= 1 - APART else []), (high, 1.0)]
    return {
        "bar": [_kind(place) for place in range(step(low, low, high), step(high, low, high) + 1)],
        "marks": [(_mark(mark), round(place, 4)) for mark, place in marks],
        "zero": _mark(0.0 if low < 0 < high else low if low >= 0 else high),
        "below": low < 0,
    }


def cosines_of(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """The cosine of every two vectors: float64 (n, m).

    u (float64 (n, width)), v (float64 (m, width)): of length 1 or 0.
    RAISES (ValueError): if the widths differ.
    """
    if u.shape[1] != v.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[1], theirs=v.shape[1]))
    return numpy.clip(u @ v.T, -1.0, 1.0)  # rounding may exceed them


def shown_tokens(text: Text) -> list[str]:
    """The tokens of a text, each with the space behind it."""
    return [clean(token.text_with_ws) for token in text]


def hundredths(cosines: numpy.ndarray) -> list[list[int]]:
    """Cosines as whole numbers from -100 to 100, which take less of a page."""
    return numpy.rint(100 * cosines).astype("int64").tolist()


def _mark(value: float) -> str:
    return f"{round(value, 3) + 0.0:g}"


def _rounded(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no -0.00


def _kind(place: int) -> str:
    """The CSS class with the colour of a step."""
    return f"v{place + STEPS}"
