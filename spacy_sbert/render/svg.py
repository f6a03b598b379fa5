"""The parts of plain inline SVG: text that is escaped, axes, a frame with a name for screen readers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .markup import safe

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


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    """A text at a place; anchor: which end of it is there."""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{style}>{safe(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    places = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{places}"/>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A rectangle."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" {size}/>'


def bottom_axis(axis: Axis, marks: Sequence[float], top: float, base: float, name: str) -> str:
    """Grid lines from top to base, the numbers below them, and the name of the axis."""
    lines = [line(axis(mark), top, axis(mark), base, "grid") for mark in marks]
    words = [text(axis(mark), base + 15, f"{mark:g}", "middle") for mark in marks]
    return "".join([*lines, *words, text((axis.start + axis.end) / 2, base + 32, name, "middle", "name")])


def left_axis(axis: Axis, marks: Sequence[float], left: float, right: float, name: str) -> str:
    """Grid lines from left to right, the numbers before them, and the name of the axis above."""
    lines = [line(left, axis(mark), right, axis(mark), "grid") for mark in marks]
    words = [text(left - 6, axis(mark) + 4, f"{mark:g}", "end") for mark in marks]
    return "".join([*lines, *words, text(4, axis.end - 10, name, "start", "name")])


def svg(title: str, description: str, height: float, body: str) -> str:
    """A plot of the common width; title and description say what a reader sees who sees nothing."""
    heading = f"<title>{safe(title)}</title><desc>{safe(description)}</desc>"
    size = f'viewBox="0 0 {WIDTH} {number(height)}"'
    return f'<svg {size} role="img" aria-label="{safe(title)}. {safe(description)}">{heading}{body}</svg>'
