"""The heat map: the similarity of every two texts, and of their tokens to the other text."""

from collections.abc import Iterable, Sequence
from itertools import count

import numpy

from ..errors.checks import validated
from ..render.markup import clean
from ..similarity import unit_length
from .colours import STEPS, step
from .errors import Errors
from .picture import Picture
from .rows import Text, as_rows, language, row_vector, token_vectors, unit_rows

MOST = 64  # texts on a side: more cells than can be read
MOST_NUMBERS = 10**6  # similarities of tokens, about 3 MB of the page
HINT = "Point at a cell, or move between cells with the arrow keys, to read both texts."


@validated
def heatmap(
    docs: Text | Iterable[Text],
    *,
    columns: Text | Iterable[Text] | None = None,
    tokens: bool = True,
    low: float = -1.0,
    high: float = 1.0,
    title: str | None = None,
) -> Picture:
    """Draw the cosine similarity of every two texts, or of each text to each text of another collection.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Doc, Span or Iterable of them): the rows. columns: the columns; by default the same texts.
    tokens (bool): whether to colour the tokens of two texts by their similarity to the other text, if the pipeline
        keeps vectors of tokens.
    low, high (float): the similarities of the outermost colours; a narrow range tells close similarities apart.
    title (str): above the picture.
    RETURNS (Picture): a table.
    RAISES (ValueError): for fewer than two texts, more than 64 on a side, or vectors that are missing, of unequal
        widths or not finite.
    """
    if not (low < high and high > 0):
        raise ValueError(Errors.VISUAL_RANGE.format(low=low, high=high))
    rows = list(as_rows(docs))
    others = rows if columns is None else list(as_rows(columns))
    _check_counts(len(rows), len(others), columns is None)
    u = unit_rows(map(row_vector, rows, count()))
    v = u if columns is None else unit_rows(map(row_vector, others, count()))
    if u.shape[1] != v.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[1], theirs=v.shape[1]))
    if tokens:
        _check_tokens(rows, others, columns is None)
    cosines = numpy.clip(u @ v.T, -1.0, 1.0)  # rounding may exceed them
    counts = f"{len(rows)}" if columns is None else f"{len(rows)} and {len(others)}"
    return Picture(
        template="visual/heatmap.html",
        title=title or f"Cosine similarity of {counts} texts",
        note=HINT,
        lang=language(rows[0]),
        drawn={
            "columns": _labels(others),
            "rows": list(zip(_labels(rows), (_cells(row, low, high) for row in cosines.tolist()), strict=True)),
            **_legend(low, high),
        },
        data={
            "rows": _texts(rows, v if tokens else None),
            "columns": None if columns is None else _texts(others, u if tokens else None),
            "steps": [step(hundredths / 100, low, high) + STEPS for hundredths in range(-100, 101)],
        },
    )


def _check_counts(rows: int, columns: int, square: bool) -> None:
    least = 2 if square else 1
    if not least <= min(rows, columns):
        raise ValueError(Errors.VISUAL_TOO_FEW.format(given=min(rows, columns), least=least))
    if max(rows, columns) > MOST:
        raise ValueError(Errors.VISUAL_TOO_MANY_CELLS.format(given=max(rows, columns), most=MOST))


def _check_tokens(rows: Sequence[Text], others: Sequence[Text], square: bool) -> None:
    numbers = sum(map(len, rows)) * len(others) + (0 if square else sum(map(len, others)) * len(rows))
    if numbers > MOST_NUMBERS:
        raise ValueError(Errors.VISUAL_TOO_MANY_TOKENS.format(given=numbers, most=MOST_NUMBERS))


def _texts(rows: Sequence[Text], others: numpy.ndarray | None) -> list[dict[str, object]]:
    """What the script shows of each text: its tokens, and how similar they are to each of the other side."""
    return [
        {
            "tokens": [clean(token.text_with_ws) for token in row],
            "cosines": None if others is None else _token_cosines(token_vectors(row), others),
        }
        for row in rows
    ]


def _token_cosines(vectors: list[numpy.ndarray | None], others: numpy.ndarray) -> list[list[int] | None] | None:
    """Cosine x 100 of each token to each of m others, float64 (m, width); None without a vector, or for all if none."""
    found = [vector for vector in vectors if vector is not None]
    if not found:
        return None
    cosines = unit_length(numpy.stack(found).astype("float64")) @ others.T
    hundredths = iter(numpy.rint(100 * numpy.clip(cosines, -1.0, 1.0)).astype(int).tolist())
    return [None if vector is None else next(hundredths) for vector in vectors]


def _cells(row: Sequence[float], low: float, high: float) -> list[dict[str, str]]:
    """How each similarity of a row is shown: its colour, and the number with four digits and with two."""
    return [
        {"kind": _kind(step(value, low, high)), "exact": _rounded(value, 4), "short": _rounded(value, 2)}
        for value in row
    ]


def _rounded(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no -0.00


def _kind(place: int) -> str:
    """The CSS class with the colour of a step."""
    return f"v{place + STEPS}"


def _labels(rows: Sequence[Text]) -> list[str]:
    """The texts, each on one line."""
    return [" ".join(row.text.split()) for row in rows]


def _legend(low: float, high: float) -> dict[str, list[str]]:
    """The colours, and the similarities that they begin with, pass through and end with."""
    if low < 0:
        low, high = -max(-low, high), max(-low, high)
    marks = [f"{round(mark, 3) + 0.0:g}" for mark in (low, (low + high) / 2, high)]
    return {"bar": [_kind(place) for place in range(-STEPS if low < 0 else 0, STEPS + 1)], "marks": marks}
