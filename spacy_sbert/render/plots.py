"""Plots as SVG."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

# Format characters without which Persian, Hindi and emoji are written wrongly
_JOINERS = "\u200c\u200d"


def clean(text: object) -> str:
    """Replace control and format characters, and lone surrogates, with spaces.

    Zero-width joiners stay.
    """
    text = str(text)
    # A fast check, which most texts pass
    if text.isprintable():
        return text
    return "".join(_clean(character) for character in text)


def _clean(character: str) -> str:
    is_control = unicodedata.category(character).startswith("C")
    return " " if is_control and character not in _JOINERS else character


# Width of every plot, so that text stays readable on a phone
_WIDTH = 420
# Round distances between marks, times powers of 10
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """Map from values to pixels.

    low, high: ends in values. start, end: the same in pixels. log: whether by the logarithm.
    marks: the values whose numbers are beside it.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    marks: Sequence[float] = ()

    @classmethod
    def spanning(
        cls,
        low: float,
        high: float,
        start: float,
        end: float,
        *,
        wanted: int = 6,
        inside: bool = False,
    ) -> "Axis":
        """Return an axis with round marks.

        wanted: about how many marks. inside: whether the axis ends at low and high, or at the next
            round numbers.
        """
        marks = _ticks(low, high, wanted)
        if not inside:
            return cls(marks[0], marks[-1], start, end, marks=marks)
        within = [mark for mark in marks if low <= mark <= high]
        return cls(low, high, start, end, marks=within)

    def __call__(self, value: float) -> float:
        low = self._scaled(self.low)
        # An axis of one value has no width
        spread = (self._scaled(self.high) - low) or 1.0
        return self.start + (self._scaled(value) - low) / spread * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        if self.log:
            return math.log(value)
        return value

    def below(self, top: float, base: float, name: str) -> Markup:
        """Draw grid lines from top to base, the numbers below them, and the name of the axis."""
        lines = [_line([(self(mark), top), (self(mark), base)], "grid") for mark in self.marks]
        words = [_text(self(mark), base + 15, f"{mark:g}", "middle") for mark in self.marks]
        title = _text((self.start + self.end) / 2, base + 32, name, "middle", "name")
        return Markup("").join([*lines, *words, title])

    def left_of(self, left: float, right: float, name: str) -> Markup:
        """Draw grid lines from left to right, the numbers to their left, and the name above."""
        lines = [_line([(left, self(mark)), (right, self(mark))], "grid") for mark in self.marks]
        words = [_text(left - 6, self(mark) + 4, f"{mark:g}", "end") for mark in self.marks]
        title = _text(4, self.end - 10, name, "start", "name")
        return Markup("").join([*lines, *words, title])


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    """Return evenly spaced round numbers, the first and last at or beyond the ends."""
    spread = 1.0
    if high > low:
        spread = high - low
    power = 10.0 ** math.floor(math.log10(spread / wanted))
    step = next(power * step for step in _STEPS if spread / (power * step) <= wanted)
    first = math.floor(low / step + 1e-9)
    last = math.ceil((low + spread) / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def number(value: float, digits: int = 1) -> str:
    """Format a number with at most some digits behind the point, as briefly as possible."""
    # + 0.0 makes 0 of -0
    return f"{round(value, digits) + 0.0:g}"


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> Markup:
    """Draw a text at a place; anchor: the end of the text that is at this place."""
    style = Markup("")
    if kind:
        style = Markup(' class="{}"').format(kind)
    element = Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>')
    return element.format(number(x), number(y), anchor, style, clean(words))


def shape(places: str, kind: str) -> Markup:
    """Draw a path; places: its commands, such as "M0 0h1"."""
    return Markup('<path class="{}" d="{}"/>').format(kind, places)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a rectangle."""
    element = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    return element.format(kind, number(x), number(y), number(width), number(height))


def _line(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """Draw straight lines from point to point."""
    return shape("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), kind)


# Edges of the field where values are
_LEFT = 44
_RIGHT = _WIDTH - 12
_TOP = 34
_BASE = 296
_HEIGHT = _BASE + 40
# Paths of see-through points: where points of one path overlap, they are painted once
_LAYERS = 4
# Room for the names of bars, and for their figures
_LABELS = 132
_VALUES = 46
# Height of a bar with its gap
_BAR = 22
# Characters of the name of a bar
_MOST = 20
# In place of a figure that is not defined
UNDEFINED = "undefined"


class Plot(NamedTuple):
    """What a plot shows, and the plot."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class Bar:
    """A named figure, from 0 to 1, with the ends of its interval; None if not defined."""

    name: str
    value: float | None
    ends: Sequence[float] | None = None


def _plot(title: str, description: str, height: float, parts: Iterable[Markup]) -> Plot:
    """Return an SVG of the common width with its caption.

    Screen readers read out title and description.
    """
    svg = Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{title}. '
        '{description}"><title>{title}</title>'
        "<desc>{description}</desc>{}</svg>"
    ).format(
        _WIDTH,
        number(height),
        Markup("").join(parts),
        title=clean(title),
        description=clean(description),
    )
    return Plot(f"{title}. {description}.", svg)


