"""The order of a heat map: similar texts stand side by side, and the numbers stay those of the texts given."""

import itertools
import re

import numpy
import pytest
import spacy
from made_pages import data_of, made, read
from scipy.cluster import hierarchy

from spacy_sbert import visual
from spacy_sbert.similarity import unit_length
from spacy_sbert.visual.heatmap import _similarity_order

ANGLES = (0.0, 2.0, 0.1, 2.1, 0.2)  # two groups, in turn
DOCS = [made(f"Text {angle}.", [numpy.cos(angle), numpy.sin(angle)]) for angle in ANGLES]


def heads(page, scope):
    return [
        int(values["data-place"]) for tag, values in read(page).elements if tag == "th" and values["scope"] == scope
    ]


def numbers(page):
    cosines = [float(values["data-cosine"]) for tag, values in read(page).elements if "data-cosine" in values]
    return numpy.reshape(cosines, (len(heads(page, "row")), -1))


def test_groups_stand_together():
    page = visual.render(DOCS)
    assert heads(page, "row") == heads(page, "col") == [0, 2, 4, 1, 3]
    place = numpy.array([0, 2, 4, 1, 3])
    expected = numpy.cos(numpy.subtract.outer(ANGLES, ANGLES))[numpy.ix_(place, place)]
    numpy.testing.assert_allclose(numbers(page), expected, atol=5.1e-5)
    shown = re.findall(r'<th scope="row".*?<b>(\d+)</b>\s*<span dir="auto" title="(.*?)">', page)
    assert shown == [("1", "Text 0.0."), ("3", "Text 0.1."), ("5", "Text 0.2."), ("2", "Text 2.0."), ("4", "Text 2.1.")]
    labels = [values["aria-label"] for tag, values in read(page).elements if "data-cosine" in values]
    assert labels[1] == f"{numpy.cos(0.1):.4f}, texts 1 and 3"
    assert "Similar texts stand side by side" in page


def test_as_given_on_demand():
    page = visual.render(DOCS, options={"order": "given"})
    assert heads(page, "row") == heads(page, "col") == [0, 1, 2, 3, 4] and "side by side" not in page
    texts = ["".join(text["tokens"]) for text in data_of(visual.render(DOCS))["rows"]]
    assert texts == [doc.text for doc in DOCS]  # the script finds them by their place among those given


def test_sentences_of_one_doc_stay_in_order():
    nlp = spacy.blank("en")
    doc = nlp("Zero. Two. One.")
    for token in doc:
        token.is_sent_start = token.i % 2 == 0
    vectors = dict(zip(doc.sents, numpy.eye(2)[[0, 1, 0]], strict=True))
    doc.user_span_hooks["has_vector"] = lambda span: True
    doc.user_span_hooks["vector"] = lambda span: vectors[span]
    for given in (doc, doc[:]):
        assert heads(visual.render(given), "row") == [0, 1, 2]
        assert heads(visual.render(given, options={"order": "similarity"}), "row") == [0, 2, 1]
    assert heads(visual.render(list(doc.sents)), "row") == [0, 2, 1]


def allowed(tree, n):
    """Every order of the leaves of a dendrogram."""
    parts = [[[leaf]] for leaf in range(n)]
    for left, right in tree[:, :2].astype(int):
        pairs = list(itertools.product(parts[left], parts[right]))
        parts.append([one + other for one, other in pairs] + [other + one for one, other in pairs])
    return parts[-1]


@pytest.mark.parametrize("seed", range(2))
def test_order_is_among_the_best_of_the_dendrogram(seed):
    """SciPy's search for the best one misses it at times."""
    rows = unit_length(numpy.random.default_rng(seed).normal(size=(8, 3)))
    cosines = rows @ rows.T
    orders = allowed(hierarchy.linkage(1 - cosines[numpy.triu_indices(8, 1)], "average"), 8)

    def length(order):
        return (1 - cosines[order[:-1], order[1:]]).sum()

    order = _similarity_order(cosines)
    assert order in orders and order.index(0) < order.index(7)
    assert length(order) <= numpy.quantile([length(other) for other in orders], 0.1)


def test_few_and_equal_texts():
    assert _similarity_order(numpy.ones((1, 1))) == [0] and _similarity_order(numpy.eye(2)) == [0, 1]
    assert sorted(_similarity_order(numpy.ones((4, 4)) + 1e-15)) == [0, 1, 2, 3]
    assert sorted(_similarity_order(numpy.zeros((3, 3)))) == [0, 1, 2]  # of zero vectors
