"""The map: a collection of texts as points on two axes."""

from collections.abc import Iterable, Sequence

import numpy
from markupsafe import Markup

from ..errors import Errors
from ..render.plots import Axis, bottom_axis, box, clean, join, left_axis, number, shape, ticks
from ..validation import Seed, validated
from .labels import MOST_LABELS, buttons, kind, named, on_map, outline, shortened, together, words_of
from .page import Picture
from .projection import MOST_TSNE, has_tsne, import_tsne, pca, tsne
from .rows import Text, as_rows, language, row_vector, unit_rows

MOST = 20_000  # points
MOST_CHARACTERS = 500  # of a text that is shown
WIDTH, HEIGHT = 760, 560
TOP, EDGE = 34, 12
FIELD = 52, TOP, WIDTH - EDGE, HEIGHT - 44  # left, top, right and bottom: of a map with axes
WHOLE = EDGE, TOP, WIDTH - EDGE, HEIGHT - EDGE  # of one without
MARGIN = 12.0  # between the outermost points and the frame
PROJECTIONS = ("pca", "tsne")
LEAST_TSNE = 50  # points: fewer are projected by PCA unless asked otherwise
PCA_NOTE = (
    "Projection: principal components (PCA). The two axes hold {share:.1f} % of the variance of the vectors: texts "
    "that lie close together here may be far apart along the other axes."
)
TSNE_NOTE = (
    "Projection: t-SNE, seed {seed}. Neighbours are similar; distances between groups, and their sizes, mean nothing."
)
SAMPLE_NOTE = " t-SNE placed {most} of the texts, chosen at random; each other text stands among its nearest of these."
HINT = (
    "Point at the map, or move along the texts with the arrow keys, to read them. Zoom with the buttons, the keys + "
    "and -, two fingers, or the wheel after a click; then drag."
)
DENSE = 1000  # points, of which more have no outlines: these would cover the points
LAYERS = 6  # of a dense map: where see-through points of one path overlap, they are painted once
OPAQUE, FAINT, SPARSE = 0.85, 0.35, 300  # the opacity of up to SPARSE points, and the least of more
SMALL_SCREEN = 1.8  # times as large are the points there


@validated
def scatter(
    docs: Text | Iterable[Text],
    *,
    labels: Iterable[object] | None = None,
    projection: str | None = None,
    seed: Seed = 0,
    title: str | None = None,
    terms: bool | None = None,
) -> Picture:
    """Draw a collection as points on a plane.

    docs (Doc, Span or Iterable of them): the texts. labels (Iterable): a label or number of a cluster for each of them,
        which decides the colour and shape of its point; of more than 40 different ones the 39 of the most texts
        have their own, and the others one together.
    projection (str): "pca", the first two principal components of the vectors brought to length 1, or "tsne". By
        default t-SNE if scikit-learn is installed and there are 50 texts or more, else PCA.
    seed (int): of t-SNE. title (str): above the picture.
    terms (bool): whether labels are named by the words that tell their texts from others, see class_terms; by default
        if they are the numbers of clusters.
    RETURNS (Picture): an SVG with a legend.
    RAISES (ValueError): for fewer than two texts or more than 20,000, labels that are not one for each text, an unknown
        projection, or vectors that are missing, of unequal widths, not finite, or all of one direction.
    RAISES (ImportError): for t-SNE without scikit-learn.
    """
    check_projection(projection)
    texts, words, vectors, lang = _read(docs)
    names, group = named(labels, words, terms)
    if projection is None:
        projection = "tsne" if len(texts) >= LEAST_TSNE and has_tsne() else "pca"
    points, axes, note = _project(vectors, projection, seed)
    field = FIELD if axes else WHOLE
    places, axes_drawn = _place(points, axes, field)
    size = 5 if len(places) <= 300 else 4 if len(places) <= DENSE else 2.5
    return Picture(
        template="visual/map.html",
        title=title or f"Map of {len(texts)} texts",
        note=f"{note} {HINT}",
        lang=lang,
        drawn={
            "width": WIDTH,
            "height": HEIGHT,
            "description": note,
            "drawing": axes_drawn + _points(places, group, size) + on_map(names, group, places, field),
            "opacity": opacity(len(places)),
            "labels": buttons(names, group),
        },
        data={
            "frame": field,
            "opacity": opacity(len(places)),
            "middles": [
                [shortened(clean(names[place])), place, round(x, 1), round(y, 1)]
                for place, x, y in (together(group, places) if names else ())
            ],
            "outlines": [
                [outline(place, size), outline(place, SMALL_SCREEN * size)] for place in range(max(1, len(names)))
            ],
            "places": [[round(x, 1), round(y, 1)] for x, y in places],
            "texts": texts,
            "names": [clean(name) for name in names],
            "group": group,
        },
    )


