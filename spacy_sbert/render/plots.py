"""Plots as inline SVG: points, boxes, bars and curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from .svg import WIDTH, Axis, bottom_axis, box, join, left_axis, line, number, path, shape, svg, text, ticks

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
    """Points.

    x, y (n numbers each). names: of both axes. title, description: of the caption, and for screen readers.
    """
    across, up, axes = _field((min(x), max(x)), (min(y), max(y)), names)
    places = [f"M{number(across(a))} {number(up(b))}h0" for a, b in zip(x, y, strict=True)]
    layers = [shape("".join(places[start::LAYERS]), "dots") for start in range(LAYERS)]
    return _plot(title, description, HEIGHT, [axes, *layers])


def boxes(groups: Sequence[Box], names: tuple[str, str], title: str, description: str) -> Plot:
    """Box plots side by side: the median in the box from the second to the fourth percentile, whiskers to the ends."""
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
    """Bars from 0, with intervals across their ends.

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
    """Lines through points over a logarithmic axis, dashed levels that belong to no place on it, and a legend.

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
    """Both axes of a field, and how they look."""
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
    """The marks whose numbers do not run into an earlier one."""
    kept: list[float] = []
    for mark in marks:
        if not kept or axis(mark) - axis(kept[-1]) >= APART:
            kept.append(mark)
    return kept


def _legend(place: int, name: str, kind: str) -> Markup:
    y = HEIGHT + 6 + 16 * place
    return line(LEFT, y, LEFT + 24, y, kind) + text(LEFT + 32, y + 4, name)
