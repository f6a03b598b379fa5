"""The tokens of one text against those of another."""

from collections.abc import Iterable
from itertools import islice

import numpy

from ..similarity import cosine
from ..validation import validated
from .heatmap import Head, cells, check_range, cosines_of, hundredths, legend, range_of, shown_tokens, steps
from .page import Picture
from .rows import Text, as_rows, language, row_vector, token_vectors, unit_rows

MOST = 128  # tokens of a text: more cells than can be read
HINT = (
    "The most similar token of each row is framed. Point at a cell, or move between cells with the arrow keys, to see "
    "both tokens in their texts."
)
ONE_LEFT_OUT = "1 token without a vector is left out: white space, or beyond the encoder's limit."
LEFT_OUT = "{count} tokens without a vector are left out: white space, or beyond the encoder's limit."


@validated
def tokens(
    docs: Text | Iterable[Text], *, low: float | None = None, high: float | None = None, title: str | None = None
) -> Picture:
    """Draw the cosine similarity of each token of a text to each token of another, by their vectors in their texts.

    cos(u, v) = (u / ||u||) . (v / ||v||), in float64

    docs (Iterable of Doc or Span): two texts, the rows and the columns; or one Doc or Span that has two sentences.
    low, high (float): the similarities of the outermost colours. By default the lowest and the highest in the picture;
        if only one is given, the other is -1 or 1.
    title (str): above the picture.
    RETURNS (Picture): a table.
    RAISES (ValueError): unless there are two texts with vectors of tokens, 128 at most in each; or if vectors are of
        unequal widths or not finite.
    """
    check_range(low, high)
    texts = list(islice(as_rows(docs), 3))  # more than two are not drawn
    if len(texts) != 2:
        raise ValueError(
            (
                "Cannot draw the tokens of {given} texts: expected two Docs or Spans, or one Doc that has two "
                "sentences. Give two of them, on the command line with --limit 2."
            ).format(given=len(texts) if len(texts) < 3 else "3 or more")
        )
    (rows, u), (columns, v) = (_vectors(text, number) for number, text in enumerate(texts))
    cosines = cosines_of(u, v)
    low, high = range_of(cosines, low, high)
    whole = cosine(*(row_vector(text, number)[None].astype("float64") for number, text in enumerate(texts)))
    left_out = sum(map(len, texts)) - len(rows) - len(columns)
    said = "" if not left_out else ONE_LEFT_OUT if left_out == 1 else LEFT_OUT.format(count=left_out)
    return Picture(
        template="visual/heatmap.html",
        title=title or "Tokens of two texts",
        note=f"Cosine similarity of tokens; that of the texts is {float(whole[0]):.4f}. {HINT} {said}".rstrip(),
        lang=language(texts[0]),
        drawn={
            "columns": _heads(texts[1], columns),
            "rows": [
                (head, _framed(cells(row, low, high)))
                for head, row in zip(_heads(texts[0], rows), cosines.tolist(), strict=True)
            ],
            **legend(low, high),
        },
        data={
            "rows": [_text(texts[0], rows, cosines)],
            "columns": [_text(texts[1], columns, cosines.T)],
            "steps": steps(low, high),
        },
    )


def _vectors(text: Text, number: int) -> tuple[list[int], numpy.ndarray]:
    """Return the indices of the tokens that have a vector, and these vectors, of length 1: float64 (n, width)."""
    vectors = zip(text, token_vectors(text), strict=True)
    found = {
        place: vector for place, (token, vector) in enumerate(vectors) if vector is not None and not token.is_space
    }
    if not found:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw, '{text.text[:50]}', has no vectors of tokens. "
            "Process the text with a pipe that keeps them: 'sbert' does unless its setting token_vectors is "
            "false, 'sbert_meta' does not."
        )
    if len(found) > MOST:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw has {len(found)} tokens: expected at most {MOST}. "
            "Give a Span of it, such as one of its sentences."
        )
    return list(found), unit_rows(found.values())


def _heads(text: Text, places: list[int]) -> list[Head]:
    return [{"place": place, "number": "", "label": text[place].text} for place in places]


def _framed(row: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the cells of a row, with a frame around those that show its highest number."""
    best = max(float(cell["exact"]) for cell in row)
    return [{**cell, "kind": f"{cell['kind']} best"} if float(cell["exact"]) == best else cell for cell in row]


def _text(text: Text, places: list[int], cosines: numpy.ndarray) -> dict[str, object]:
    """Return what the script shows of a text: its tokens, and their similarity to each drawn token of the other."""
    found = dict(zip(places, hundredths(cosines), strict=True))
    return {"tokens": shown_tokens(text), "cosines": [found.get(place) for place in range(len(text))]}