def check_projection(projection: object) -> None:
    """Check that a projection can be used.

    RAISES (ValueError): if it is unknown; (ImportError): if it needs scikit-learn, which is not installed.
    """
    if projection not in (None, *PROJECTIONS):
        raise ValueError(f"Unknown projection '{projection}': expected one of {', '.join(PROJECTIONS)}.")
    if projection == "tsne":
        import_tsne()


def check_sizes(n_texts: int, n_labels: int) -> None:
    """Raise ValueError if there are too many texts or labels for a map. Called before texts are encoded."""
    if n_texts > MOST:
        raise ValueError(Errors.VISUAL_TOO_MANY_POINTS.format(most=MOST))
    if n_labels > MOST_LABELS:
        raise ValueError(
            f"Cannot tell {n_labels} clusters apart in one picture: expected at most {MOST_LABELS}. Find "
            "fewer, or let the command `cluster` find them: of the labels of a table the largest are told "
            "apart."
        )


def _read(docs: Text | Iterable[Text]) -> tuple[list[str], list[list[str]], numpy.ndarray, str]:
    """Return the shown text, the words and the vector of length 1 of each text, and the language.

    No Doc is kept, as there may be many.
    """
    texts: list[str] = []
    words: list[list[str]] = []
    vectors: list[numpy.ndarray] = []
    lang = ""
    for row in as_rows(docs):
        if len(texts) == MOST:
            raise ValueError(Errors.VISUAL_TOO_MANY_POINTS.format(most=MOST))
        vectors.append(row_vector(row, len(texts)))
        texts.append(_shortened(row.text))
        words.append(words_of(row))
        lang = lang or language(row)
    if len(texts) < 2:
        raise ValueError(Errors.VISUAL_TOO_FEW.format(given=len(texts), least=2))
    return texts, words, unit_rows(vectors), lang


def _project(vectors: numpy.ndarray, projection: str, seed: int) -> tuple[numpy.ndarray, list[str], str]:
    """Return the points, the names of the axes (none if their numbers mean nothing), and how to read the map."""
    if projection == "tsne":
        note = TSNE_NOTE.format(seed=seed)
        if len(vectors) > MOST_TSNE:
            note += SAMPLE_NOTE.format(most=MOST_TSNE)
        return tsne(vectors, seed=seed), [], note
    points, shares = pca(vectors)
    axes = [f"principal component {axis}, {100 * share:.1f} % of the variance" for axis, share in enumerate(shares, 1)]
    return points, axes, PCA_NOTE.format(share=100 * shares.sum())


def _place(
    points: numpy.ndarray, axes: Sequence[str], field: tuple[int, int, int, int]
) -> tuple[list[tuple[float, float]], Markup]:
    """Return the points in pixels, on the same scale for both axes, and the frame with the axes that have names."""
    start, ceiling, end, floor = field
    low, high = points.min(axis=0), points.max(axis=0)
    size = numpy.array([end - start, floor - ceiling])
    unit = ((high - low) / (size - 2 * MARGIN)).max()  # a pixel
    middle, reach = (low + high) / 2, unit * size / 2
    (left, bottom), (right, top) = middle - reach, middle + reach
    across, up = Axis(left, right, start, end), Axis(bottom, top, floor, ceiling)
    places = [(across(x), up(y)) for x, y in points.tolist()]
    frame = box(start, ceiling, end - start, floor - ceiling, "frame")
    if not axes:
        return places, frame
    over = [mark for mark in ticks(left, right) if left <= mark <= right]
    beside = [mark for mark in ticks(bottom, top) if bottom <= mark <= top]
    lines = left_axis(up, beside, start, end, axes[1]) + bottom_axis(across, over, ceiling, floor, axes[0])
    return places, lines + frame


def _points(places: Sequence[tuple[float, float]], group: Sequence[int], size: float) -> Markup:
    """Return a path for each label, which is quick to draw; of a dense map one for each label in each layer."""
    is_dense, labels = len(places) > DENSE, max(group) + 1
    paths: list[list[str]] = [[] for _ in range(labels * (LAYERS if is_dense else 1))]
    for at, ((x, y), place) in enumerate(zip(places, group, strict=True)):
        paths[(at * labels + place) % len(paths)].append(f"M{number(x)} {number(y)}{outline(place, size)}")
    dense = " dense" if is_dense else ""
    return join(shape("".join(path), f"points{dense} {kind(at % labels)}") for at, path in enumerate(paths))


def opacity(count: int) -> float:
    """Return the opacity of points: lower if there are more, so that points below others show."""
    return round(max(FAINT, OPAQUE * min(1.0, (SPARSE / count) ** 0.3)), 2)


def _shortened(text: str) -> str:
    """Return a text on one line; a long one is cut, and its length is given."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}… ({len(line)} characters)"
