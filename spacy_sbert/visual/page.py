"""Pages and colors of pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from ..render.document import render

STEPS = 20  # colours on either side of zero
# A similarity of -1, -0.5, 0, 0.5 and 1.
LIGHT = ("#7a2e00", "#e39246", "#f4f4f2", "#74acdb", "#0b2f6b")
DARK = ("#ffd0a1", "#b0611c", "#2a2f38", "#2f76b8", "#bfe0ff")
# Of labels.
LIGHT_LABELS = ("#0b66b0", "#c04f00", "#007d5c", "#a8437f", "#7a6200", "#5b4bb5", "#b3261e", "#4a5563")
DARK_LABELS = ("#6fb7f2", "#ff9f5a", "#4fd0a5", "#ee9bcb", "#e6cf5c", "#b7a9ff", "#ff8d85", "#b5c0ce")


def step(value: float, low: float, high: float) -> int:
    """Return the step of the colour of a similarity: round(STEPS value / max(-low, high)) if low < 0 < high.

    If no end is negative, step 0 is low and STEPS is high; if no end is positive, -STEPS is low and 0 is high.

    value (float): a similarity; beyond the ends, the colour is that of the end. low, high (float): the ends.
    RETURNS (int): from -STEPS to STEPS.
    """
    value = min(high, max(low, value))
    if low < 0 < high:
        return round(STEPS * value / max(-low, high))
    return round(STEPS * (value - (low if low >= 0 else high)) / (high - low))


def scale(stops: Sequence[str]) -> list[str]:
    """Return the colours of all steps, from -STEPS to STEPS, interpolated between equally spaced stops."""
    reach = 2 * STEPS // (len(stops) - 1)
    return [
        _mix(stops[at // reach], stops[min(at // reach + 1, len(stops) - 1)], at % reach / reach)
        for at in range(2 * STEPS + 1)
    ]


def _variables(stops: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Return the colours of a theme by the names of its CSS variables.

    v and i are the colour of each step and the ink on it, numbered from 0 for -STEPS; c is the colour of each label.

    stops: see scale. labels: colours of labels.
    """
    found: dict[str, str] = {}
    for place, colour in enumerate(scale(stops)):
        found |= {f"v{place}": colour, f"i{place}": _ink(colour)}
    return found | {f"c{place}": colour for place, colour in enumerate(labels)}


def _ink(colour: str) -> str:
    """Return black or white, whichever has more contrast with a colour: at least 4.58."""
    return "#000" if _contrast(colour, "#000000") >= _contrast(colour, "#ffffff") else "#fff"


def _contrast(first: str, second: str) -> float:
    """Return (L1 + 0.05) / (L2 + 0.05), where L1 is the higher relative luminance: from 1 to 21.

    SOURCE: WCAG 2.2, contrast ratio and relative luminance.
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in bytes.fromhex(colour[1:]))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _mix(first: str, second: str, share: float) -> str:
    parts = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + bytes(round(a + share * (b - a)) for a, b in parts).hex()


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    template: its path in the package; it extends visual/figure.html. title, note: above it. lang: of the texts.
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
        return render(template, **vars(self), **self.drawn, **themes, steps=STEPS, id=name, in_page=in_page)
