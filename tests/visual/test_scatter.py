"""The map: where its points stand, how they look, what it says, and how its clusters are named."""

import math
import re
import sys

import numpy
import pytest
import spacy
from helpers.made_pages import data_of, made, read

from spacy_sbert import visual
from spacy_sbert.visual import scatter
from spacy_sbert.visual.projection import pca
from spacy_sbert.visual.scatter import MOST_LABELS, _kind, _outline, class_terms, words_of

RNG = numpy.random.default_rng(0)
VECTORS = RNG.normal(size=(12, 5)).astype("float32")
DOCS = [made(f"Text {number}.", vector) for number, vector in enumerate(VECTORS)]


def test_points_stand_where_pca_puts_them():
    points, shares = pca(VECTORS)
    page = visual.render(DOCS, "map")
    places = numpy.array(data_of(page)["places"])
    # pixels are an affine image of the points, as many a unit on both axes, y upwards
    unit = (places[:, 0].max() - places[:, 0].min()) / (points[:, 0].max() - points[:, 0].min())
    expected = points * [unit, -unit]
    numpy.testing.assert_allclose(
        places - places.mean(axis=0), expected - expected.mean(axis=0), atol=0.2
    )
    assert f"principal component 1, {100 * shares[0]:.1f} % of the variance" in page
    assert f"principal component 2, {100 * shares[1]:.1f} % of the variance" in page
    assert f"The two axes hold {100 * shares.sum():.1f} % of the variance" in page
    drawn = re.findall(r"M(\S+) ([\d.]+)m", re.search(r'class="points c0" d="(.*?)"', page)[1])
    numpy.testing.assert_allclose(numpy.array(drawn, dtype="float64"), places)


def test_labels():
    labels = [("b", "a", 3)[number % 3] for number in range(12)]
    page = visual.render(DOCS, "map", options={"labels": labels})
    data = data_of(page)
    assert data["names"] == ["b", "a", "3"]
    assert data["group"] == [0, 1, 2] * 4
    paths = re.findall(r'class="points (c\d)" d="(.*?)"', page)
    assert [name for name, _ in paths] == ["c0", "c1", "c2"]
    for group, (_, path) in enumerate(paths):
        assert path.count("M") == 4 == path.count(_outline(group, 5))
    buttons = [values for tag, values in read(page).elements if tag == "button"]
    assert buttons == [{"type": "button", "aria-pressed": "false"}] * 3
    shown = re.findall(r"<span dir=\"auto\" title=\"\w\">(\w)</span> <small>(\d)</small>", page)
    assert shown == [("b", "4"), ("a", "4"), ("3", "4")]
    assert (
        len({(_kind(place), _outline(place, 5)) for place in range(MOST_LABELS)})
        == MOST_LABELS
        == 40
    )


@pytest.mark.parametrize("kinds", [40, 48])
def test_many_labels(kinds):
    """Three texts of the last label, two of the one before, one of each other: the first of these
    have places left.
    """
    labels = [*range(kinds), kinds - 1, kinds - 1, kinds - 2]
    docs = [
        made(f"Text {number}.", vector)
        for number, vector in enumerate(RNG.normal(size=(len(labels), 5)))
    ]
    data = data_of(visual.render(docs, "map", options={"labels": labels, "terms": False}))
    if kinds == 40:
        assert data["names"] == [str(label) for label in range(40)]
        assert data["group"] == labels
        return
    assert data["names"] == [*map(str, [*range(37), 46, 47]), "other: 9 more labels"]
    assert data["group"] == [*range(37), *[39] * 9, 37, 38, 38, 38, 37]
    page = visual.render(docs, "map", options={"labels": list(map(str, labels)), "terms": True})
    assert len(data_of(page)["names"]) == 40
    assert data_of(page)["names"][-1] == "other: 9 more labels"


def test_tsne_is_the_same_for_the_same_seed():
    pytest.importorskip("sklearn")
    pages = [
        visual.render(DOCS, "map", options={"projection": "tsne", "seed": seed}) for seed in (3, 3)
    ]
    places = [data_of(page)["places"] for page in pages]
    assert places[0] == places[1] != data_of(visual.render(DOCS, "map"))["places"]
    assert "t-SNE, seed 3" in pages[0]
    assert "principal component" not in pages[0]


@pytest.mark.parametrize(
    ("docs", "options", "message"),
    [
        (DOCS[:1], {}, "Cannot draw 1 texts: expected at least 2"),
        ([DOCS[0]] * 20_001, {}, "Cannot draw 20001 texts: expected at most 20000"),
        (DOCS, {"labels": ["a"]}, "Given 1 labels, expected one for each of the 12 texts"),
        (
            DOCS,
            {"colour": "red"},
            "The style 'map' has no option 'colour': expected some of labels, projection",
        ),
    ],
)
def test_refused(docs, options, message):
    with pytest.raises(ValueError, match=message):
        visual.render(docs, "map", options=options)


