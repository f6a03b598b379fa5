"""Plots as SVG."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

JOINERS = "\u200c\u200d"  # format characters without which Persian, Hindi and emoji are written wrongly


def clean(text: object) -> str:
    """Replace control and format characters, except zero-width joiners, and lone surrogates with spaces."""
    text = str(text)
    if text.isprintable():  # most are, and this is fast
        return text
    return "".join(" " if unicodedata.category(one)[0] == "C" and one not in JOINERS else one for one in text)


WIDTH = 420  # of every plot, so that text stays readable on a phone
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """From values to pixels.

    low, high: ends in values. start, end: the same in pixels. log: whether by the logarithm.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(one) if self.log else one for one in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return evenly spaced round numbers, the first and last at or beyond the ends."""
    spread = high - low if high > low else 1.0
    power = 10.0 ** math.floor(math.log10(spread / wanted))
    step = next(power * one for one in STEPS if spread / (power * one) <= wanted)
    first, last = math.floor(low / step + 1e-9), math.ceil((low + spread) / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def number(value: float) -> str:
    """Format a coordinate as briefly as possible."""
    return f"{round(value, 1) + 0.0:g}"


def join(parts: Iterable[Markup]) -> Markup:
    """Join elements in sequence."""
    return Markup("").join(parts)


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> Markup:
    """Draw a text at a place; anchor: the end of the text that is at this place."""
    style = Markup(' class="{}"').format(kind) if kind else ""
    element = Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>')
    return element.format(number(x), number(y), anchor, style, clean(words))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Draw a straight line."""
    return path([(x1, y1), (x2, y2)], kind)


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """Draw a line through points."""
    return shape("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), kind)


def shape(places: str, kind: str) -> Markup:
    """Draw a path; places: its commands, such as "M0 0h1"."""
    return Markup('<path class="{}" d="{}"/>').format(kind, places)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a rectangle."""
    element = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    return element.format(kind, number(x), number(y), number(width), number(height))


def bottom_axis(axis: Axis, marks: Sequence[float], top: float, base: float, name: str) -> Markup:
    """Draw grid lines from top to base, the numbers below them, and the name of the axis."""
    lines = [line(axis(mark), top, axis(mark), base, "grid") for mark in marks]
    words = [text(axis(mark), base + 15, f"{mark:g}", "middle") for mark in marks]
    return join([*lines, *words, text((axis.start + axis.end) / 2, base + 32, name, "middle", "name")])


def left_axis(axis: Axis, marks: Sequence[float], left: float, right: float, name: str) -> Markup:
    """Draw grid lines from left to right, the numbers to their left, and the name of the axis above."""
    lines = [line(left, axis(mark), right, axis(mark), "grid") for mark in marks]
    words = [text(left - 6, axis(mark) + 4, f"{mark:g}", "end") for mark in marks]
    return join([*lines, *words, text(4, axis.end - 10, name, "start", "name")])


def svg(title: str, description: str, height: float, body: Markup) -> Markup:
    """Return an SVG of the common width; screen readers read out title and description."""
    title, description = clean(title), clean(description)
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{title}. {description}"><title>{title}</title>'
        "<desc>{description}</desc>{}</svg>"
    ).format(WIDTH, number(height), body, title=title, description=description)


LEFT, RIGHT, TOP, BASE = 44, WIDTH - 12, 34, 296  # of the field where values stand
HEIGHT = BASE + 40
LAYERS = 4  # of points, each see-through: one path paints a place where points overlap but once
LABELS, VALUES, BAR = 132, 46, 22  # room for the names of bars and for their figures; height of a bar with its gap
MOST = 20  # characters of the name of a bar
PERCENT = 100.0
APART = 30  # pixels between numbers below an axis
COLOURS = 6  # of curves, in plots.css
UNDEFINED = "undefined"  # in place of a figure that is not defined


class Plot(NamedTuple):
    """What a plot shows, and the plot."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class Bar:
    """A named figure, from 0 to 1, with the ends of its interval; None where not defined."""

    name: str
    value: float | None
    ends: Sequence[float] | None = None


@dataclass(frozen=True)
class Box:
    """How values of a group spread: its name, how many they are, and five percentiles in rising order."""

    name: str
    count: int
    percentiles: Sequence[float]


def scatter(x: Sequence[float], y: Sequence[float], names: tuple[str, str], title: str, description: str) -> Plot:
    """Draw a scatter plot.

    x, y (n numbers each). names: of both axes. title, description: of the caption, and for screen readers.
    """
    across, up, axes = _field((min(x), max(x)), (min(y), max(y)), names)
    places = [f"M{number(across(a))} {number(up(b))}h0" for a, b in zip(x, y, strict=True)]
    layers = [shape("".join(places[start::LAYERS]), "dots") for start in range(LAYERS)]
    return _plot(title, description, HEIGHT, [axes, *layers])


def boxes(groups: Sequence[Box], names: tuple[str, str], title: str, description: str) -> Plot:
    """Draw box plots side by side.

    A box reaches from the second to the fourth of the five percentiles and shows the median; whiskers reach to the
    first and the last.
    """
    values = [value for group in groups for value in group.percentiles]
    marks = ticks(min(values), max(values))
    up = Axis(marks[0], marks[-1], BASE, TOP)
    step = (RIGHT - LEFT) / len(groups)
    parts = [
        left_axis(up, marks, LEFT, RIGHT, names[1]),
        text((LEFT + RIGHT) / 2, BASE + 46, names[0], "middle", "name"),
    ]
    for place, group in enumerate(groups):
        middle, half = LEFT + (place + 0.5) * step, min(0.32 * step, 28)
        low, first, median, third, high = (up(value) for value in group.percentiles)
        parts += [
            line(middle, low, middle, first, "edge"),
            line(middle, third, middle, high, "edge"),
            box(middle - half, third, 2 * half, max(first - third, 0.5), "box"),
            line(middle - half, median, middle + half, median, "median"),
            text(middle, BASE + 15, group.name, "middle"),
            text(middle, BASE + 29, f"n={group.count}", "middle", "small"),
        ]
    return _plot(title, description, HEIGHT + 14, parts)


def bars(rows: Sequence[Bar], name: str, title: str, description: str, reach: tuple[float, float] = (0.0, 1.0)) -> Plot:
    """Draw bars from 0, with intervals across their ends.

    rows (Sequence of Bar): from top to bottom; values are shown x 100. name: of the axis. reach: what the axis shows at
        least.
    """
    found = [value for row in rows for value in (row.value, *(row.ends or ())) if value is not None]
    marks = ticks(PERCENT * min(*found, *reach), PERCENT * max(*found, *reach), 5)
    across = Axis(marks[0], marks[-1], LABELS, WIDTH - VALUES)
    base = 8 + BAR * len(rows)
    parts = [bottom_axis(across, marks, 4, base, name)]
    for place, row in enumerate(rows):
        parts.append(_bar(row, 8 + BAR * place, across))
    parts.append(line(across(0), 4, across(0), base, "edge"))
    return _plot(title, description, base + 40, parts)


def curves(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    levels: Mapping[str, float],
    names: tuple[str, str],
    title: str,
    description: str,
) -> Plot:
    """Draw lines through points over a logarithmic axis, dashed horizontal levels, and a legend.

    lines, levels: by name; at least one line. names: of both axes.
    """
    sizes = sorted({x for points in lines.values() for x, _ in points})
    values = [y for points in lines.values() for _, y in points] + list(levels.values())
    marks = ticks(min(values), max(values), 5)
    across, up = Axis(sizes[0], sizes[-1], LEFT + 14, RIGHT - 14, log=True), Axis(marks[0], marks[-1], BASE, TOP)
    parts = [
        left_axis(up, marks, LEFT, RIGHT, names[1]),
        bottom_axis(across, _apart(sizes, across), TOP, BASE, names[0]),
    ]
    for place, (name, points) in enumerate(lines.items()):
        places, colour = [(across(x), up(y)) for x, y in points], f"c{place % COLOURS}"
        dots = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
        parts += [path(places, f"line {colour}"), shape(dots, f"dot {colour}"), _legend(place, name, f"line {colour}")]
    for place, (name, value) in enumerate(levels.items(), len(lines)):
        kind = f"level c{place % COLOURS}"
        parts += [line(LEFT, up(value), RIGHT, up(value), kind), _legend(place, name, kind)]
    return _plot(title, description, HEIGHT + 6 + 16 * (len(lines) + len(levels)), parts)


def _plot(title: str, description: str, height: float, parts: Sequence[Markup]) -> Plot:
    return Plot(f"{title}. {description}.", svg(title, description, height, join(parts)))


def _field(x: tuple[float, float], y: tuple[float, float], names: tuple[str, str]) -> tuple[Axis, Axis, Markup]:
    """Return both axes of a field, and their drawing."""
    over, beside = ticks(*x), ticks(*y)
    across, up = Axis(over[0], over[-1], LEFT + 4, RIGHT - 4), Axis(beside[0], beside[-1], BASE, TOP)
    drawn = left_axis(up, beside, LEFT, RIGHT, names[1]) + bottom_axis(across, over, TOP, BASE, names[0])
    return across, up, drawn


def _bar(row: Bar, top: float, across: Axis) -> Markup:
    middle = top + BAR / 2
    name = row.name if len(row.name) <= MOST else row.name[: MOST - 3] + "..."
    parts = [text(LABELS - 8, middle + 2, name, "end")]
    if row.value is None:
        return join([*parts, text(across(0) + 4, middle + 2, UNDEFINED)])
    start, end = sorted((across(0), across(PERCENT * row.value)))
    parts.append(box(start, top + 2, end - start, BAR - 8, "bar"))
    if row.ends is not None:
        low, high = (across(PERCENT * value) for value in row.ends)
        parts.append(line(low, middle - 2, high, middle - 2, "whisker"))
        parts += [line(place, middle - 6, place, middle + 2, "whisker") for place in (low, high)]
    return join([*parts, text(WIDTH - 4, middle + 2, f"{PERCENT * row.value:.2f}", "end")])


def _apart(marks: Sequence[float], axis: Axis) -> list[float]:
    """Return the marks whose numbers do not overlap an earlier number."""
    kept: list[float] = []
    for mark in marks:
        if not kept or axis(mark) - axis(kept[-1]) >= APART:
            kept.append(mark)
    return kept


def _legend(place: int, name: str, kind: str) -> Markup:
    y = HEIGHT + 6 + 16 * place
    return line(LEFT, y, LEFT + 24, y, kind) + text(LEFT + 32, y + 4, name)
