"""The parts of plain inline SVG: text that is escaped, axes, a frame with a name for screen readers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .markup import clean

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
    """Round numbers, equally far from one another, the first and last at or beyond the ends."""
    spread = high - low if high > low else 1.0
    power = 10.0 ** math.floor(math.log10(spread / wanted))
    step = next(power * one for one in STEPS if spread / (power * one) <= wanted)
    first, last = math.floor(low / step + 1e-9), math.ceil((low + spread) / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def number(value: float) -> str:
    """A coordinate, as short as can be."""
    return f"{round(value, 1) + 0.0:g}"


def join(parts: Iterable[Markup]) -> Markup:
    """Elements one after another."""
    return Markup("").join(parts)


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> Markup:
    """A text at a place; anchor: which end of it is there."""
    style = Markup(' class="{}"').format(kind) if kind else ""
    element = Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>')
    return element.format(number(x), number(y), anchor, style, clean(words))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return path([(x1, y1), (x2, y2)], kind)


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through points."""
    return shape("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), kind)


def shape(places: str, kind: str) -> Markup:
    """A path; places: its commands, such as "M0 0h1"."""
    return Markup('<path class="{}" d="{}"/>').format(kind, places)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """A rectangle."""
    element = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    return element.format(kind, number(x), number(y), number(width), number(height))


def bottom_axis(axis: Axis, marks: Sequence[float], top: float, base: float, name: str) -> Markup:
    """Grid lines from top to base, the numbers below them, and the name of the axis."""
    lines = [line(axis(mark), top, axis(mark), base, "grid") for mark in marks]
    words = [text(axis(mark), base + 15, f"{mark:g}", "middle") for mark in marks]
    return join([*lines, *words, text((axis.start + axis.end) / 2, base + 32, name, "middle", "name")])


def left_axis(axis: Axis, marks: Sequence[float], left: float, right: float, name: str) -> Markup:
    """Grid lines from left to right, the numbers before them, and the name of the axis above."""
    lines = [line(left, axis(mark), right, axis(mark), "grid") for mark in marks]
    words = [text(left - 6, axis(mark) + 4, f"{mark:g}", "end") for mark in marks]
    return join([*lines, *words, text(4, axis.end - 10, name, "start", "name")])


def svg(title: str, description: str, height: float, body: Markup) -> Markup:
    """A plot of the common width; title and description are what screen readers say."""
    title, description = clean(title), clean(description)
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{title}. {description}"><title>{title}</title>'
        "<desc>{description}</desc>{}</svg>"
    ).format(WIDTH, number(height), body, title=title, description=description)