def test_without_scikit_learn(monkeypatch):
    """PCA is the default, of a dozen texts here."""
    monkeypatch.setattr(scatter, "LEAST_TSNE", len(DOCS))
    for name in ("sklearn", "sklearn.manifold"):
        monkeypatch.setitem(sys.modules, name, None)
    page = visual.render(DOCS, "map")
    assert (
        data_of(page)["places"]
        == data_of(visual.render(DOCS, "map", options={"projection": "pca"}))["places"]
    )
    assert "Projection: principal components (PCA)." in page


def test_translucent_points(monkeypatch):
    """A path paints each place once: neighbours in the order of texts are in different paths."""
    monkeypatch.setattr(scatter, "DENSE", len(DOCS) - 1)
    page = visual.render(DOCS, "map", options={"labels": ["a", "b"] * 6})
    paths = re.findall(r'class="points dense (c\d)" d="(.*?)"', page)
    assert [name for name, _ in paths] == ["c0", "c1"] * scatter.N_LAYERS
    found = {
        name: [
            one
            for kind, path in paths
            if kind == name
            for one in re.findall(r"M(\S+ [\d.]+)m", path)
        ]
        for name in ("c0", "c1")
    }
    places = [f"{x:g} {y:g}" for x, y in data_of(page)["places"]]
    assert sorted(found["c0"]) == sorted(places[::2])
    assert sorted(found["c1"]) == sorted(places[1::2])
    assert max(path.count("M") for _, path in paths) < 6


TITLES = [
    "The coins are on the market.",
    "A market of coins.",
    "Trees in the garden.",
    "The garden has a tree, at market.",
]
GARDEN = [
    made(text, vector)
    for text, vector in zip(TITLES, [[1, 0], [1, 0.1], [0, 1], [0.1, 1]], strict=True)
]


def test_terms_by_hand():
    words = [["a", "a", "b"], ["b", "c", "c", "d"], ["d"]]
    # groups 0 and 1 have 3 and 5 words, A = 4; tf: a 2, b 2, c 2, d 2; all have the idf log(1 + 4 /
    # 2)
    assert class_terms(words, [0, 1, 1], 2) == [["a", "b"], ["c", "d", "b"]]
    assert class_terms(words, [0, 1, 1], 2, count=1) == [["a"], ["c"]]
    # a frequent term gives way to a rare one: 3 log(1 + 5 / 7) < 2 log(1 + 5 / 2)
    words = [["all"] * 3 + ["own"] * 2, ["all"] * 4 + ["other"]]
    assert 3 * math.log(1 + 5 / 7) < 2 * math.log(1 + 5 / 2)
    assert class_terms(words, [0, 1], 2)[0] == ["own", "all"]
    assert words_of(spacy.blank("en")("The 2 Coins, a-b and x were NOT on Märkte!")) == [
        "coins",
        "märkte",
    ]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param(
            {"labels": [0, 0, 1, 1]}, ["0: coins, market", "1: garden, tree, trees"], id="numbers"
        ),
        pytest.param(
            {"labels": numpy.array([0, 0, 1, 1])},
            ["0: coins, market", "1: garden, tree, trees"],
            id="numbers of NumPy",
        ),
        pytest.param(
            {"labels": [0, 0, -1, -1]}, ["0: coins, market", "-1: no cluster"], id="no cluster"
        ),
        pytest.param(
            {"labels": ["0", "0", "-1", "-1"], "terms": True},
            ["0: coins, market", "-1: no cluster"],
            id="strings of a table",
        ),
        pytest.param(
            {"labels": ["up", "up", "-1", "-1"], "terms": True},
            ["up: coins, market", "-1: garden, tree, trees"],
            id="names",
        ),
    ],
)
def test_clusters_are_named_by_their_terms(options, names):
    data = data_of(visual.render(GARDEN, "map", options=options))
    assert data["names"] == names
    assert data["group"] == [0, 0, 1, 1]


def test_names_stand_where_points_keep_together():
    apart = [made("One.", [1, 0.01 * number]) for number in range(5)] + [
        made("Two.", [0.01, 1])
    ] * 5
    middles = data_of(visual.render(apart, "map", options={"labels": ["a"] * 5 + ["b"] * 5}))[
        "middles"
    ]
    assert [(name, group) for name, group, *_ in middles] == [("a", 0), ("b", 1)]
    mixed = [made("One.", [1, 0.1 * number]) for number in range(15)]
    assert (
        data_of(visual.render(mixed, "map", options={"labels": ["a", "b", "c"] * 5}))["middles"]
        == []
    )
