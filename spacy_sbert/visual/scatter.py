"""The map: a collection of texts as points on two axes, with markers and names of their labels."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from math import cos, lcm, log, pi, sin
from numbers import Integral
from typing import Literal

import numpy
from markupsafe import Markup

from ..pipeline.doc_vectors import check_one_encoder, doc_of, encoders_of_vector
from ..render.plots import Axis, box, clean, number, shape
from ..validation import Seed, validated
from .page import (
    LIGHT_LABELS,
    DocOrSpan,
    DocsToDraw,
    Picture,
    check_n_texts,
    row_vector,
    texts_to_draw,
    unit_rows,
)
from .projection import MAX_TSNE, import_tsne, pca, tsne

# The most points of a map
MAX_POINTS = 20_000
# Characters of a text that is shown
MOST_CHARACTERS = 500
WIDTH = 760
HEIGHT = 560
TOP = 34
EDGE = 12
# Left, top, right and bottom of a map with axes
FIELD = 52, TOP, WIDTH - EDGE, HEIGHT - 44
# The same of a map without axes
WHOLE = EDGE, TOP, WIDTH - EDGE, HEIGHT - EDGE
# Between the outermost points and the frame
MARGIN = 12.0
Projection = Literal["pca", "tsne"]
# Fewer points are projected by PCA unless asked otherwise
LEAST_TSNE = 50
HINT = (
    "Point at the map, or move along the texts with the arrow keys, to read them. Zoom with the "
    "buttons, the keys + and -, two fingers, or the wheel after a click; then drag."
)
# More points have no outlines, which would cover other points
DENSE = 1000
# Paths of a label in a dense map: where see-through points of one path overlap, they are painted
# once
N_LAYERS = 6
# Up to so many points are large and opaque; the opacity of more is lower, but not below FAINT
FEW_POINTS = 300
OPAQUE = 0.85
FAINT = 0.35
# How much larger points are on a small screen
SMALL_SCREEN = 1.8
# Characters of a name on the map; the button has all of it
LONGEST = 32


@validated
def scatter(
    docs: DocsToDraw,
    *,
    labels: Iterable[object] | None = None,
    projection: Projection | None = None,
    seed: Seed = 0,
    title: str | None = None,
    terms: bool | None = None,
) -> Picture:
    """Draw a collection as points on a plane.

    docs (Doc, Span or Iterable of them): the texts. labels (Iterable): a label or number of a
        cluster for each of them, which decides the colour and shape of its point; of more than 40
        different ones the 39 of the most texts have their own, and the others one together.
    projection (str): "pca", the first two principal components of the vectors brought to length 1,
        or "tsne". By default t-SNE if scikit-learn is installed and there are 50 texts or more,
        else PCA.
    seed (int): of t-SNE. title (str): above the picture.
    terms (bool): whether labels are named by the words that tell their texts from others, see
        class_terms; by default if they are the numbers of clusters.
    RETURNS (Picture): an SVG with a legend.
    RAISES (ValueError): for fewer than two texts or more than 20,000, labels that are not one for
        each text, an unknown projection, or vectors that are missing, of unequal widths, not
        finite, or all of one direction.
    RAISES (ImportError): for t-SNE without scikit-learn.
    """
    if projection == "tsne":
        import_tsne()
    texts, words, vectors, lang = _read(docs)
    names, group = _named(labels, words, terms)
    if projection is None:
        projection = _default_projection(len(texts))
    points, axes, note = _project(vectors, projection, seed)
    field = FIELD if axes else WHOLE
    places, axes_drawn = _place(points, axes, field)
    size = _point_size(len(places))
    opacity = _opacity(len(places))
    kinds = range(max(1, len(names)))
    return Picture(
        template="visual/map.html",
        title=title or f"Map of {len(texts)} texts",
        note=f"{note} {HINT}",
        lang=lang,
        drawn={
            "width": WIDTH,
            "height": HEIGHT,
            "description": note,
            "drawing": axes_drawn + _points(places, group, size),
            "opacity": opacity,
            "labels": _legend(names, group),
        },
        data={
            "frame": field,
            "opacity": opacity,
            "middles": _middles(names, group, places),
            "outlines": [[_outline(at, size), _outline(at, SMALL_SCREEN * size)] for at in kinds],
            "places": [[round(x, 1), round(y, 1)] for x, y in places],
            "texts": texts,
            "names": [clean(name) for name in names],
            "group": group,
        },
    )


def _default_projection(n_texts: int) -> Projection:
    if n_texts >= LEAST_TSNE and find_spec("sklearn") is not None:
        return "tsne"
    return "pca"


def _read(
    docs: DocsToDraw,
) -> tuple[list[str], list[list[str]], numpy.ndarray, str]:
    """Return the shown text, words and vector of length 1 of each text, and the language.

    Keep no Doc.
    """
    texts: list[str] = []
    words: list[list[str]] = []
    vectors: list[numpy.ndarray] = []
    encoders: dict[str, str] = {}
    lang = ""
    for row in texts_to_draw(docs):
        check_n_texts(len(texts) + 1, 1, MAX_POINTS)
        vectors.append(row_vector(row, len(texts)))
        encoders |= encoders_of_vector(row)
        texts.append(_shortened(row.text))
        words.append(words_of(row))
        lang = lang or doc_of(row).lang_
    check_n_texts(len(texts), 2, MAX_POINTS)
    check_one_encoder(encoders)
    return texts, words, unit_rows(vectors), lang


def _project(
    vectors: numpy.ndarray, projection: str, seed: int
) -> tuple[numpy.ndarray, list[str], str]:
    """Return the points, the names of the axes, and how to read the map.

    There are no names if the numbers on the axes mean nothing.
    """
    if projection == "tsne":
        note = (
            f"Projection: t-SNE, seed {seed}. Neighbours are similar; distances between groups, "
            "and their sizes, mean nothing."
        )
        if len(vectors) > MAX_TSNE:
            note += (
                f" t-SNE placed {MAX_TSNE} texts, chosen at random; each other one stands among "
                "its nearest of these."
            )
        return tsne(vectors, seed=seed), [], note
    points, shares = pca(vectors)
    axes = [
        f"principal component {axis}, {100 * share:.1f} % of the variance"
        for axis, share in enumerate(shares, 1)
    ]
    note = (
        f"Projection: principal components (PCA). The two axes hold {100 * shares.sum():.1f} % of "
        "the variance of the vectors: texts that lie close together here may be far apart along "
        "the other axes."
    )
    return points, axes, note


def _place(
    points: numpy.ndarray, axes: Sequence[str], field: tuple[int, int, int, int]
) -> tuple[list[tuple[float, float]], Markup]:
    """Return the points in pixels, on one scale for both axes, and the frame.

    The frame has axes if these have names.
    """
    start, ceiling, end, floor = field
    low = points.min(axis=0)
    high = points.max(axis=0)
    size = numpy.array([end - start, floor - ceiling])
    # The length of a pixel in the projection
    pixel = ((high - low) / (size - 2 * MARGIN)).max()
    middle = (low + high) / 2
    reach = pixel * size / 2
    left, bottom = middle - reach
    right, top = middle + reach
    across = Axis.spanning(left, right, start, end, inside=True)
    up = Axis.spanning(bottom, top, floor, ceiling, inside=True)
    places = [(across(x), up(y)) for x, y in points.tolist()]
    frame = box(start, ceiling, end - start, floor - ceiling, "frame")
    if not axes:
        return places, frame
    return places, up.left_of(start, end, axes[1]) + across.below(ceiling, floor, axes[0]) + frame


def _points(places: Sequence[tuple[float, float]], group: Sequence[int], size: float) -> Markup:
    """Return a path for each label, which is quick to draw.

    Of a dense map one for each label in each layer.
    """
    is_dense = len(places) > DENSE
    n_layers = N_LAYERS if is_dense else 1
    n_labels = max(group) + 1
    paths: list[list[str]] = [[] for _ in range(n_layers * n_labels)]
    for at, ((x, y), label) in enumerate(zip(places, group, strict=True)):
        layer = at % n_layers
        outline = f"M{number(x)} {number(y)}{_outline(label, size)}"
        paths[layer * n_labels + label].append(outline)
    style = "points dense" if is_dense else "points"
    return Markup("").join(
        shape("".join(path), f"{style} {_kind(at % n_labels)}") for at, path in enumerate(paths)
    )


def _point_size(count: int) -> float:
    """Return half the width of a point in pixels, by the number of points."""
    if count <= FEW_POINTS:
        return 5
    if count <= DENSE:
        return 4
    return 2.5


def _opacity(count: int) -> float:
    """Return the opacity of points: lower if there are more, so that points below others show."""
    faded = OPAQUE * min(1.0, (FEW_POINTS / count) ** 0.3)
    return round(max(FAINT, faded), 2)


def _shortened(text: str) -> str:
    """Return a text on one line; a long one is cut, and its length is given."""
    line = clean(" ".join(text.split()))
    if len(line) <= MOST_CHARACTERS:
        return line
    return f"{line[:MOST_CHARACTERS]}… ({len(line)} characters)"


def _legend(names: Sequence[str], group: Sequence[int]) -> list[dict[str, object]]:
    """Return the buttons of the labels, which show only the points of one."""
    return [
        {
            "name": name,
            "mark": shape(f"M0 0{_outline(place, 6)}", _kind(place)),
            "count": group.count(place),
        }
        for place, name in enumerate(names)
    ]


def _middles(
    names: Sequence[str], group: Sequence[int], places: Sequence[tuple[float, float]]
) -> list[tuple[str, int, float, float]]:
    """Return the names that stand on the map, each with its label and the middle of its points."""
    if not names:
        return []
    return [
        (_cut(clean(names[place])), place, round(x, 1), round(y, 1))
        for place, x, y in _compact_groups(group, places)
    ]


def _cut(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 1]}…"


# Corners around (0, 0); all shapes have about the area of the circle of radius 1, which has none
_PLUS_CORNERS = (
    (-0.42, -1.3),
    (0.42, -1.3),
    (0.42, -0.42),
    (1.3, -0.42),
    (1.3, 0.42),
    (0.42, 0.42),
)
_PLUS = (*_PLUS_CORNERS, *((-x, -y) for x, y in _PLUS_CORNERS))
_STAR = tuple(
    (r * sin(pi * corner / 5), -r * cos(pi * corner / 5))
    for corner, r in enumerate((1.55, 0.65) * 5)
)
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    # Circle
    (),
    # Square
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    # Triangle
    ((0.0, -1.3), (1.25, 0.9), (-1.25, 0.9)),
    # Diamond
    ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
    # Triangle upside down
    ((0.0, 1.3), (-1.25, -0.9), (1.25, -0.9)),
    _PLUS,
    # Wide rectangle
    ((-1.5, -0.55), (1.5, -0.55), (1.5, 0.55), (-1.5, 0.55)),
    _STAR,
    # Cross
    tuple(((x - y) / 2**0.5, (x + y) / 2**0.5) for x, y in _PLUS),
    # High rectangle
    ((-0.55, -1.5), (0.55, -1.5), (0.55, 1.5), (-0.55, 1.5)),
)
# 40: after them colour and shape begin again together
MOST_LABELS = lcm(len(LIGHT_LABELS), len(_SHAPES))


def _kind(place: int) -> str:
    """Return the CSS class with the colour of a label, by its place in the order of labels."""
    return f"c{place % len(LIGHT_LABELS)}"


def _outline(place: int, size: float) -> str:
    """Return the shape of a label as an SVG path that starts at its centre.

    place: of the label in the order of labels. size: half the width of the shape.
    """
    corners = _SHAPES[place % len(_SHAPES)]
    if not corners:
        radius = number(size)
        across = number(2 * size)
        return (
            f"m-{radius} 0a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0 -{across} 0z"
        )
    steps = [(x - a, y - b) for (a, b), (x, y) in pairwise([(0.0, 0.0), *corners])]
    return "m" + "l".join(f"{number(size * x)} {number(size * y)}" for x, y in steps) + "z"


def _compact_groups(
    group: Sequence[int], places: Sequence[tuple[float, float]]
) -> Iterable[tuple[int, float, float]]:
    """Yield the groups that keep together, the largest first, and their middles, in pixels.

    More than half of the points within the median distance of a group's points from its middle are
    its own.
    """
    points = numpy.array(places)
    groups = numpy.array(group)
    for place, _ in Counter(group).most_common():
        own = groups == place
        middle = numpy.median(points[own], axis=0)
        far = numpy.hypot(*(points - middle).T)
        near = far <= numpy.median(far[own])
        if 2 * (near & own).sum() > near.sum():
            yield place, float(middle[0]), float(middle[1])


def words_of(text: DocOrSpan) -> list[str]:
    """Return the words of a text that can name it, in lower case.

    They have two or more letters, and are no stop words.
    """
    return [
        token.lower_ for token in text if token.is_alpha and not token.is_stop and len(token) > 1
    ]


def class_terms(
    words: Iterable[Sequence[str]], group: Sequence[int], groups: int, *, count: int = 3
) -> list[list[str]]:
    """Return the terms of each group with the highest class-based tf-idf, the highest first.

    W(t, c) = tf(t, c) / |c| log(1 + A / tf(t))

    tf(t, c) is how often the term t occurs in group c, |c| how many words the group has, tf(t) how
    often the term occurs in all groups, and A the mean number of words of a group that has any. Of
    equal terms the first in the alphabet comes first.

    words (Iterable of lists of str): the words of each text. group (Sequence[int]): the group of
        each text, from 0.
    groups (int): the number of groups. count (int): the number of terms for each group.
    RETURNS (list of lists of str): fewer for a group with fewer different words.
    SOURCE: Grootendorst 2022, BERTopic: Neural topic modeling with a class-based TF-IDF procedure,
        section 3.3; tf divided by |c| as in its software.
    """
    counts: list[Counter[str]] = [Counter() for _ in range(groups)]
    for tokens, place in zip(words, group, strict=True):
        counts[place].update(tokens)
    total = sum(counts, Counter())
    n_filled = len(list(filter(None, counts)))
    mean = total.total() / max(1, n_filled)
    terms: list[list[str]] = []
    for own in counts:
        # |c| is the same for all terms of a group, which is all that are compared
        weights = {term: tf * log(1 + mean / total[term]) for term, tf in own.items()}
        terms.append(sorted(weights, key=lambda term: (-weights[term], term))[:count])
    return terms


# Labels that are missing, of Python, NumPy and pandas
_MISSING = {"None", "nan", "NaT", "<NA>"}
_CLUSTER = re.compile(r"-1|\d+")


def _named(
    labels: Iterable[object] | None, words: Sequence[Sequence[str]], terms: bool | None
) -> tuple[list[str], list[int]]:
    """Return the names of the labels in order of appearance, and each text's index among them.

    Of more than MOST_LABELS the largest keep their names. terms: see scatter. words: of each text,
    see words_of.
    """
    if labels is None:
        if terms:
            raise ValueError(
                'Cannot name labels by their terms: none are given. Set options = {"labels": ...}.'
            )
        return [], [0] * len(words)
    labels = list(labels)
    _check_labels(labels, len(words))
    own = list(map(str, labels))
    counts = Counter(own)
    names = _most_common(counts)
    n_others = len(counts) - len(names)
    places = {label: place for place, label in enumerate(names)}
    group = [places.get(label, len(names)) for label in own]
    are_numbers = all(map(_is_whole, labels))
    if terms is None:
        terms = are_numbers
    if terms:
        # Numbers of clusters that were read from a table are strings
        are_clusters = are_numbers or all(map(_CLUSTER.fullmatch, counts))
        names = _with_terms(names, class_terms(words, group, len(names) + 1), are_clusters)
    if n_others:
        names.append(f"other: {n_others} more labels")
    return names, group


def _most_common(counts: Counter[str]) -> list[str]:
    """Return the labels that have a colour and a shape of their own, in order of appearance."""
    if len(counts) <= MOST_LABELS:
        return list(counts)
    largest = {label for label, _ in counts.most_common(MOST_LABELS - 1)}
    return [label for label in counts if label in largest]


def _is_whole(label: object) -> bool:
    return isinstance(label, Integral) and not isinstance(label, bool)


def _check_labels(labels: Sequence[object], n_texts: int) -> None:
    """Raise ValueError unless each text has a label."""
    if len(labels) != n_texts:
        raise ValueError(
            f"Given {len(labels)} labels, expected one for each of the {n_texts} texts."
        )
    for place, label in enumerate(labels):
        if not isinstance(label, str) and str(label) in _MISSING:
            raise ValueError(
                f"Label number {place} (from 0) is missing: {label}. Give each text a label: "
                'labels.fillna("none") of pandas.'
            )


def _with_terms(
    names: Sequence[str], terms: Sequence[Sequence[str]], are_clusters: bool
) -> list[str]:
    """Return names of labels with their terms; the cluster -1 is that of texts in no cluster."""
    described: list[str] = []
    for name, own in zip(names, terms, strict=False):
        description = ", ".join(own)
        if are_clusters and name == "-1":
            description = "no cluster"
        if description:
            name = f"{name}: {description}"
        described.append(name)
    return described
