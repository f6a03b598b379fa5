"""The heat map: its numbers are the cosines, its colours their scale, its words the texts'."""

import numpy
import pytest
import spacy
from made_pages import NLP, data_of, doc_of, made, read
from spacy.tokens import DocBin

from spacy_sbert import visual
from spacy_sbert.similarity import cosine
from spacy_sbert.visual.page import STEPS, step

TEXTS = ["A man is eating food.", "Someone is having a meal.", "The cat sat on the mat.", "He cannot go."]


def cells(page):
    """The number of each cell, as it is written and to four decimals, row by row."""
    found = read(page)
    attributes = [values for tag, values in found.elements if tag == "td" and "data-cosine" in values]
    return [float(text) for text in found.cells], [float(values["data-cosine"]) for values in attributes], attributes


def expected_cosines(rows, columns):
    pairs = [(u, v) for u in rows for v in columns]
    return cosine(*(numpy.array(side, dtype="float64") for side in zip(*pairs, strict=True)))


def test_numbers_are_the_cosines(make_nlp):
    docs = list(make_nlp().pipe(TEXTS))
    written, exact, attributes = cells(visual.render(docs, options={"order": "given"}))
    cosines = expected_cosines([doc.vector for doc in docs], [doc.vector for doc in docs])
    numpy.testing.assert_allclose(exact, cosines, atol=5.1e-5)
    numpy.testing.assert_allclose(written, cosines, atol=5.1e-3)
    assert exact[1] == round(docs[0].similarity(docs[1]), 4)
    others = cosines[~numpy.eye(4, dtype=bool).ravel()]
    low, high = numpy.floor(100 * others.min()) / 100, numpy.ceil(100 * others.max()) / 100
    assert [one["class"] for one in attributes] == [f"v{step(value, low, high) + STEPS}" for value in cosines]
    assert [one["tabindex"] for one in attributes] == ["0"] + ["-1"] * 15
    assert attributes[1]["aria-label"] == f"{exact[1]:.4f}, texts 1 and 2"


def test_two_collections():
    rows = [made("One.", [1, 0]), made("Two.", [0, 2])]
    columns = [made("Three.", [3, 0]), made("Four.", [-1, 0]), made("Five.", [1, 1])]
    page = visual.render(rows, options={"columns": columns})
    assert cells(page)[0] == [1.0, -1.0, 0.71, 0.0, 0.0, 0.71]
    assert "Cosine similarity of 2 and 3 texts" in page
    heads = [values for tag, values in read(page).elements if tag == "th"]
    assert [values["scope"] for values in heads] == ["col"] * 3 + ["row"] * 2
    assert cells(visual.render(rows[:1], options={"columns": columns}))[0] == [1.0, -1.0, 0.71]


def test_sentences_of_a_doc(make_nlp):
    doc = make_nlp(unit="sent")("A man is eating. \n\n The cat sat.\n\n")
    sents = [sent for sent in doc.sents if sent.text.strip()]
    assert len(sents) == 2
    for given in (doc, doc[:], sents):
        similarity = round(sents[0].similarity(sents[1]), 4)
        assert cells(visual.render(given))[1] == [1.0, similarity, similarity, 1.0]


def test_tokens_are_compared_with_the_other_text(make_nlp):
    docs = list(make_nlp().pipe(TEXTS[:2]))
    data = data_of(visual.render(docs))
    assert data["columns"] is None and len(data["rows"]) == 2
    for doc, text in zip(docs, data["rows"], strict=True):
        assert "".join(text["tokens"]) == doc.text and len(text["tokens"]) == len(doc)
        expected = expected_cosines([token.vector for token in doc], [other.vector for other in docs])
        numpy.testing.assert_allclose(numpy.ravel(text["cosines"]), 100 * expected, atol=0.501)
    found = [cosine for text in data["rows"] for cosine in numpy.ravel(text["cosines"])]
    low, high = min(found) / 100, max(found) / 100
    assert data["range"] == f"{low:g} to {high:g}"
    assert data["steps"] == [step(value / 100, low, high) + STEPS for value in range(-100, 101)]
    given = data_of(visual.render(docs, options={"low": -1.0, "high": 1.0}))["steps"]
    assert (given[0], given[100], given[200]) == (0, STEPS, 2 * STEPS)


def test_tokens_without_vectors(make_nlp):
    without = make_nlp(token_vectors=False)
    for docs, options in (
        (list(without.pipe(TEXTS)), {}),
        (list(make_nlp().pipe(TEXTS)), {"tokens": False}),
        ([made("One word.", [1, 0]), made("Two.", [0, 1])], {}),
    ):
        rows = data_of(visual.render(docs, options=options))["rows"]
        assert [row["cosines"] for row in rows] == [None] * len(docs)
        assert ["".join(row["tokens"]) for row in rows] == [doc.text for doc in docs]
    (blank, _) = data_of(visual.render([make_nlp()("a \n man"), make_nlp()("food")]))["rows"]
    assert [found is None for found in blank["cosines"]] == [False, True, False]


