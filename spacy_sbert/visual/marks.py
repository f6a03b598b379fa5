"""How the points of a label look: a colour and a shape, so that labels differ without the colour, too."""

from math import cos, lcm, pi, sin

from ..render.svg import number
from .colours import LIGHT_LABELS

# Corners around (0, 0), of about the same area as the circle of radius 1, which has none.
CIRCLE: tuple[tuple[float, float], ...] = ()
SQUARE = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
TRIANGLE = ((0.0, -1.3), (1.25, 0.9), (-1.25, 0.9))
DIAMOND = ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0))
TURNED = ((0.0, 1.3), (-1.25, -0.9), (1.25, -0.9))
ARM, REACH = 0.42, 1.3  # of a cross: half the width of an arm, and how far it goes
PLUS = (
    *((-ARM, -REACH), (ARM, -REACH), (ARM, -ARM), (REACH, -ARM), (REACH, ARM), (ARM, ARM)),
    *((ARM, REACH), (-ARM, REACH), (-ARM, ARM), (-REACH, ARM), (-REACH, -ARM), (-ARM, -ARM)),
)
CROSS = tuple(((x - y) / 2**0.5, (x + y) / 2**0.5) for x, y in PLUS)
LYING = ((-1.5, -0.55), (1.5, -0.55), (1.5, 0.55), (-1.5, 0.55))
STAR = tuple(
    (radius * sin(pi * corner / 5), -radius * cos(pi * corner / 5)) for corner, radius in enumerate((1.55, 0.65) * 5)
)
STANDING = ((-0.55, -1.5), (0.55, -1.5), (0.55, 1.5), (-0.55, 1.5))
SHAPES = (CIRCLE, SQUARE, TRIANGLE, DIAMOND, TURNED, PLUS, LYING, STAR, CROSS, STANDING)
MOST_LABELS = lcm(len(LIGHT_LABELS), len(SHAPES))  # 40: then colour and shape begin again together


def kind(place: int) -> str:
    """The CSS class with the colour of a label, by its place in the order of labels."""
    return f"c{place % len(LIGHT_LABELS)}"


def outline(place: int, size: float) -> str:
    """The shape of a label, by its place in the order of labels, as an SVG path that starts at its centre."""
    corners = SHAPES[place % len(SHAPES)]
    if not corners:
        radius, across = number(size), number(2 * size)
        return f"m-{radius} 0a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0 -{across} 0z"
    steps = [(x - a, y - b) for (x, y), (a, b) in zip(corners, ((0.0, 0.0), *corners), strict=False)]
    return "m" + "l".join(f"{number(size * x)} {number(size * y)}" for x, y in steps) + "z"
