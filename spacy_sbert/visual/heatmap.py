"""Heat maps of similarities: of texts, and of the tokens of two texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, TypedDict

import numpy
from scipy.cluster.hierarchy import leaves_list, linkage
from spacy.tokens import Doc, Span

from ..pipeline.doc_vectors import check_one_encoder, doc_of, encoders_of_vector
from ..render.plots import clean, number
from ..similarity import check_widths, cosine, unit_length
from ..validation import validated
from .colour_scale import ColourScale
from .page import (
    STEPS,
    DocOrSpan,
    DocsToDraw,
    Picture,
    check_n_texts,
    row_vector,
    texts_to_draw,
    token_vectors,
    unit_rows,
)

Order = Literal["similarity", "given"]
# The place of a row or column, its number ("" for none) and its label
_Head = Mapping[str, object]
# The most texts on a side: more cells could not be read
MAX_TEXTS = 64
# The most tokens of a text
_MAX_TOKENS = 128
# The most similarities of tokens: about 3 MB of the page
_MAX_NUMBERS = 10**6
_HINT = "Point at a cell, or move between cells with the arrow keys, to read both texts."
_ORDERED = "Similar texts stand side by side; the numbers are those of the given order."
_TOKENS_HINT = (
    "The most similar token of each row is framed. Point at a cell, or move between cells with the "
    "arrow keys, to see both tokens in their texts."
)


class _ShownText(TypedDict):
    """Text that the script shows: its tokens, each with the space after it.

    cosines: 100 times the similarities of each token; None for tokens and texts that have none.
    """

    tokens: list[str]
    cosines: list[list[int] | None] | None


@validated
def heatmap(
    docs: DocsToDraw,
    *,
    columns: DocsToDraw | None = None,
    tokens: bool = True,
    low: float | None = None,
    high: float | None = None,
    title: str | None = None,
    order: Order | None = None,
) -> Picture:
    """Draw the cosine similarity of every two texts, or of the texts of two collections.

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
    if columns is None:
        rows = _Side.of(docs, least=2)
        others = rows
        pairs = [(rows, rows)]
    else:
        rows = _Side.of(docs, least=1)
        others = _Side.of(columns, least=1)
        pairs = [(rows, others), (others, rows)]
    check_one_encoder(*map(encoders_of_vector, [*rows.texts, *others.texts]))
    cosines = _cosines(rows.vectors, others.vectors)
    compared = cosines
    if columns is None:
        # The 1 of each text to itself would widen the range
        compared = cosines[~numpy.eye(len(cosines), dtype=bool)]
    scale = ColourScale.spanning(compared, low, high)
    if tokens:
        _check_token_cosines(pairs)
    shown = [side.shown(other, tokens=tokens) for side, other in pairs]
    token_scale = ColourScale.spanning(_token_cosines(chain.from_iterable(shown)), low, high)
    is_by_similarity = order == "similarity"
    if order is None:
        is_by_similarity = _has_no_order(docs, columns)
    down = rows.order(is_by_similarity)
    across = others.order(is_by_similarity)
    counts = " and ".join(str(len(side.texts)) for side, _ in pairs)
    heads = _heads(rows.texts, down)
    heads_across = _heads(others.texts, across)
    return Picture(
        template="visual/heatmap.html",
        title=title or f"Cosine similarity of {counts} texts",
        note=f"{_ORDERED} {_HINT}" if is_by_similarity else _HINT,
        lang=doc_of(rows.texts[0]).lang_,
        drawn=_table(heads, heads_across, cosines[numpy.ix_(down, across)], scale),
        data={
            "rows": shown[0],
            "columns": None if columns is None else shown[1],
            "steps": token_scale.steps(),
            "range": f"{token_scale.low:g} to {token_scale.high:g}",
        },
    )


def _has_no_order(docs: DocsToDraw, columns: DocsToDraw | None) -> bool:
    """Return whether texts are a mere collection: neither sentences in order, nor compared."""
    return columns is None and not isinstance(docs, (Doc, Span))


