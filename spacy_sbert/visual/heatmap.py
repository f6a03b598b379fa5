"""Heat maps of similarities: of texts, and of the tokens of two texts."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice
from typing import Any, Literal

import numpy
from scipy.cluster.hierarchy import leaves_list, linkage
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..pipeline.doc_vectors import check_one_encoder, doc_of, encoders_of_vector
from ..render.plots import clean, number
from ..similarity import cosine, unit_length
from ..validation import validated
from .page import STEPS, Picture, Text, as_rows, check_count, row_vector, token_vectors, unit_rows

Order = Literal["similarity", "given"]
# Of a row or column: its place, its number ("" for none) and its label
_Head = Mapping[str, object]
# On a side: more cells than can be read
MAX_TEXTS = 64
# Of a text
_MAX_TOKENS = 128
# Similarities of tokens, about 3 MB of the page
_MAX_NUMBERS = 10**6
# Difference between similarities that the colours of a picture span
_MIN_RANGE = 0.01
# Of the length of the legend, between two numbers
_MIN_GAP = 0.15
_HINT = "Point at a cell, or move between cells with the arrow keys, to read both texts."
_ORDERED = "Similar texts stand side by side; the numbers are those of the given order."
_TOKENS_HINT = (
    "The most similar token of each row is framed. Point at a cell, or move between cells with "
    "the arrow keys, to see "
    "both tokens in their texts."
)


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
    tokens (bool): whether to colour the tokens of two texts by their similarity to the other text,
        if the pipeline keeps vectors of tokens.
    low, high (float): the similarities of the outermost colours. By default the lowest and the
        highest in the picture, without those of texts to themselves, and for tokens theirs; if only
        one is given, the other is -1 or 1.
    title (str): above the picture.
    order (str): "similarity", each side in the order of its dendrogram, see _similarity_order, or
        "given"; by default as given for the sentences of a single Doc or Span and where there are
        columns, else by similarity.
    RETURNS (Picture): a table.
    RAISES (ValueError): for fewer than two texts, more than 64 on a side, an unknown order, or
        vectors that are missing, of unequal widths or not finite.
    """
    square = columns is None
    by_similarity = order == "similarity" or (
        order is None and square and not isinstance(docs, (Doc, Span))
    )
    rows = list(as_rows(docs))
    others = rows if columns is None else list(as_rows(columns))
    for side in (rows, others):
        check_count(len(side), 2 if square else 1, MAX_TEXTS)
    u = unit_rows(map(row_vector, rows, count()))
    v = u if square else unit_rows(map(row_vector, others, count()))
    check_one_encoder(*map(encoders_of_vector, [*rows, *others]))
    cosines = _cosines(u, v)
    numbers = sum(map(len, rows)) * len(others) + (
        0 if square else sum(map(len, others)) * len(rows)
    )
    if tokens and numbers > _MAX_NUMBERS:
        raise ValueError(
            f"The tokens of the texts have {numbers} similarities to the other side: expected at "
            f"most {_MAX_NUMBERS}. "
            'Draw fewer texts, or set options = {"tokens": False}.'
        )
    data: dict[str, Any] = {"rows": [_shown_text(row, v if tokens else None) for row in rows]}
    data["columns"] = (
        None if square else [_shown_text(other, u if tokens else None) for other in others]
    )
    of_tokens = [
        row
        for text in data["rows"] + (data["columns"] or [])
        for row in text["cosines"] or ()
        if row
    ]
    ends = _range(
        numpy.array([cosine for row in of_tokens for cosine in row], dtype="float64") / 100,
        low,
        high,
    )
    data |= {"steps": _steps(*ends), "range": " to ".join(f"{end:g}" for end in ends)}
    down, across = (
        _similarity_order(_cosines(side, side)) if by_similarity else range(len(side))
        for side in (u, v)
    )
    counts = f"{len(rows)}" if square else f"{len(rows)} and {len(others)}"
    ends = _range(cosines[~numpy.eye(len(rows), dtype=bool)] if square else cosines, low, high)
    return Picture(
        template="visual/heatmap.html",
        title=title or f"Cosine similarity of {counts} texts",
        note=f"{_ORDERED} {_HINT}" if by_similarity else _HINT,
        lang=doc_of(rows[0]).lang_,
        drawn=_table(
            _heads(rows, down), _heads(others, across), cosines[numpy.ix_(down, across)], *ends
        ),
        data=data,
    )


