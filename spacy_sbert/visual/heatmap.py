"""Heat map of similarities."""

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any, Literal

import numpy
from scipy.cluster.hierarchy import leaves_list, linkage
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..render.plots import clean
from ..similarity import unit_length
from ..validation import validated
from .page import STEPS, Picture, step
from .rows import Text, as_rows, language, row_vector, token_vectors, unit_rows

Order = Literal["similarity", "given"]


def _similarity_order(cosines: numpy.ndarray) -> list[int]:
    """Return the order of the leaves of a dendrogram, turned so that neighbours are similar.

    d(i, j) = 1 - cos(i, j), average linkage; small sum_k d(o_k, o_(k + 1)) over the orders o that the dendrogram allows

    An order and its reverse are equally good: the first text comes before the last one.

    cosines (float array of shape (n, n)): the similarity of every two texts.
    RETURNS (list of int): n places of texts, from 0.
    SOURCE: Bar-Joseph, Gifford and Jaakkola 2001, Fast optimal leaf ordering for hierarchical clustering.
    """
    n = len(cosines)
    if n < 3:
        return list(range(n))
    distances = numpy.maximum(1 - cosines, 0.0)
    tree = linkage(distances[numpy.triu_indices(n, 1)], "average", optimal_ordering=True)
    order = leaves_list(tree).tolist()
    return order if order.index(0) < order.index(n - 1) else order[::-1]


LOWEST, HIGHEST = -1.0, 1.0  # the ends of the scale for which a picture has none of its own
LEAST = 0.01  # difference between similarities that the colours of a picture span
APART = 0.15  # of the length of the legend, between two numbers


def check_range(low: float | None, high: float | None) -> None:
    """Raise ValueError if no colours can be given to similarities between these ends."""
    low, high = LOWEST if low is None else low, HIGHEST if high is None else high
    if not (low < high and high > 0):
        raise ValueError(
            f"Cannot give similarities from {low} to {high} colours: expected low below high, high above 0, "
            "such as low = 0.6, high = 1.0."
        )


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
    """Return the variables of visual/heatmap.html.

    heads (n), columns (m): of the rows and of the columns. cosines: float64 (n, m).
    """
    rows = [(head, cells(row, low, high)) for head, row in zip(heads, cosines.tolist(), strict=True)]
    return {"columns": columns, "rows": rows, **legend(low, high)}


def cells(row: Sequence[float], low: float, high: float) -> list[dict[str, str]]:
    """Return how each similarity of a row is shown: its colour, and the number with four and with two digits."""
    return [
        {"kind": _kind(step(value, low, high)), "exact": _rounded(value, 4), "short": _rounded(value, 2)}
        for value in row
    ]


def steps(low: float, high: float) -> list[int]:
    """Return the index of the colour of each similarity from -1 to 1, in steps of 0.01."""
    return [step(hundredths / 100, low, high) + STEPS for hundredths in range(-100, 101)]


def legend(low: float, high: float) -> dict[str, object]:
    """Return the legend of a picture.

    RETURNS (dict): the colours from low to high, the similarities below them with their places from 0 to 1, and the
        similarity from which the bars of the cells are measured.
    """
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
    """Return the cosine of each vector of u and each of v: float64 (n, m).

    u (float64 (n, width)), v (float64 (m, width)): of length 1 or 0.
    RAISES (ValueError): if the widths differ.
    """
    if u.shape[1] != v.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[1], theirs=v.shape[1]))
    return numpy.clip(u @ v.T, -1.0, 1.0)  # rounding may exceed them


def shown_tokens(text: Text) -> list[str]:
    """Return the tokens of a text, each with the space after it."""
    return [clean(token.text_with_ws) for token in text]


def hundredths(cosines: numpy.ndarray) -> list[list[int]]:
    """Return cosines as whole numbers from -100 to 100, which make the page smaller."""
    return numpy.rint(100 * cosines).astype("int64").tolist()


def _mark(value: float) -> str:
    return f"{round(value, 3) + 0.0:g}"


def _rounded(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no -0.00


def _kind(place: int) -> str:
    """Return the CSS class with the colour of a step."""
    return f"v{place + STEPS}"


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
    order (str): "similarity", each side in the order of its dendrogram, see _similarity_order, or "given"; by default
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
    down, across = (_similarity_order(cosines_of(side, side)) if by_similarity else range(len(side)) for side in (u, v))
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
    """Return whether to order texts by similarity; is_ordered: whether to keep the given order by default."""
    return order == "similarity" or (order is None and not is_ordered)


def check_counts(rows: int, columns: int, *, square: bool) -> None:
    """Raise ValueError if a heat map cannot have so many texts on a side; square: if its columns are its rows."""
    least = 2 if square else 1
    if not least <= min(rows, columns):
        raise ValueError(Errors.VISUAL_TOO_FEW.format(given=min(rows, columns), least=least))
    if max(rows, columns) > MOST:
        raise ValueError(
            f"Cannot draw a heat map with {max(rows, columns)} texts on a side: expected at most {MOST}. "
            f'Choose some of them (--limit {MOST}), or draw all with style = "map" (--style map).'
        )


def _check_tokens(rows: Sequence[Text], others: Sequence[Text], square: bool) -> None:
    numbers = sum(map(len, rows)) * len(others) + (0 if square else sum(map(len, others)) * len(rows))
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"The tokens of these texts have {numbers} similarities to the texts of the other side: expected "
            f"at most {MOST_NUMBERS}, which a browser can hold. Draw sentences, or fewer texts, or set options "
            '= {"tokens": False}.'
        )


def _heads(texts: Sequence[Text], order: Iterable[int]) -> list[Head]:
    """Return the headers of rows or columns: the position of each text in the given order, and the text on one line."""
    return [{"place": place, "number": place + 1, "label": " ".join(texts[place].text.split())} for place in order]


def _texts(rows: Sequence[Text], others: numpy.ndarray | None) -> list[ShownText]:
    """Return what the script shows of each text: its tokens, and their similarity to each text of the other side."""
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
    """Return what the script shows. Tokens have their own range, as their similarities may be lower."""
    found = (values for text in rows + (columns or []) for values in text["cosines"] or () if values)
    ends = range_of(numpy.fromiter(chain.from_iterable(found), "float64") / 100, low, high)
    return {"rows": rows, "columns": columns, "steps": steps(*ends), "range": " to ".join(f"{end:g}" for end in ends)}


def _token_cosines(vectors: list[numpy.ndarray | None], others: numpy.ndarray) -> list[list[int] | None] | None:
    """Return cosine x 100 of each token to each of m others, float64 (m, width).

    RETURNS (list): None for a token without a vector; None instead of the list if no token has one.
    """
    found = [vector for vector in vectors if vector is not None]
    if not found:
        return None
    cosines = iter(hundredths(cosines_of(unit_length(numpy.stack(found).astype("float64")), others)))
    return [None if vector is None else next(cosines) for vector in vectors]