@dataclass
class _Side:
    """Texts of the rows or columns of a heat map, and their vectors of length 1 or 0.

    vectors: float64 (n, width).
    """

    texts: list[DocOrSpan]
    vectors: numpy.ndarray

    @classmethod
    def of(cls, docs: DocsToDraw, *, least: int) -> "_Side":
        """Return the texts to draw. RAISES (ValueError): if they are too many, or too few."""
        texts = list(texts_to_draw(docs))
        check_n_texts(len(texts), least, MAX_TEXTS)
        vectors = (row_vector(text, number) for number, text in enumerate(texts))
        return cls(texts, unit_rows(vectors))

    def order(self, is_by_similarity: bool) -> list[int]:
        """Return the order in which the texts are drawn."""
        if is_by_similarity:
            return _similarity_order(_cosines(self.vectors, self.vectors))
        return list(range(len(self.texts)))

    def shown(self, others: "_Side", *, tokens: bool) -> list[_ShownText]:
        """Return the texts for the script, with the similarity of tokens to the other texts."""
        vectors = others.vectors if tokens else None
        return [_shown_text(text, vectors) for text in self.texts]


def _check_token_cosines(pairs: Iterable[tuple[_Side, _Side]]) -> None:
    """Raise ValueError if there are too many similarities of tokens to texts of the other side."""
    count = 0
    for side, other in pairs:
        count += sum(map(len, side.texts)) * len(other.texts)
    if count > _MAX_NUMBERS:
        raise ValueError(
            f"The tokens of the texts have {count} similarities to the other side: expected at "
            f'most {_MAX_NUMBERS}. Draw fewer texts, or set options = {{"tokens": False}}.'
        )


def _token_cosines(shown: Iterable[_ShownText]) -> numpy.ndarray:
    """Return the similarities of all tokens of texts that have some, float64 (n,)."""
    hundredths: list[int] = []
    for text in shown:
        for of_token in text["cosines"] or []:
            hundredths += of_token or []
    return numpy.array(hundredths, dtype="float64") / 100


@validated
def tokens(
    docs: DocsToDraw,
    *,
    low: float | None = None,
    high: float | None = None,
    title: str | None = None,
) -> Picture:
    """Draw the cosine similarity of each token of a text to each token of another.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Iterable of Doc or Span): two texts, the rows and the columns; or one Doc or Span that has
        two sentences.
    low, high (float), title (str): see heatmap.
    RETURNS (Picture): a table.
    RAISES (ValueError): unless there are two texts with vectors of tokens, 128 at most in each; or
        if vectors are of unequal widths or not finite.
    """
    # More than two are not drawn
    texts = list(islice(texts_to_draw(docs), 3))
    if len(texts) != 2:
        given = "3 or more"
        if len(texts) < 3:
            given = str(len(texts))
        raise ValueError(
            f"Cannot draw the tokens of {given} texts: expected two Docs or Spans. Give two of "
            "them (docs[:2]; --limit 2)."
        )
    first, second = texts
    rows, u = _drawn_tokens(first, 0)
    columns, v = _drawn_tokens(second, 1)
    check_one_encoder(*map(encoders_of_vector, texts))
    cosines = _cosines(u, v)
    scale = ColourScale.spanning(cosines, low, high)
    drawn = _table(_token_heads(first, rows), _token_heads(second, columns), cosines, scale)
    _frame_best(drawn["rows"])
    n_left_out = len(first) - len(rows) + len(second) - len(columns)
    return Picture(
        template="visual/heatmap.html",
        title=title or "Tokens of two texts",
        note=_tokens_note(first, second, n_left_out),
        lang=doc_of(first).lang_,
        drawn=drawn,
        data={
            "rows": [_with_cosines(first, rows, cosines)],
            "columns": [_with_cosines(second, columns, cosines.T)],
            "steps": scale.steps(),
        },
    )


def _token_heads(text: DocOrSpan, places: Iterable[int]) -> list[_Head]:
    return [{"place": place, "number": "", "label": text[place].text} for place in places]


def _frame_best(rows: Iterable[tuple[_Head, list[dict[str, str]]]]) -> None:
    """Mark the cells with the highest similarity of each row."""
    for _, cells in rows:
        best = max(float(cell["exact"]) for cell in cells)
        for cell in cells:
            if float(cell["exact"]) == best:
                cell["kind"] += " best"


