"""The map: where its points stand, how they look, and what it says."""

import re

import numpy
import pytest
from made_pages import NLP, data_of, made, read

from spacy_sbert import visual
from spacy_sbert.visual import projection, scatter
from spacy_sbert.visual.marks import MOST_LABELS, kind, outline
from spacy_sbert.visual.projection import pca

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
    numpy.testing.assert_allclose(places - places.mean(axis=0), expected - expected.mean(axis=0), atol=0.2)
    assert f"principal component 1, {100 * shares[0]:.1f} % of the variance" in page
    assert f"principal component 2, {100 * shares[1]:.1f} % of the variance" in page
    assert f"The two axes hold {100 * shares.sum():.1f} % of the variance" in page
    drawn = re.findall(r"M(\S+) ([\d.]+)m", re.search(r'class="points c0" d="(.*?)"', page)[1])
    numpy.testing.assert_allclose(numpy.array(drawn, dtype="float64"), places)


def test_a_generator_is_read_once():
    assert data_of(visual.render(iter(DOCS), "map"))["places"] == data_of(visual.render(DOCS, "map"))["places"]


def test_labels_have_a_colour_a_shape_and_a_button():
    labels = [("b", "a", 3)[number % 3] for number in range(12)]
    page = visual.render(DOCS, "map", options={"labels": labels})
    data = data_of(page)
    assert data["names"] == ["b", "a", "3"] and data["group"] == [0, 1, 2] * 4
    paths = re.findall(r'class="points (c\d)" d="(.*?)"', page)
    assert [name for name, _ in paths] == ["c0", "c1", "c2"]
    for group, (_, path) in enumerate(paths):
        assert path.count("M") == 4 == path.count(outline(group, 5))
    buttons = [values for tag, values in read(page).elements if tag == "button"]
    assert buttons == [{"type": "button", "aria-pressed": "false"}] * 3
    assert re.findall(r"<span dir=\"auto\" title=\"\w\">(\w)</span> <small>(\d)</small>", page) == [
        ("b", "4"),
        ("a", "4"),
        ("3", "4"),
    ]


def test_no_two_labels_look_alike():
    assert len({(kind(place), outline(place, 5)) for place in range(MOST_LABELS)}) == MOST_LABELS == 40


@pytest.mark.parametrize("kinds", [40, 48])
def test_of_many_labels_the_largest_are_told_apart(kinds):
    """Three texts of the last label, two of the one before, one of each other: the first of these have places left."""
    labels = [*range(kinds), kinds - 1, kinds - 1, kinds - 2]
    docs = [made(f"Text {number}.", vector) for number, vector in enumerate(RNG.normal(size=(len(labels), 5)))]
    data = data_of(visual.render(docs, "map", options={"labels": labels, "terms": False}))
    if kinds == 40:
        assert data["names"] == [str(label) for label in range(40)] and data["group"] == labels
        return
    assert data["names"] == [*map(str, [*range(37), 46, 47]), "other: 9 more labels"]
    assert data["group"] == [*range(37), *[39] * 9, 37, 38, 38, 38, 37]
    page = visual.render(docs, "map", options={"labels": list(map(str, labels)), "terms": True})
    assert len(data_of(page)["names"]) == 40 and data_of(page)["names"][-1] == "other: 9 more labels"


def test_ten_labels_differ_without_their_colours():
    assert len({outline(place, 5) for place in range(10)}) == 10
    labels = [*range(10), 0, 1]
    page = visual.render(DOCS, "map", options={"labels": labels})
    marks = re.findall(r'<svg viewBox="-8 -8 16 16" aria-hidden="true"><path class="c\d" d="(.*?)"', page)
    assert len(set(marks)) == len(marks) == 10
    data = data_of(page)
    shapes = [re.findall(r"[a-z][^a-z]*", small) for small, _ in data["outlines"]]
    assert len(set(map(str, shapes))) == 10  # those that the script draws after a zoom
    for group, (small, large) in enumerate(data["outlines"]):
        assert small == outline(group, 5) and large == outline(group, 9)


def test_long_texts_are_shortened_and_it_is_said():
    docs = [made("word " * 200, [1, 0]), made("Short\ntext.", [0, 1])]
    long, short = data_of(visual.render(docs, "map"))["texts"]
    assert long == ("word " * 100).ljust(500)[:500] + "… (999 characters)"
    assert short == "Short text."


def test_tsne_is_the_same_for_the_same_seed():
    pytest.importorskip("sklearn")
    pages = [visual.render(DOCS, "map", options={"projection": "tsne", "seed": seed}) for seed in (3, 3)]
    places = [data_of(page)["places"] for page in pages]
    assert places[0] == places[1] != data_of(visual.render(DOCS, "map"))["places"]
    assert "t-SNE, seed 3" in pages[0] and "principal component" not in pages[0]


def test_tsne_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.manifold", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-sbert\[visual\]"):
        visual.render(DOCS, "map", options={"projection": "tsne"})