@validated
def tokens(
    docs: Text | Iterable[Text],
    *,
    low: float | None = None,
    high: float | None = None,
    title: str | None = None,
) -> Picture:
    """Draw the cosine similarity of each token of a text to each token of another, by their vectors in their texts.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Iterable of Doc or Span): two texts, the rows and the columns; or one Doc or Span that has
        two sentences.
    low, high (float), title (str): see heatmap.
    RETURNS (Picture): a table.
    RAISES (ValueError): unless there are two texts with vectors of tokens, 128 at most in each; or
        if vectors are of unequal widths or not finite.
    """
    # More than two are not drawn
    texts = list(islice(as_rows(docs), 3))
    if len(texts) != 2:
        given = len(texts) if len(texts) < 3 else "3 or more"
        raise ValueError(
            f"Cannot draw the tokens of {given} texts: expected two Docs or Spans. Give two of "
            "them "
            "(docs[:2]; --limit 2)."
        )
    (rows, u), (columns, v) = (_drawn_tokens(text, number) for number, text in enumerate(texts))
    check_one_encoder(*map(encoders_of_vector, texts))
    cosines = _cosines(u, v)
    low, high = _range(cosines, low, high)
    whole = cosine(
        *(row_vector(text, number)[None].astype("float64") for number, text in enumerate(texts))
    )
    note = (
        f"Cosine similarity of tokens; that of the texts is {float(whole[0]):.4f}. {_TOKENS_HINT}"
    )
    if left_out := sum(map(len, texts)) - len(rows) - len(columns):
        counted = (
            "1 token without a vector is"
            if left_out == 1
            else f"{left_out} tokens without a vector are"
        )
        note += f" {counted} left out: white space, or beyond the encoder's limit."
    down, across = (
        [{"place": place, "number": "", "label": text[place].text} for place in places]
        for text, places in zip(texts, (rows, columns), strict=True)
    )
    drawn: dict[str, Any] = _table(down, across, cosines, low, high)
    for _, cells in drawn["rows"]:
        best = max(float(cell["exact"]) for cell in cells)
        for cell in cells:
            cell["kind"] += " best" if float(cell["exact"]) == best else ""
    return Picture(
        template="visual/heatmap.html",
        title=title or "Tokens of two texts",
        note=note,
        lang=doc_of(texts[0]).lang_,
        drawn=drawn,
        data={
            "rows": [_with_cosines(texts[0], rows, cosines)],
            "columns": [_with_cosines(texts[1], columns, cosines.T)],
            "steps": _steps(low, high),
        },
    )


