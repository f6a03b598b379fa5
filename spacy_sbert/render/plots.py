"""Plots as SVG."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

_JOINERS = "\u200c\u200d"  # format characters without which Persian, Hindi and emoji are written wrongly


def clean(text: object) -> str:
    """Replace control and format characters, except zero-width joiners, and lone surrogates with spaces."""
    text = str(text)
    if text.isprintable():  # most are, and this is fast
        return text
    return "".join(" " if unicodedata.category(c)[0] == "C" and c not in _JOINERS else c for c in text)


_WIDTH = 420  # of every plot, so that text stays readable on a phone
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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
        low, high, value = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return evenly spaced round numbers, the first and last at or beyond the ends."""
    spread = high - low if high > low else 1.0
    power = 10.0 ** math.floor(math.log10(spread / wanted))
    step = next(power * step for step in _STEPS if spread / (power * step) <= wanted)
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


def shape(places: str, kind: str) -> Markup:
    """Draw a path; places: its commands, such as "M0 0h1"."""
    return Markup('<path class="{}" d="{}"/>').format(kind, places)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a rectangle."""
    element = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    return element.format(kind, number(x), number(y), number(width), number(height))


def _path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    return shape("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), kind)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return _path([(x1, y1), (x2, y2)], kind)


def bottom_axis(axis: Axis, marks: Sequence[float], top: float, base: float, name: str) -> Markup:
    """Draw grid lines from top to base, the numbers below them, and the name of the axis."""
    lines = [_line(axis(mark), top, axis(mark), base, "grid") for mark in marks]
    words = [text(axis(mark), base + 15, f"{mark:g}", "middle") for mark in marks]
    return join([*lines, *words, text((axis.start + axis.end) / 2, base + 32, name, "middle", "name")])


def left_axis(axis: Axis, marks: Sequence[float], left: float, right: float, name: str) -> Markup:
    """Draw grid lines from left to right, the numbers to their left, and the name of the axis above."""
    lines = [_line(left, axis(mark), right, axis(mark), "grid") for mark in marks]
    words = [text(left - 6, axis(mark) + 4, f"{mark:g}", "end") for mark in marks]
    return join([*lines, *words, text(4, axis.end - 10, name, "start", "name")])


_LEFT, _RIGHT, _TOP, _BASE = 44, _WIDTH - 12, 34, 296  # of the field where values stand
_HEIGHT = _BASE + 40
_LAYERS = 4  # of points, each see-through: one path paints a place where points overlap but once
_LABELS, _VALUES, _BAR = 132, 46, 22  # room for the names of bars and for their figures; height of a bar with its gap
_MOST = 20  # characters of the name of a bar
_APART = 30  # pixels between numbers below an axis
_COLORS = 6  # of curves, in plots.css
UNDEFINED = "undefined"  # in place of a figure that is not defined


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


@dataclass(frozen=True)
class Box:
    """How values of a group spread: its name, how many they are, and five percentiles in rising order."""

    name: str
    count: int
    percentiles: Sequence[float]


def _plot(title: str, description: str, height: float, parts: Iterable[Markup]) -> Plot:
    """Return an SVG of the common width with its caption; screen readers read out title and description."""
    svg = Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{title}. {description}"><title>{title}</title>'
        "<desc>{description}</desc>{}</svg>"
    ).format(_WIDTH, number(height), join(parts), title=clean(title), description=clean(description))
    return Plot(f"{title}. {description}.", svg)


def scatter(x: Sequence[float], y: Sequence[float], names: tuple[str, str], title: str, description: str) -> Plot:
    """Draw a scatter plot.

    x, y (n numbers each). names: of both axes. title, description: of the caption, and for screen readers.
    """
    over, beside = ticks(min(x), max(x)), ticks(min(y), max(y))
    across, up = Axis(over[0], over[-1], _LEFT + 4, _RIGHT - 4), Axis(beside[0], beside[-1], _BASE, _TOP)
    axes = [left_axis(up, beside, _LEFT, _RIGHT, names[1]), bottom_axis(across, over, _TOP, _BASE, names[0])]
    places = [f"M{number(across(a))} {number(up(b))}h0" for a, b in zip(x, y, strict=True)]
    layers = [shape("".join(places[start::_LAYERS]), "dots") for start in range(_LAYERS)]
    return _plot(title, description, _HEIGHT, [*axes, *layers])


def boxes(groups: Sequence[Box], names: tuple[str, str], title: str, description: str) -> Plot:
    """Draw box plots side by side.

    A box reaches from the second to the fourth of the five percentiles and shows the median; whiskers reach to the
    first and the last.
    """
    values = [value for group in groups for value in group.percentiles]
    marks = ticks(min(values), max(values))
    up = Axis(marks[0], marks[-1], _BASE, _TOP)
    step = (_RIGHT - _LEFT) / len(groups)
    parts = [left_axis(up, marks, _LEFT, _RIGHT, names[1])]
    parts.append(text((_LEFT + _RIGHT) / 2, _BASE + 46, names[0], "middle", "name"))
    for place, group in enumerate(groups):
        middle, half = _LEFT + (place + 0.5) * step, min(0.32 * step, 28)
        low, first, median, third, high = (up(value) for value in group.percentiles)
        parts += [
            _line(middle, low, middle, first, "edge"),
            _line(middle, third, middle, high, "edge"),
            box(middle - half, third, 2 * half, max(first - third, 0.5), "box"),
            _line(middle - half, median, middle + half, median, "median"),
            text(middle, _BASE + 15, group.name, "middle"),
            text(middle, _BASE + 29, f"n={group.count}", "middle", "small"),
        ]
    return _plot(title, description, _HEIGHT + 14, parts)


def bars(rows: Sequence[Bar], name: str, title: str, description: str, reach: tuple[float, float] = (0.0, 1.0)) -> Plot:
    """Draw bars from 0, with intervals across their ends.

    rows (Sequence of Bar): from top to bottom; values are shown x 100. name: of the axis. reach: what the axis shows at
        least.
    """
    values = [value for row in rows for value in (row.value, *(row.ends or ())) if value is not None]
    marks = ticks(100.0 * min(*values, *reach), 100.0 * max(*values, *reach), 5)
    across = Axis(marks[0], marks[-1], _LABELS, _WIDTH - _VALUES)
    base = 8 + _BAR * len(rows)
    parts = [bottom_axis(across, marks, 4, base, name)]
    for place, row in enumerate(rows):
        top = 8 + _BAR * place
        middle = top + _BAR / 2
        short = row.name if len(row.name) <= _MOST else row.name[: _MOST - 3] + "..."
        parts.append(text(_LABELS - 8, middle + 2, short, "end"))
        if row.value is None:
            parts.append(text(across(0) + 4, middle + 2, UNDEFINED))
            continue
        start, end = sorted((across(0), across(100.0 * row.value)))
        parts.append(box(start, top + 2, end - start, _BAR - 8, "bar"))
        if row.ends is not None:
            low, high = (across(100.0 * value) for value in row.ends)
            parts.append(_line(low, middle - 2, high, middle - 2, "whisker"))
            parts += [_line(place, middle - 6, place, middle + 2, "whisker") for place in (low, high)]
        parts.append(text(_WIDTH - 4, middle + 2, f"{100.0 * row.value:.2f}", "end"))
    parts.append(_line(across(0), 4, across(0), base, "edge"))
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
    across = Axis(sizes[0], sizes[-1], _LEFT + 14, _RIGHT - 14, log=True)
    up = Axis(marks[0], marks[-1], _BASE, _TOP)
    apart: list[float] = []  # the sizes whose numbers do not overlap an earlier number
    for size in sizes:
        if not apart or across(size) - across(apart[-1]) >= _APART:
            apart.append(size)
    parts = [left_axis(up, marks, _LEFT, _RIGHT, names[1]), bottom_axis(across, apart, _TOP, _BASE, names[0])]
    for place, name in enumerate([*lines, *levels]):
        color, y = f"c{place % _COLORS}", _HEIGHT + 6 + 16 * place
        if place < len(lines):
            kind, places = f"line {color}", [(across(x), up(y)) for x, y in lines[name]]
            dots = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
            parts += [_path(places, kind), shape(dots, f"dot {color}")]
        else:
            kind = f"level {color}"
            parts.append(_line(_LEFT, up(levels[name]), _RIGHT, up(levels[name]), kind))
        parts += [_line(_LEFT, y, _LEFT + 24, y, kind), text(_LEFT + 32, y + 4, name)]
    return _plot(title, description, _HEIGHT + 6 + 16 * (len(lines) + len(levels)), parts)