def _tokens_note(first: DocOrSpan, second: DocOrSpan, n_left_out: int) -> str:
    u = row_vector(first, 0)[None].astype("float64")
    v = row_vector(second, 1)[None].astype("float64")
    whole = float(cosine(u, v)[0])
    note = f"Cosine similarity of tokens; that of the texts is {whole:.4f}. {_TOKENS_HINT}"
    if not n_left_out:
        return note
    counted = f"{n_left_out} tokens without a vector are"
    if n_left_out == 1:
        counted = "1 token without a vector is"
    return f"{note} {counted} left out: white space, or beyond the encoder's limit."


def _cosines(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Return the cosine of each two vectors, float64 (n, m).

    u (n, width), v (m, width): of length 1 or 0.
    """
    check_widths(u.shape[1], v.shape[1])
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
    if order.index(0) > order.index(n - 1):
        order.reverse()
    return order


def _heads(texts: Sequence[DocOrSpan], order: Iterable[int]) -> list[_Head]:
    """Return the headers of rows or columns: the number of each text, and it on one line."""
    return [
        {"place": place, "number": place + 1, "label": " ".join(texts[place].text.split())}
        for place in order
    ]


def _table(
    heads: Sequence[_Head], columns: Sequence[_Head], cosines: numpy.ndarray, scale: ColourScale
) -> dict[str, Any]:
    """Return the variables of visual/heatmap.html, for cosines float64 (n, m)."""
    rows = [[_cell(value, scale) for value in row] for row in cosines.tolist()]
    return {
        "columns": columns,
        "rows": list(zip(heads, rows, strict=True)),
        "bar": list(map(_kind, scale.legend())),
        "marks": [(number(mark, 3), round(place, 4)) for mark, place in scale.marks()],
        "zero": number(scale.neutral, 3),
        "below": scale.low < 0,
    }


def _cell(value: float, scale: ColourScale) -> dict[str, str]:
    return {
        "kind": _kind(scale.step(value)),
        "exact": f"{value:z.4f}",
        "short": f"{value:z.2f}",
    }


def _kind(step: int) -> str:
    """Return the CSS class with the colour of a step."""
    return f"v{step + STEPS}"


def _shown_text(text: DocOrSpan, others: numpy.ndarray | None) -> _ShownText:
    """Return a text for the script, with the similarity of its tokens to texts of the other side.

    others (float64 (n, width)): the vectors of these texts; None to leave the tokens without.
    """
    vectors: dict[int, numpy.ndarray] = {}
    if others is not None:
        vectors = token_vectors(text)
    if others is None or not vectors:
        return {"tokens": _shown_tokens(text), "cosines": None}
    rows = unit_length(numpy.stack(list(vectors.values())).astype("float64"))
    return _with_cosines(text, list(vectors), _cosines(rows, others))


def _with_cosines(text: DocOrSpan, places: Sequence[int], cosines: numpy.ndarray) -> _ShownText:
    """Return a text for the script, with the cosines of the tokens at some places."""
    # Whole hundredths make a smaller page
    hundredths = numpy.rint(100 * cosines).astype("int64").tolist()
    by_place = dict(zip(places, hundredths, strict=True))
    tokens = _shown_tokens(text)
    return {"tokens": tokens, "cosines": [by_place.get(place) for place in range(len(tokens))]}


def _shown_tokens(text: DocOrSpan) -> list[str]:
    return [clean(token.text_with_ws) for token in text]


def _drawn_tokens(text: DocOrSpan, number: int) -> tuple[list[int], numpy.ndarray]:
    """Return the indices of the tokens that have a vector, and these vectors.

    They are of length 1, float64 (n, width). number: of the text, for messages.
    """
    vectors = {
        place: vector for place, vector in token_vectors(text).items() if not text[place].is_space
    }
    if not vectors:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw, '{text.text[:50]}', has no vectors of "
            "tokens. Process it with an 'sbert' pipe whose token_vectors is true."
        )
    if len(vectors) > _MAX_TOKENS:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw has {len(vectors)} tokens: expected at "
            f"most {_MAX_TOKENS}."
        )
    return list(vectors), unit_rows(vectors.values())
