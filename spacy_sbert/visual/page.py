"""What all pictures share: their texts and vectors, their colours, and the page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..arrays import checked
from ..pipeline import doc_vectors
from ..render.document import render_template
from ..similarity import check_widths, unit_length
from ..validation import short_repr

DocOrSpan = Doc | Span
# Texts, or a Doc whose texts they are
DocsToDraw = DocOrSpan | Iterable[DocOrSpan]
# Characters of a text in a message
_EXCERPT = 50


def texts_to_draw(docs: DocsToDraw) -> Iterator[DocOrSpan]:
    """Yield the texts to draw: the given texts, or the sentences of a single Doc or Span.

    Blank sentences are left out.
    """
    if isinstance(docs, (Doc, Span)):
        doc = doc_vectors.doc_of(docs)
        if not doc.has_annotation("SENT_START"):
            raise ValueError(
                f"Cannot draw the sentences of '{doc.text[:_EXCERPT]}': the Doc has no sentence "
                "boundaries. Put a sentencizer, senter or parser into the pipeline, or give a list "
                "of Docs or Spans."
            )
        docs = [sentence for sentence in docs.sents if sentence.text.strip()]  # type: ignore[union-attr]
    for number, row in enumerate(docs):
        if not isinstance(row, (Doc, Span)):
            raise TypeError(
                f"Cannot draw {short_repr(row)}, number {number} (from 0): expected Docs or Spans. "
                "Draw nlp.pipe(texts)."
            )
        yield row


def check_n_texts(n: int, least: int, most: int) -> None:
    """Raise ValueError if a picture cannot have so many texts."""
    if n < least:
        raise ValueError(
            f"Cannot draw {n} texts: expected at least {least}. Give more; for the sentences of "
            "one Doc give the Doc itself, not a list of it."
        )
    if n > most:
        raise ValueError(
            f"Cannot draw {n} texts: expected at most {most}. Choose some (docs[:{most}]; --limit "
            f'{most}), or draw a map (style="map"; --style map).'
        )


def row_vector(row: DocOrSpan, number: int) -> numpy.ndarray:
    """Return a copy of the vector of a text, which does not keep its Doc in memory.

    number: for messages.
    """
    vector = _vector_of(row)
    if vector is None:
        raise ValueError(
            f"Number {number} (from 0) of the texts to draw, '{row.text[:_EXCERPT]}', has no "
            "vector. Leave it out."
        )
    return vector.copy()


def unit_rows(vectors: Iterable[numpy.ndarray]) -> numpy.ndarray:
    """Return vectors scaled to length 1, float64 (n, width).

    RAISES (ValueError): if widths differ, or for NaN.
    """
    vectors = list(vectors)
    for vector in vectors:
        check_widths(len(vectors[0]), len(vector))
    return unit_length(checked(numpy.stack(vectors), "vectors", "float64"))


def token_vectors(text: DocOrSpan) -> dict[int, numpy.ndarray]:
    """Return the vectors of the tokens that have one, by their index.

    There are none if the pipe did not keep them.
    """
    records = doc_vectors.find(doc_vectors.doc_of(text))
    if not all("states" in record.data for record in records):
        return {}
    found = {index: _vector_of(token) for index, token in enumerate(text)}
    return {index: vector for index, vector in found.items() if vector is not None}


def _vector_of(text: DocOrSpan | Token) -> numpy.ndarray | None:
    """Return the vector that a pipe stored for a text, or spaCy's own; None if there is none.

    A stored vector is found even if no hooks are set.
    """
    if doc_vectors.find(doc_vectors.doc_of(text)):
        if not doc_vectors.has_vector(text):
            return None
        return doc_vectors.vector(text)
    if not text.has_vector:
        return None
    return to_numpy(text.vector)


# Colours on either side of zero
STEPS = 20
# Colours of the similarities -1, -0.5, 0, 0.5 and 1
LIGHT = ("#7a2e00", "#e39246", "#f4f4f2", "#74acdb", "#0b2f6b")
DARK = ("#ffd0a1", "#b0611c", "#2a2f38", "#2f76b8", "#bfe0ff")
# Colours of labels
LIGHT_LABELS = (
    "#0b66b0",
    "#c04f00",
    "#007d5c",
    "#a8437f",
    "#7a6200",
    "#5b4bb5",
    "#b3261e",
    "#4a5563",
)
DARK_LABELS = (
    "#6fb7f2",
    "#ff9f5a",
    "#4fd0a5",
    "#ee9bcb",
    "#e6cf5c",
    "#b7a9ff",
    "#ff8d85",
    "#b5c0ce",
)
# The relative luminance that contrasts as much with black as with white
_EQUAL_CONTRAST = 0.179


def _scale(stops: Sequence[str]) -> list[str]:
    """Return the colours of all steps, interpolated between equally spaced stops."""
    channels = numpy.array([list(bytes.fromhex(stop[1:])) for stop in stops])
    places = numpy.linspace(0, len(stops) - 1, 2 * STEPS + 1)
    mixed = [numpy.interp(places, range(len(stops)), channel) for channel in channels.T]
    return ["#" + bytes(colour.tolist()).hex() for colour in numpy.rint(mixed).astype(int).T]


def _variables(stops: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Return the CSS variables of a theme.

    They are v, the colour of each step, i, the ink on it, and c, the colours of labels.
    """
    colours = _scale(stops)
    inks = list(map(_ink, colours))
    variables: dict[str, str] = {}
    for letter, values in (("v", colours), ("i", inks), ("c", labels)):
        for place, colour in enumerate(values):
            variables[f"{letter}{place}"] = colour
    return variables


def _ink(colour: str) -> str:
    """Return black or white, whichever contrasts more with a colour: at least 4.58, by WCAG 2.2."""
    parts = numpy.frombuffer(bytes.fromhex(colour[1:]), dtype="uint8") / 255
    linear = numpy.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return "#000" if luminance > _EQUAL_CONTRAST else "#fff"


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    template: its path in the package; it extends visual/figure.html. title, note: above it. lang:
        of the texts.
    drawn: the variables of the template. data (JSON): what the script shows on demand.
    """

    template: str
    title: str
    note: str
    lang: str
    drawn: Mapping[str, object]
    data: object

    def __repr__(self) -> str:
        return f"Picture({self.title!r}, {self.template})"

    def _repr_html_(self) -> str:
        return self.fragment()

    def fragment(self) -> str:
        """Render a figure with its own style and script, and a unique id."""
        return self._render(self.template, in_page=False)

    def page(self) -> str:
        """Render a whole page."""
        return self._render("visual/page.html", in_page=True)

    def _render(self, template: str, *, in_page: bool) -> str:
        themes = {"light": _variables(LIGHT, LIGHT_LABELS), "dark": _variables(DARK, DARK_LABELS)}
        name = f"spacy-sbert-{uuid4().hex}"
        return render_template(
            template, **vars(self), **self.drawn, **themes, steps=STEPS, id=name, in_page=in_page
        )
