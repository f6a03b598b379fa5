"""The heat map: the similarity of every two texts, and of their tokens to the other text."""

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy
from spacy.tokens import Doc, Span

from ..errors.checks import validated
from ..similarity import unit_length
from .errors import Errors
from .matrix import Head, check_range, cosines_of, hundredths, range_of, shown_tokens, steps, table
from .order import Order, similarity_order
from .picture import Picture
from .rows import Text, as_rows, language, row_vector, token_vectors, unit_rows

MOST = 64  # texts on a side: more cells than can be read
MOST_NUMBERS = 10**6  # similarities of tokens, about 3 MB of the page
HINT = "Point at a cell, or move between cells with the arrow keys, to read both texts."
ShownText = dict[str, Any]  # its tokens and their cosines
ORDERED = "Similar texts stand side by side; the numbers are those of the given order."


@validated
def heatmap(
    docs: Text | Iterable[Text],
    *,
    columns: Text | Iterable[Text] | None = None,
    tokens: bool = True,
    low: float | None = None,
    high: float | None = None,
    title: str | None = None,
    order: Order | None = None,
) -> Picture:
    """Draw the cosine similarity of every two texts, or of each text to each text of another collection.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Doc, Span or Iterable of them): the rows. columns: the columns; by default the same texts.
    tokens (bool): whether to colour the tokens of two texts by their similarity to the other text, if the pipeline
        keeps vectors of tokens.
    low, high (float): the similarities of the outermost colours. By default the lowest and the highest in the picture,
        without those of texts to themselves, and for tokens theirs; if only one is given, the other is -1 or 1.
    title (str): above the picture.
    order (str): "similarity", each side in the order of its dendrogram, see similarity_order, or "given"; by default
        as given for the sentences of a single Doc or Span and where there are columns, else by similarity.
    RETURNS (Picture): a table.
    RAISES (ValueError): for fewer than two texts, more than 64 on a side, an unknown order, or vectors that are
        missing, of unequal widths or not finite.
    """
    check_range(low, high)
    by_similarity = _is_by_similarity(order, columns is not None or isinstance(docs, (Doc, Span)))
    rows = list(as_rows(docs))
    others = rows if columns is None else list(as_rows(columns))
    check_counts(len(rows), len(others), square=columns is None)
    u = unit_rows(map(row_vector, rows, count()))
    v = u if columns is None else unit_rows(map(row_vector, others, count()))
    cosines = cosines_of(u, v)
    told_apart = cosines[~numpy.eye(len(rows), dtype=bool)] if columns is None else cosines
    ends = range_of(told_apart, low, high)
    if tokens:
        _check_tokens(rows, others, columns is None)
    down, across = (similarity_order(cosines_of(side, side)) if by_similarity else range(len(side)) for side in (u, v))
    counts = f"{len(rows)}" if columns is None else f"{len(rows)} and {len(others)}"
    return Picture(
        template="visual/heatmap.html",
        title=title or f"Cosine similarity of {counts} texts",
        note=f"{ORDERED} {HINT}" if by_similarity else HINT,
        lang=language(rows[0]),
        drawn=table(_heads(rows, down), _heads(others, across), cosines[numpy.ix_(down, across)], *ends),
        data=_data(
            _texts(rows, v if tokens else None),
            None if columns is None else _texts(others, u if tokens else None),
            low,
            high,
        ),
    )


def _is_by_similarity(order: str | None, is_ordered: bool) -> bool:
    """Whether to order texts by their similarity; is_ordered: whether they are in an order, if nobody asks."""
    return order == "similarity" or (order is None and not is_ordered)


def check_counts(rows: int, columns: int, *, square: bool) -> None:
    """RAISES (ValueError): if a heat map cannot have so many texts on a side; square: those of rows are its columns."""
    least = 2 if square else 1
    if not least <= min(rows, columns):
        raise ValueError(Errors.VISUAL_TOO_FEW.format(given=min(rows, columns), least=least))
    if max(rows, columns) > MOST:
        raise ValueError(Errors.VISUAL_TOO_MANY_CELLS.format(given=max(rows, columns), most=MOST))


def _check_tokens(rows: Sequence[Text], others: Sequence[Text], square: bool) -> None:
    numbers = sum(map(len, rows)) * len(others) + (0 if square else sum(map(len, others)) * len(rows))
    if numbers > MOST_NUMBERS:
        raise ValueError(Errors.VISUAL_TOO_MANY_TOKENS.format(given=numbers, most=MOST_NUMBERS))


def _heads(texts: Sequence[Text], order: Iterable[int]) -> list[Head]:
    """What stands before a row or above a column: its place among the texts as given, and its text on one line."""
    return [{"place": place, "number": place + 1, "label": " ".join(texts[place].text.split())} for place in order]


def _texts(rows: Sequence[Text], others: numpy.ndarray | None) -> list[ShownText]:
    """What the script shows of each text: its tokens, and how similar they are to each of the other side."""
    return [
        {
            "tokens": shown_tokens(row),
            "cosines": None if others is None else _token_cosines(token_vectors(row), others),
        }
        for row in rows
    ]


def _data(
    rows: list[ShownText], columns: list[ShownText] | None, low: float | None, high: float | None
) -> dict[str, object]:
    """Return what the script shows. Tokens have a range of their own, as theirs may be lower."""
    found = (values for text in rows + (columns or []) for values in text["cosines"] or () if values)
    ends = range_of(numpy.fromiter(chain.from_iterable(found), "float64") / 100, low, high)
    return {"rows": rows, "columns": columns, "steps": steps(*ends), "range": " to ".join(f"{end:g}" for end in ends)}


def _token_cosines(vectors: list[numpy.ndarray | None], others: numpy.ndarray) -> list[list[int] | None] | None:
    """Cosine x 100 of each token to each of m others, float64 (m, width); None without a vector, or for all if none."""
    found = [vector for vector in vectors if vector is not None]
    if not found:
        return None
    cosines = iter(hundredths(cosines_of(unit_length(numpy.stack(found).astype("float64")), others)))
    return [None if vector is None else next(cosines) for vector in vectors]
