"""Labels and markers of points and clusters."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import cos, lcm, log, pi, sin
from numbers import Integral

import numpy
from markupsafe import Markup

from ..render.plots import join, number, shape, text
from .page import LIGHT_LABELS
from .rows import Text

TERMS = 3  # in the name of a group


def words_of(text: Text) -> list[str]:
    """Return the words of a text that can name it, in lower case: two or more letters, no stop words."""
    return [token.lower_ for token in text if token.is_alpha and not token.is_stop and len(token) > 1]


def class_terms(
    words: Iterable[Sequence[str]], group: Sequence[int], groups: int, *, count: int = TERMS
) -> list[list[str]]:
    """Return the terms of each group with the highest class-based tf-idf, the highest first.

    W(t, c) = tf(t, c) / |c| log(1 + A / tf(t))

    tf(t, c) is how often the term t occurs in group c, |c| how many words the group has, tf(t) how often the term
    occurs in all groups, and A the mean number of words of a group that has any. Of equal terms the first in the
    alphabet comes first.

    words (Iterable of lists of str): the words of each text. group (Sequence[int]): the group of each text, from 0.
    groups (int): the number of groups. count (int): the number of terms for each group.
    RETURNS (list of lists of str): fewer for a group with fewer different words.
    SOURCE: Grootendorst 2022, BERTopic: Neural topic modeling with a class-based TF-IDF procedure, section 3.3; tf
        divided by |c| as in its software.
    """
    counts: list[Counter[str]] = [Counter() for _ in range(groups)]
    for tokens, place in zip(words, group, strict=True):
        counts[place].update(tokens)
    total = sum(counts, Counter())
    mean = total.total() / max(1, sum(map(bool, counts)))
    found: list[list[str]] = []
    for own in counts:
        # |c| is the same for all terms of a group, which is all that are compared
        weights = {term: tf * log(1 + mean / total[term]) for term, tf in own.items()}
        found.append(sorted(weights, key=lambda term: (-weights[term], term))[:count])
    return found


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
    """Return the CSS class with the colour of a label, by its place in the order of labels."""
    return f"c{place % len(LIGHT_LABELS)}"


def outline(place: int, size: float) -> str:
    """Return the shape of a label, by its place in the order of labels, as an SVG path that starts at its centre."""
    corners = SHAPES[place % len(SHAPES)]
    if not corners:
        radius, across = number(size), number(2 * size)
        return f"m-{radius} 0a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0 -{across} 0z"
    steps = [(x - a, y - b) for (x, y), (a, b) in zip(corners, ((0.0, 0.0), *corners), strict=False)]
    return "m" + "l".join(f"{number(size * x)} {number(size * y)}" for x, y in steps) + "z"


OTHERS = "other: {count} more labels"  # the name of labels beyond those that can be told apart
NO_CLUSTER = -1  # as spacy_sbert.search numbers texts that are in none
LONGEST = 32  # characters of a name on the map; the button has all of it
LETTER, LINE = 7.0, 16.0  # pixels that a letter takes at most, and a line
MOVES = (0.0, -14.0, 14.0, -28.0, 28.0, -42.0, 42.0)  # pixels from the middle of its points to a name, in y


def named(
    labels: Iterable[object] | None, words: Sequence[Sequence[str]], terms: bool | None
) -> tuple[list[str], list[int]]:
    """Return the names of the distinct labels in order of appearance, and the index of each text's label among them.

    If there are more than MOST_LABELS labels, the largest keep their names, and the others share the last one.

    labels: one for each text. words: of each text, see words_of. terms: whether to append the terms of its texts to a
        name; None to append them only to the numbers of clusters.
    RAISES (ValueError): if there are not as many labels as texts, or none to name.
    """
    if labels is None:
        if terms:
            raise ValueError(
                'Cannot name labels by their terms: none are given. Give options = {"labels": ...}, such as '
                "the clusters of spacy_sbert.search.kmeans_clusters."
            )
        return [], [0] * len(words)
    given = list(labels)
    if len(given) != len(words):
        raise ValueError(f"Given {len(given)} labels, expected one for each of the {len(words)} texts.")
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
    """Return whether all labels are numbers of clusters, as read from a table."""
    return all(re.fullmatch(r"-1|\d+", label) for label in labels)


def _name(label: str, terms: Sequence[str], are_clusters: bool) -> str:
    said = "no cluster" if are_clusters and label == str(NO_CLUSTER) else ", ".join(terms)
    return f"{label}: {said}" if said else label


def buttons(names: Sequence[str], group: Sequence[int]) -> list[dict[str, object]]:
    """Return the name, marker and number of texts of each label; its button shows only its points."""
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
    """Shorten a name for the map."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def on_map(
    names: Sequence[str],
    group: Sequence[int],
    places: Sequence[tuple[float, float]],
    field: tuple[float, float, float, float],
) -> Markup:
    """Draw the names of groups that keep together, each near its middle, where it covers the fewest points.

    The largest group comes first; a name that would cover another one is left out.

    places: of the points, in pixels. field: the left, top, right and bottom between which names are drawn.
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
    """Return whether a group is compact.

    It is if more than half of the points within the median distance of its own points from its middle are its own.

    points (float64 (n, 2)): relative to the middle. own (bool (n,)): which points belong to the group.
    """
    far = numpy.hypot(*points.T)
    near = far <= numpy.median(far[own])
    return bool(2 * (near & own).sum() > near.sum())


def _is_free(taken: Sequence[tuple[float, float, float]], x: float, half: float, y: float) -> bool:
    return not any(abs(x - a) < half + b and abs(y - c) < LINE for a, b, c in taken)


def _covered(points: numpy.ndarray, x: float, half: float, y: float) -> int:
    """Count the points, float64 (n, 2), that a name of this half width would cover."""
    return int((numpy.abs(points - [x, y]) < [half, LINE / 2 + 3]).all(axis=1).sum())
