"""The names of clusters: terms by hand-computed weights, and what the map says."""

import math
import re

import numpy
import spacy
from made_pages import data_of, made

from spacy_sbert import visual
from spacy_sbert.visual.labels import class_terms, on_map, words_of

TEXTS = [
    "The coins are on the market.",
    "A market of coins.",
    "Trees in the garden.",
    "The garden has a tree, at market.",
]
DOCS = [made(text, vector) for text, vector in zip(TEXTS, [[1, 0], [1, 0.1], [0, 1], [0.1, 1]], strict=True)]


def test_weights_by_hand():
    words = [["a", "a", "b"], ["b", "c", "c", "d"], ["d"]]
    # groups 0 and 1 have 3 and 5 words, A = 4; tf: a 2, b 2, c 2, d 2; all have the idf log(1 + 4 / 2)
    assert class_terms(words, [0, 1, 1], 2) == [["a", "b"], ["c", "d", "b"]]
    assert class_terms(words, [0, 1, 1], 2, count=1) == [["a"], ["c"]]
    # a frequent term gives way to a rare one: 3 log(1 + 5 / 7) < 2 log(1 + 5 / 2)
    words = [["all"] * 3 + ["own"] * 2, ["all"] * 4 + ["other"]]
    assert 3 * math.log(1 + 5 / 7) < 2 * math.log(1 + 5 / 2)
    assert class_terms(words, [0, 1], 2)[0] == ["own", "all"]


def test_words_of_a_text():
    assert words_of(spacy.blank("en")("The 2 Coins, a-b and x were NOT on Märkte!")) == ["coins", "märkte"]


def test_clusters_are_named_by_their_terms():
    for labels in ([0, 0, 1, 1], numpy.array([0, 0, 1, 1])):
        data = data_of(visual.render(DOCS, "map", options={"labels": labels}))
        assert data["names"] == ["0: coins, market", "1: garden, tree, trees"] and data["group"] == [0, 0, 1, 1]
    page = visual.render(DOCS, "map", options={"labels": [0, 0, -1, -1]})
    assert data_of(page)["names"] == ["0: coins, market", "-1: no cluster"]
    page = visual.render(DOCS, "map", options={"labels": ["0", "0", "-1", "-1"], "terms": True})  # from a table
    assert data_of(page)["names"] == ["0: coins, market", "-1: no cluster"]
    page = visual.render(DOCS, "map", options={"labels": ["up", "up", "-1", "-1"], "terms": True})
    assert data_of(page)["names"] == ["up: coins, market", "-1: garden, tree, trees"]


def test_terms_are_never_markup():
    evil = made("Coins <b>x</b> &amp; coins", [1, 0])
    page = visual.render([evil, *DOCS[2:]], "map", options={"labels": [0, 1, 1]})
    assert "<b>" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_places_of_names():
    field = (0.0, 0.0, 700.0, 500.0)
    near, far = [(100.0 + x, 100.0) for x in range(5)], [(600.0 + x, 400.0) for x in range(5)]
    drawn = on_map(["a", "b"], [0] * 5 + [1] * 5, near + far, field)
    assert re.findall(r'<text x="(\d+)".*?>(.)</text>', drawn) == [("102", "a"), ("602", "b")]
    (height,) = re.findall(r'y="([\d.]+)"[^>]*>a<', drawn)
    assert abs(float(height) - 100) > 8  # beside its points rather than on them
    mixed = [(100.0 + 9 * x, 100.0) for x in range(15)]
    assert on_map(["a", "b", "c"], [0, 1, 2] * 5, mixed, field) == ""
    assert on_map([], [0] * 10, near + far, field) == ""
    corner = [(699.0, 499.0 - y) for y in range(3)]
    x, y = map(float, re.findall(r'x="([\d.]+)" y="([\d.]+)"', on_map(["a long name"], [0] * 3, corner, field))[0])
    assert x < 699 - 30 and y < 500