@pytest.mark.parametrize(
    ("docs", "options", "message"),
    [
        (DOCS[:1], {}, "Cannot draw 1 texts: expected at least 2"),
        ([], {}, "Cannot draw 0 texts"),
        ([DOCS[0]] * 20_001, {}, "Cannot draw a map of more than 20000 texts"),
        (DOCS, {"labels": ["a"]}, "Given 1 labels, expected one for each of the 12 texts"),
        (DOCS, {"projection": "umap"}, "Unknown projection 'umap': expected one of pca, tsne"),
        (DOCS, {"colour": "red"}, "The style 'map' has no option 'colour': expected some of labels, projection"),
        ([made("One.", [1, 0]), made("Twice.", [2, 0])], {}, "All 2 vectors have the same direction"),
        ([made("One.", [1, 0]), made("Two.", [0, 1, 0])], {}, "unequal width: 2 and 3"),
        ([made("One.", [1, 0]), made("Two.", [0, numpy.nan])], {}, "Row 1 of the vectors is not finite"),
        ([NLP("One."), NLP("Two.")], {}, "Number 0 .*has no vector"),
    ],
)
def test_refused(docs, options, message):
    with pytest.raises(ValueError, match=message):
        visual.render(docs, "map", options=options)


def test_outlines_do_not_cover_the_points_of_a_dense_map(monkeypatch):
    assert 'class="points c0"' in visual.render(DOCS, "map")
    monkeypatch.setattr(scatter, "DENSE", len(DOCS) - 1)
    page = visual.render(DOCS, "map")
    assert 'class="points dense c0"' in page and ".points.dense { stroke: none; }" in page


@pytest.fixture
def of_many(monkeypatch):
    """Those of a dozen texts are enough here."""
    monkeypatch.setattr(scatter, "LEAST_TSNE", len(DOCS))


def test_tsne_is_the_default(of_many):
    pytest.importorskip("sklearn")
    page = visual.render(DOCS, "map")
    assert data_of(page)["places"] == data_of(visual.render(DOCS, "map", options={"projection": "tsne"}))["places"]
    assert "Projection: t-SNE, seed 0." in page and "principal component" not in page
    few = visual.render(DOCS[1:], "map")
    assert "Projection: principal components (PCA)." in few and "t-SNE" not in few


def test_pca_is_the_default_without_scikit_learn(of_many, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.manifold", None)
    page = visual.render(DOCS, "map")
    assert data_of(page)["places"] == data_of(visual.render(DOCS, "map", options={"projection": "pca"}))["places"]
    assert "Projection: principal components (PCA)." in page


def test_a_map_without_axes_has_their_room(of_many):
    pytest.importorskip("sklearn")
    left, _, _, bottom = data_of(visual.render(DOCS, "map"))["frame"]
    axes = data_of(visual.render(DOCS, "map", options={"projection": "pca"}))["frame"]
    assert left < axes[0] and bottom > axes[3]


def test_a_sample_is_told(of_many, monkeypatch):
    pytest.importorskip("sklearn")
    assert "at random" not in visual.render(DOCS, "map")
    for module in (scatter, projection):
        monkeypatch.setattr(module, "MOST_TSNE", 10)
    assert "t-SNE placed 10 of the texts, chosen at random" in visual.render(DOCS, "map")


def test_points_are_the_more_translucent_the_more_there_are():
    found = [scatter.opacity(count) for count in (2, 300, 1000, 5000, 20_000)]
    assert found[0] == found[1] == 0.85 and found == sorted(found, reverse=True) and found[3] < 0.5 and found[-1] >= 0.3
    page = visual.render(DOCS, "map")
    assert 'style="--opacity: 0.85"' in page and data_of(page)["opacity"] == 0.85


def test_translucent_points_of_a_label_add_up(monkeypatch):
    """A path paints each place once: neighbours in the order of texts are in different paths."""
    monkeypatch.setattr(scatter, "DENSE", len(DOCS) - 1)
    page = visual.render(DOCS, "map", options={"labels": ["a", "b"] * 6})
    paths = re.findall(r'class="points dense (c\d)" d="(.*?)"', page)
    assert [name for name, _ in paths] == ["c0", "c1"] * scatter.LAYERS
    found = {
        name: [one for kind, path in paths if kind == name for one in re.findall(r"M(\S+ [\d.]+)m", path)]
        for name in ("c0", "c1")
    }
    places = [f"{x:g} {y:g}" for x, y in data_of(page)["places"]]
    assert sorted(found["c0"]) == sorted(places[::2]) and sorted(found["c1"]) == sorted(places[1::2])
    assert max(path.count("M") for _, path in paths) < 6


def test_names_on_a_map_are_those_of_groups_that_keep_together():
    docs = [made(f"Text {n}.", [1, n / 100, 0] if n < 5 else [n / 100, 1, 0]) for n in range(10)]
    data = data_of(visual.render(docs, "map", options={"labels": ["a" * 40] * 5 + ["b"] * 5}))
    assert [(name, group) for name, group, _, _ in data["middles"]] == [("a" * 31 + "…", 0), ("b", 1)]
    assert data["names"] == ["a" * 40, "b"]
    assert data_of(visual.render(docs, "map"))["middles"] == []