def scatter_plot(
    x: Sequence[float], y: Sequence[float], names: tuple[str, str], title: str, description: str
) -> Plot:
    """Draw a scatter plot.

    x, y (n numbers each). names: of both axes. title, description: of the caption, and for screen
        readers.
    """
    across = Axis.spanning(min(x), max(x), _LEFT + 4, _RIGHT - 4)
    up = Axis.spanning(min(y), max(y), _BASE, _TOP)
    axes = [up.left_of(_LEFT, _RIGHT, names[1]), across.below(_TOP, _BASE, names[0])]
    places = [f"M{number(across(a))} {number(up(b))}h0" for a, b in zip(x, y, strict=True)]
    layers = [shape("".join(places[start::_LAYERS]), "dots") for start in range(_LAYERS)]
    return _plot(title, description, _HEIGHT, [*axes, *layers])


def bars(
    rows: Sequence[Bar],
    name: str,
    title: str,
    description: str,
    reach: tuple[float, float] = (0.0, 1.0),
) -> Plot:
    """Draw bars from 0, with intervals across their ends.

    rows (Sequence of Bar): from top to bottom; values are shown x 100. name: of the axis. reach:
        what the axis shows at least.
    """
    values = [*reach]
    for row in rows:
        if row.value is not None:
            values.append(row.value)
        values += row.ends or ()
    low = 100.0 * min(values)
    high = 100.0 * max(values)
    across = Axis.spanning(low, high, _LABELS, _WIDTH - _VALUES, wanted=5)
    base = 8 + _BAR * len(rows)
    parts = [across.below(4, base, name)]
    for place, row in enumerate(rows):
        parts += _bar(row, 8 + _BAR * place, across)
    parts.append(_line([(across(0), 4), (across(0), base)], "edge"))
    return _plot(title, description, base + 40, parts)


def _bar(row: Bar, top: float, across: Axis) -> Iterator[Markup]:
    """Yield the name of a bar, the bar and its figure."""
    middle = top + _BAR / 2
    name = row.name
    if len(name) > _MOST:
        name = f"{name[: _MOST - 3]}..."
    yield _text(_LABELS - 8, middle + 2, name, "end")
    if row.value is None:
        yield _text(across(0) + 4, middle + 2, UNDEFINED)
        return
    start, end = sorted((across(0), across(100.0 * row.value)))
    yield box(start, top + 2, end - start, _BAR - 8, "bar")
    if row.ends is not None:
        left, right = (across(100.0 * value) for value in row.ends)
        yield _line([(left, middle - 2), (right, middle - 2)], "whisker")
        for tip in (left, right):
            yield _line([(tip, middle - 6), (tip, middle + 2)], "whisker")
    yield _text(_WIDTH - 4, middle + 2, f"{100.0 * row.value:.2f}", "end")