def test_meta_vectors(make_nlp, tiny_bert):
    nlp = make_nlp(name=tiny_bert)
    nlp.add_pipe("sbert", name="other", config={"model": {"name": str(tiny_bert), "pooling": "max"}})
    nlp.add_pipe("sbert_meta")
    docs = list(nlp.pipe(TEXTS[:2]))
    page = visual.render(docs)
    assert cells(page)[1][1] == round(docs[0].similarity(docs[1]), 4)
    assert [row["cosines"] for row in data_of(page)["rows"]] == [None, None]


def test_stored_vectors_without_hooks(make_nlp):
    docs = list(make_nlp().pipe(TEXTS))
    packed = list(DocBin(docs=docs, store_user_data=True).get_docs(spacy.blank("en").vocab))
    assert not packed[0].user_hooks
    assert cells(visual.render(packed)) == cells(visual.render(docs))
    assert data_of(visual.render(packed)) == data_of(visual.render(docs))


def test_colours_of_a_narrow_range():
    docs = [made(f"Text {angle}.", [numpy.cos(angle), numpy.sin(angle)]) for angle in (0.0, 0.7, 1.5)]
    page = visual.render(docs, options={"low": 0.6, "high": 1.0})
    assert cells(page)[0][:3] == [1.0, 0.76, 0.07]  # the numbers are still the cosines
    classes = [values["class"] for values in cells(page)[2][:3]]
    assert classes == [f"v{2 * STEPS}", f"v{STEPS + round(STEPS * (numpy.cos(0.7) - 0.6) / 0.4)}", f"v{STEPS}"]
    assert 'aria-label="Colours from 0.6 to 1"' in page and "<span>0.8</span>" in page


def on_a_circle(*angles):
    return [made(f"Text {angle}.", [numpy.cos(angle), numpy.sin(angle)]) for angle in angles]


def test_range_of_colours():
    """Those of a text to itself are 1 and do not count."""
    page = visual.render(on_a_circle(0.0, 0.2, 0.5), options={"order": "given"})
    (same, near, far), classes = cells(page)[0][:3], [one["class"] for one in cells(page)[2]]
    assert (same, near, far) == (1.0, 0.98, 0.88)
    low, high = 0.87, 0.99  # cos 0.5 and cos 0.2 in whole hundredths
    assert 'aria-label="Colours from 0.87 to 0.99"' in page and "<span>0.93</span>" in page
    assert classes[1] == f"v{STEPS + round(STEPS * (numpy.cos(0.2) - low) / (high - low))}" and classes[0] == "v40"
    assert classes[2] == f"v{STEPS + round(STEPS * (numpy.cos(0.5) - low) / (high - low))}" == "v21"
    assert "the further from 0.87." in page and "striped" not in page.partition("</p>")[0].partition("</style>")[2]


@pytest.mark.parametrize("angles", [(0.0, 0.8), (0.5, 0.5, 0.5), (0.0, 0.001, 0.002)])
def test_range_of_colours_of_similar_texts(angles):
    assert 'aria-label="Colours from -1 to 1"' in visual.render(on_a_circle(*angles))


def test_a_zero_vector_is_similar_to_nothing():
    assert cells(visual.render([made("Zero.", [0, 0]), made("One.", [1, 0])]))[0] == [0.0, 0.0, 0.0, 1.0]


def many(count):
    return [made(f"Text {number}.", numpy.eye(2)[number % 2]) for number in range(count)]


@pytest.mark.parametrize(
    ("docs", "options", "message"),
    [
        (many(1), {}, "Cannot draw 1 texts: expected at least 2. Give more; for the sentences of one Doc give the Doc"),
        (many(2), {"columns": []}, "Cannot draw 0 texts: expected at least 1"),
        (many(65), {}, "with 65 texts on a side: expected at most 64"),
        ([made("a " * 4000, [1.0, 0.0])] * 20, {}, 'have 1600000 similarities.*"tokens": False'),
        ([doc_of(["One"]), doc_of(["Two"])], {}, r"Number 0 \(from 0\) of the texts to draw, 'One ', has no vector"),
        ([made("One.", [1, 0]), made("Two.", [1, 0, 0])], {}, "unequal width: 2 and 3"),
        ([made("One.", [1, 0]), made("Two.", [numpy.nan, 0])], {}, "Row 1 of the vectors is not finite"),
        (NLP("One. Two."), {}, "Cannot draw the sentences of 'One. Two.': the Doc has no sentence boundaries"),
        (many(2), {"low": 0.5, "high": 0.5}, "similarities from 0.5 to 0.5"),
        (many(2), {"order": "size"}, "Cannot use order = 'size': expected 'similarity' or 'given'"),
        (many(2), {"high": float("nan")}, "Cannot use high = nan: expected a finite number"),
        (many(2), {"low": -1.0, "high": 0.0}, "similarities from -1.0 to 0.0"),
        (many(2), {"labels": ["a", "b"]}, "The style 'heatmap' has no option 'labels': expected some of columns, tok"),
    ],
)
def test_refused(docs, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        visual.render(docs, options=options)
