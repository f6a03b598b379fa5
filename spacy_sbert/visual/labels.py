"""The labels of a map: their names, their buttons, and where their names stand."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy
from markupsafe import Markup

from ..render.svg import join, shape, text
from .errors import Errors
from .marks import MOST_LABELS, kind, outline
from .terms import class_terms

OTHERS = "other: {count} more labels"  # the name of labels beyond those that can be told apart
NO_CLUSTER = -1  # as spacy_sbert.search numbers texts that are in none
LONGEST = 32  # characters of a name on the map; the button has all of it
LETTER, LINE = 7.0, 16.0  # pixels that a letter takes at most, and a line
MOVES = (0.0, -14.0, 14.0, -28.0, 28.0, -42.0, 42.0)  # pixels from the middle of its points to a name, in y


def named(
    labels: Iterable[object] | None, words: Sequence[Sequence[str]], terms: bool | None
) -> tuple[list[str], list[int]]:
    """The names of the distinct labels in the order of appearance, and the place of each text's label among them. Of
    more than MOST_LABELS the largest have their names, and all others one together, the last.

    labels: one for each text. words: of each text, see words_of. terms: whether names have the terms of their texts
    behind them; None for those of clusters alone, which are numbers.
    RAISES (ValueError): if there are not as many labels as texts, or none to name.
    """
    if labels is None:
        if terms:
            raise ValueError(Errors.VISUAL_TERMS)
        return [], [0] * len(words)
    given = list(labels)
    if len(given) != len(words):
        raise ValueError(Errors.VISUAL_LABEL_COUNT.format(given=len(given), expected=len(words)))
    counts = Counter(map(str, given))
    largest = {label for label, _ in counts.most_common(None if len(counts) <= MOST_LABELS else MOST_LABELS - 1)}
    names = [label for label in counts if label in largest]
    places = {label: place for place, label in enumerate(names)}
    group = [places.get(label, len(names)) for label in map(str, given)]
    clusters = all(isinstance(label, Integral) and not isinstance(label, bool) for label in given)
    if terms or (terms is None and clusters):
        found = class_terms(words, group, len(names) + 1)
        names = [
            _name(name, own, clusters or _are_numbers(counts))
            for name, own in zip(names, found[: len(names)], strict=True)
        ]
    smaller = len(counts) - len(largest)
    return names + ([OTHERS.format(count=smaller)] if smaller else []), group


def _are_numbers(labels: Iterable[str]) -> bool:
    """Whether they are those of clusters, read from a table."""
    return all(re.fullmatch(r"-1|\d+", label) for label in labels)


def _name(label: str, terms: Sequence[str], are_clusters: bool) -> str:
    said = "no cluster" if are_clusters and label == str(NO_CLUSTER) else ", ".join(terms)
    return f"{label}: {said}" if said else label


def buttons(names: Sequence[str], group: Sequence[int]) -> list[dict[str, object]]:
    """The labels: each has a button that shows its points alone."""
    counts = Counter(group)
    return [
        {"name": name, "mark": shape(f"M0 0{outline(place, 6)}", kind(place)), "count": counts[place]}
        for place, name in enumerate(names)
    ]


def together(group: Sequence[int], places: Sequence[tuple[float, float]]) -> list[tuple[int, float, float]]:
    """Return the groups whose points keep together, the largest first, each with the middle of its points.

    places: of the points, in pixels.
    """
    points, of = numpy.array(places), numpy.array(group)
    found: list[tuple[int, float, float]] = []
    for place, _ in Counter(group).most_common():
        middle = numpy.median(points[of == place], axis=0)
        if _keeps_together(points - middle, of == place):
            found.append((place, float(middle[0]), float(middle[1])))
    return found


def shortened(name: str) -> str:
    """Return a name as it is on the map."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def on_map(
    names: Sequence[str],
    group: Sequence[int],
    places: Sequence[tuple[float, float]],
    field: tuple[float, float, float, float],
) -> Markup:
    """The names of groups that keep together, near their middle, where they cover the fewest points; the largest first,
    without those that would cover another name.

    places: of the points, in pixels. field: its left, top, right and bottom, between which names stand.
    """
    points = numpy.array(places)
    left, top, right, bottom = field
    taken: list[tuple[float, float, float]] = []
    found: list[Markup] = []
    for place, x, middle in together(group, places) if names else ():
        name = shortened(names[place])
        half = LETTER * len(name) / 2
        x = min(max(x, left + half), right - half)
        heights = [min(max(middle + move, top + LINE), bottom - LINE) for move in MOVES]
        free = [y for y in heights if _is_free(taken, x, half, y)]
        if free:
            y = min(free, key=lambda y: _covered(points, x, half, y))
            taken.append((x, half, y))
            found.append(text(x, y + LINE / 4, name, "middle", "group"))
    return join(found)


def _keeps_together(points: numpy.ndarray, own: numpy.ndarray) -> bool:
    """Whether more than half of the points as near to the middle of a group as half of its own are its own.

    points (float64 (n, 2)): from that middle. own (bool (n,)): which are of the group.
    """
    far = numpy.hypot(*points.T)
    near = far <= numpy.median(far[own])
    return bool(2 * (near & own).sum() > near.sum())


def _is_free(taken: Sequence[tuple[float, float, float]], x: float, half: float, y: float) -> bool:
    return not any(abs(x - a) < half + b and abs(y - c) < LINE for a, b, c in taken)


def _covered(points: numpy.ndarray, x: float, half: float, y: float) -> int:
    """How many points, float64 (n, 2), a name of this half width would cover."""
    return int((numpy.abs(points - [x, y]) < [half, LINE / 2 + 3]).all(axis=1).sum())
