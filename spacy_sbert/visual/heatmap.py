"""The heat map: the similarity of every two texts, and of their tokens to the other text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from ..errors.checks import validated
from ..render.markup import clean, safe
from ..similarity import unit_length
from .colours import STEPS, step
from .errors import Errors
from .picture import Picture
from .rows import Text, as_rows, language, row_vector, token_vectors, unit_rows
from .script import HEATMAP

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
    """Draw the cosine similarity of every two texts, or of each text to each of others.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Doc, Span or Iterable of them): the rows. columns: the columns; by default the same texts.
    tokens (bool): whether the tokens of two texts are coloured by their similarity to the other text, where the
        pipeline keeps the vectors of tokens.
    low, high (float): the similarities of the outermost colours; for an encoder whose similarities lie close together.
    title (str): above the picture.
    RETURNS (Picture): a table.
    RAISES (ValueError): for less than two texts, more than 64 on a side, or vectors that are missing, of unequal widths
        or not finite.
    """
    if not (low < high and high > 0):
        raise ValueError(Errors.VISUAL_RANGE.format(low=low, high=high))
    rows = list(as_rows(docs))
    others = rows if columns is None else list(as_rows(columns))
    _check_counts(len(rows), len(others), columns is None)
    u = _vectors(rows)
    v = u if columns is None else _vectors(others)
    if u.shape[1] != v.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[1], theirs=v.shape[1]))
    if tokens:
        _check_tokens(rows, others, columns is None)
    cosines = numpy.clip(u @ v.T, -1.0, 1.0)  # rounding may go beyond
    table = _table(_labels(rows), _labels(others), cosines, low, high)
    counts = f"{len(rows)}" if columns is None else f"{len(rows)} and {len(others)}"
    data = {
        "rows": _texts(rows, v if tokens else None),
        "columns": None if columns is None else _texts(others, u if tokens else None),
        "steps": [step(hundredths / 100, low, high) + STEPS for hundredths in range(-100, 101)],
    }
    return Picture(
        title=title or f"Cosine similarity of {counts} texts",
        note=HINT,
        body=f'{_legend(low, high)}\n{table}\n<div class="pair" role="status"></div>',
        data=data,
        script=HEATMAP,
        lang=language(rows[0]),
    )


def _vectors(rows: Sequence[Text]) -> numpy.ndarray:
    return unit_rows([row_vector(row, number) for number, row in enumerate(rows)])


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


def _texts(rows: Sequence[Text], others: numpy.ndarray | None) -> list[dict[str, Any]]:
    """What the script shows of each text: its tokens, and how similar they are to each of the other side."""
    return [
        {
            "tokens": [clean(token.text_with_ws) for token in row],
            "cosines": None if others is None else _token_cosines(token_vectors(row), others),
        }
        for row in rows
    ]


def _token_cosines(vectors: list[numpy.ndarray | None], others: numpy.ndarray) -> list[list[int] | None] | None:
    """Cosine similarity x 100 of each token to each of the other side; None where there is no vector, or none at all.

    others (float64 array of shape (m, width)): of length 1 or 0.
    """
    found = [vector for vector in vectors if vector is not None]
    if not found:
        return None
    cosines = unit_length(numpy.stack(found).astype("float64")) @ others.T
    hundredths = iter(numpy.rint(100 * numpy.clip(cosines, -1.0, 1.0)).astype(int).tolist())
    return [None if vector is None else next(hundredths) for vector in vectors]


def _table(rows: Sequence[str], columns: Sequence[str], cosines: numpy.ndarray, low: float, high: float) -> str:
    heads = "".join(
        f'<th scope="col"><div dir="auto" title="{label}">{label}</div><b>{number}</b></th>'
        for number, label in enumerate(columns, 1)
    )
    lines = []
    for row, label in enumerate(rows):
        head = f'<th scope="row"><div><b>{row + 1}</b><span dir="auto" title="{label}">{label}</span></div></th>'
        cells = "".join(_cell(row, column, value, low, high) for column, value in enumerate(cosines[row].tolist()))
        lines.append(f"<tr>{head}{cells}</tr>\n")
    return (
        '<div class="matrix"><table role="grid" aria-label="Cosine similarities">'
        f"<thead><tr><td></td>{heads}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def _cell(row: int, column: int, value: float, low: float, high: float) -> str:
    reached = 0 if row == column == 0 else -1  # by the tab key; arrow keys go on from there
    return (
        f'<td class="v{step(value, low, high) + STEPS}" tabindex="{reached}" data-cosine="{value + 0.0:.4f}" '
        f'aria-label="{value:.4f}, texts {row + 1} and {column + 1}">{_short(value)}</td>'
    )


def _short(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def _labels(rows: Sequence[Text]) -> list[str]:
    """The texts as HTML, each on one line."""
    return [safe(" ".join(row.text.split())) for row in rows]


def _legend(low: float, high: float) -> str:
    """The colours, and the similarities that they begin, pass through and end with."""
    low = -max(-low, high) if low < 0 else low
    high = -low if low < 0 else high
    first = 0 if low < 0 else STEPS
    bar = "".join(f'<i class="v{place}"></i>' for place in range(first, 2 * STEPS + 1))
    marks = "".join(f"<span>{round(mark, 3) + 0.0:g}</span>" for mark in (low, (low + high) / 2, high))
    return (
        f'<div class="scale" role="img" aria-label="Colours from {low:g} to {high:g}">'
        f'<div class="bar">{bar}</div><div class="marks">{marks}</div></div>'
    )