def _range(cosines: numpy.ndarray, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the similarities of the outermost colours: those given, or the range of cosines in whole hundredths."""
    if low is None and high is None and cosines.size and numpy.ptp(cosines) >= _MIN_RANGE:
        lowest, highest = (
            numpy.floor(100 * cosines.min() + 1e-6),
            numpy.ceil(100 * cosines.max() - 1e-6),
        )
        return float(lowest) / 100, float(highest) / 100
    low, high = -1.0 if low is None else low, 1.0 if high is None else high
    if not (low < high and high > 0):
        raise ValueError(
            f"Cannot give similarities from {low} to {high} colours: expected low below high, and "
            "high above 0."
        )
    return low, high


def _cosines(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Return the cosine, float64 (n, m), of each vector of u (n, width) and each of v (m, width), of length 1 or 0."""
    if u.shape[1] != v.shape[1]:
        raise ValueError(Errors.UNEQUAL_WIDTHS.format(ours=u.shape[1], theirs=v.shape[1]))
    # Rounding may exceed them
    return numpy.clip(u @ v.T, -1.0, 1.0)


def _similarity_order(cosines: numpy.ndarray) -> list[int]:
    """Return the order of the leaves of a dendrogram, turned so that neighbours are similar.

    d(i, j) = 1 - cos(i, j), average linkage; small sum_k d(o_k, o_(k + 1)) over the orders o that
    the dendrogram allows

    Of an order and its reverse, that in which the first text comes before the last; n places of
    texts, from 0.

    SOURCE: Bar-Joseph, Gifford and Jaakkola 2001, Fast optimal leaf ordering for hierarchical
        clustering.
    """
    n = len(cosines)
    if n < 3:
        return list(range(n))
    distances = numpy.maximum(1 - cosines, 0.0)
    tree = linkage(distances[numpy.triu_indices(n, 1)], "average", optimal_ordering=True)
    order = leaves_list(tree).tolist()
    return order if order.index(0) < order.index(n - 1) else order[::-1]


def _heads(texts: Sequence[Text], order: Iterable[int]) -> list[_Head]:
    """Return the headers of rows or columns: the position of each text in the given order, and the text on one line."""
    return [
        {"place": place, "number": place + 1, "label": " ".join(texts[place].text.split())}
        for place in order
    ]


def _table(
    heads: Sequence[_Head],
    columns: Sequence[_Head],
    cosines: numpy.ndarray,
    low: float,
    high: float,
) -> dict[str, object]:
    """Return the variables of visual/heatmap.html, for cosines float64 (n, m)."""
    inner = 0.0 if low < 0 < high else (low + high) / 2
    share = (inner - low) / (high - low)
    marks = [
        (low, 0.0),
        *([(inner, share)] if _MIN_GAP <= share <= 1 - _MIN_GAP else []),
        (high, 1.0),
    ]
    rows = [
        [
            {
                "kind": _kind(_step(value, low, high)),
                "exact": f"{value:z.4f}",
                "short": f"{value:z.2f}",
            }
            for value in row
        ]
        for row in cosines.tolist()
    ]
    return {
        "columns": columns,
        "rows": list(zip(heads, rows, strict=True)),
        "bar": [_kind(place) for place in range(_step(low, low, high), _step(high, low, high) + 1)],
        "marks": [(number(mark, 3), round(place, 4)) for mark, place in marks],
        "zero": number(0.0 if low < 0 < high else low if low >= 0 else high, 3),
        "below": low < 0,
    }


def _step(value: float, low: float, high: float) -> int:
    """Return the step of the colour, -STEPS to STEPS: 0 is zero, or the end that is nearer to it.

    STEPS the farther.
    """
    value = min(high, max(low, value))
    if low < 0 < high:
        return round(STEPS * value / max(-low, high))
    return round(STEPS * (value - (low if low >= 0 else high)) / (high - low))


def _steps(low: float, high: float) -> list[int]:
    """Return the index of the colour of each similarity from -1 to 1, in steps of 0.01."""
    return [_step(hundredths / 100, low, high) + STEPS for hundredths in range(-100, 101)]


def _kind(place: int) -> str:
    """Return the CSS class with the colour of a step."""
    return f"v{place + STEPS}"


def _shown_text(text: Text, others: numpy.ndarray | None) -> dict[str, object]:
    """Return what the script shows of a text: its tokens, and their similarity to each text of the other side."""
    vectors = {} if others is None else token_vectors(text)
    if others is None or not vectors:
        return {"tokens": [clean(token.text_with_ws) for token in text], "cosines": None}
    rows = unit_length(numpy.stack(list(vectors.values())).astype("float64"))
    return _with_cosines(text, list(vectors), _cosines(rows, others))


def _with_cosines(text: Text, places: Sequence[int], cosines: numpy.ndarray) -> dict[str, object]:
    """Return the tokens of a text, each with the space after it, and the cosines x 100 of those at these places."""
    # A smaller page
    hundredths = dict(zip(places, numpy.rint(100 * cosines).astype("int64").tolist(), strict=True))
    tokens = [clean(token.text_with_ws) for token in text]
    return {"tokens": tokens, "cosines": [hundredths.get(place) for place in range(len(tokens))]}


def _drawn_tokens(text: Text, number: int) -> tuple[list[int], numpy.ndarray]:
    """Return the indices of the tokens that have a vector, and these vectors, of length 1: float64 (n, width)."""
    vectors = {
        place: vector for place, vector in token_vectors(text).items() if not text[place].is_space
    }
    if not vectors:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw, '{text.text[:50]}', has no vectors "
            "of tokens. Process it "
            "with an 'sbert' pipe whose token_vectors is true."
        )
    if len(vectors) > _MAX_TOKENS:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw has {len(vectors)} tokens: expected "
            f"at most {_MAX_TOKENS}."
        )
    return list(vectors), unit_rows(vectors.values())
