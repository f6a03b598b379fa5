"""Heat maps of texts and tokens: numbers are cosines, colours their scale, words the texts';
similar texts adjoin.
"""

import itertools
import re

import numpy
import pytest
import spacy
from helpers.made_pages import NLP, data_of, doc_of, made, read
from helpers.pipelines import through_docbin
from scipy.cluster import hierarchy
from spacy.tokens import Doc

from spacy_sbert import visual
from spacy_sbert.similarity import cosine, unit_length
from spacy_sbert.visual.colour_scale import ColourScale
from spacy_sbert.visual.heatmap import _MAX_TOKENS, _similarity_order
from spacy_sbert.visual.page import STEPS

TEXTS = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The cat sat on the mat.",
    "He cannot go.",
]


def cells(page):
    """The number of each cell, as it is written and to four decimals, row by row, and its
    attributes.
    """
    found = read(page)
    attributes = [
        values for tag, values in found.elements if tag == "td" and "data-cosine" in values
    ]
    return (
        [float(text) for text in found.cells],
        [float(values["data-cosine"]) for values in attributes],
        attributes,
    )


def cosines_of(rows, columns):
    pairs = [(u.vector, v.vector) for u in rows for v in columns]
    return cosine(*(numpy.array(side, dtype="float64") for side in zip(*pairs, strict=True)))


def heads(page, scope):
    return [
        int(values["data-place"])
        for tag, values in read(page).elements
        if tag == "th" and values["scope"] == scope
    ]


def on_a_circle(*angles):
    return [made(f"Text {angle}.", [numpy.cos(angle), numpy.sin(angle)]) for angle in angles]


@pytest.fixture(scope="module")
def docs(make_nlp):
    return list(make_nlp().pipe(TEXTS))


def test_numbers_are_the_cosines(docs):
    written, exact, attributes = cells(visual.render(docs, options={"order": "given"}))
    cosines = cosines_of(docs, docs)
    numpy.testing.assert_allclose(exact, cosines, atol=5.1e-5)
    numpy.testing.assert_allclose(written, cosines, atol=5.1e-3)
    assert exact[1] == round(docs[0].similarity(docs[1]), 4)
    others = cosines[~numpy.eye(4, dtype=bool).ravel()]
    low = numpy.floor(100 * others.min()) / 100
    high = numpy.ceil(100 * others.max()) / 100
    assert [one["class"] for one in attributes] == [
        f"v{ColourScale(low, high).step(value) + STEPS}" for value in cosines
    ]
    assert [one["tabindex"] for one in attributes] == ["0"] + ["-1"] * 15
    assert attributes[1]["aria-label"] == f"{exact[1]:.4f}, texts 1 and 2"
    packed = through_docbin(docs, spacy.blank("xx").vocab)
    assert not packed[0].user_hooks
    assert cells(visual.render(packed)) == cells(visual.render(docs))
    assert data_of(visual.render(packed)) == data_of(visual.render(docs))


def test_two_collections():
    rows = [made("One.", [1, 0]), made("Two.", [0, 2])]
    columns = [made("Three.", [3, 0]), made("Four.", [-1, 0]), made("Five.", [1, 1])]
    page = visual.render(rows, options={"columns": columns})
    assert cells(page)[0] == [1.0, -1.0, 0.71, 0.0, 0.0, 0.71]
    assert "Cosine similarity of 2 and 3 texts" in page
    assert [values["scope"] for tag, values in read(page).elements if tag == "th"] == [
        "col"
    ] * 3 + ["row"] * 2
    assert cells(visual.render(rows[:1], options={"columns": columns}))[0] == [1.0, -1.0, 0.71]
    assert cells(visual.render([made("Zero.", [0, 0]), rows[0]]))[0] == [0.0, 0.0, 0.0, 1.0]


def test_sentences_of_a_doc(make_nlp):
    doc = make_nlp(unit="sent")("A man is eating. \n\n The cat sat.\n\n")
    sents = [sent for sent in doc.sents if sent.text.strip()]
    assert len(sents) == 2
    for given in (doc, doc[:], sents):
        similarity = round(sents[0].similarity(sents[1]), 4)
        assert cells(visual.render(given))[1] == [1.0, similarity, similarity, 1.0]
        words = ([token for token in sent if not token.is_space] for sent in sents)
        numpy.testing.assert_allclose(
            cells(visual.render(given, "tokens"))[1], cosines_of(*words), atol=5.1e-5
        )


def test_tokens_are_compared_with_the_other_text(docs):
    data = data_of(visual.render(docs[:2]))
    assert data["columns"] is None
    assert len(data["rows"]) == 2
    for doc, text in zip(docs, data["rows"], strict=False):
        assert "".join(text["tokens"]) == doc.text
        assert len(text["tokens"]) == len(doc)
        numpy.testing.assert_allclose(
            numpy.ravel(text["cosines"]), 100 * cosines_of(doc, docs[:2]), atol=0.501
        )
    found = [cosine for text in data["rows"] for cosine in numpy.ravel(text["cosines"])]
    low = min(found) / 100
    high = max(found) / 100
    assert data["range"] == f"{low:g} to {high:g}"
    scale = ColourScale(low, high)
    assert data["steps"] == [scale.step(value / 100) + STEPS for value in range(-100, 101)]
    given = data_of(visual.render(docs[:2], options={"low": -1.0, "high": 1.0}))["steps"]
    assert (given[0], given[100], given[200]) == (0, STEPS, 2 * STEPS)


def test_tokens_without_vectors(make_nlp, docs):
    without = make_nlp(token_vectors=False)
    nlp = make_nlp()
    for texts, options in (
        (list(without.pipe(TEXTS[:2])), {}),
        (docs, {"tokens": False}),
        ([made("One word.", [1, 0]), made("Two.", [0, 1])], {}),
    ):
        rows = data_of(visual.render(texts, options=options))["rows"]
        assert [row["cosines"] for row in rows] == [None] * len(texts)
        assert ["".join(row["tokens"]) for row in rows] == [doc.text for doc in texts]
    (blank, _) = data_of(visual.render([nlp("a \n man"), docs[0]]))["rows"]
    assert [found is None for found in blank["cosines"]] == [False, True, False]
    page = visual.render([nlp("A \n man."), nlp("The cat sat.")], "tokens")
    assert (heads(page, "col"), heads(page, "row")) == ([0, 1, 2, 3], [0, 2, 3])
    assert "1 token without a vector is left out" in page
    (text,) = data_of(page)["rows"]
    assert [found is None for found in text["cosines"]] == [False, True, False, False]
    assert "left out" not in visual.render([docs[1], docs[1]], "tokens")


def test_range_of_colours():
    """The similarity of a text to itself is 1 and does not count."""
    page = visual.render(on_a_circle(0.0, 0.2, 0.5), options={"order": "given"})
    numbers, _, attributes = cells(page)
    assert numbers[:3] == [1.0, 0.98, 0.88]
    # Cos 0.5 and cos 0.2 in whole hundredths
    low = 0.87
    high = 0.99
    assert 'aria-label="Colours from 0.87 to 0.99"' in page
    assert "<span>0.93</span>" in page
    assert "the further from 0.87." in page
    itself, near, far = (one["class"] for one in attributes[:3])
    assert itself == "v40"
    assert near == f"v{STEPS + round(STEPS * (numpy.cos(0.2) - low) / (high - low))}"
    assert far == f"v{STEPS + round(STEPS * (numpy.cos(0.5) - low) / (high - low))}"
    assert far == "v21"
    assert "striped" not in page.partition("</p>")[0].partition("</style>")[2]


def test_a_range_that_is_given():
    """The numbers are the cosines whatever the range."""
    page = visual.render(on_a_circle(0.0, 0.7, 1.5), options={"low": 0.6, "high": 1.0})
    assert cells(page)[0][:3] == [1.0, 0.76, 0.07]
    assert 'aria-label="Colours from 0.6 to 1"' in page
    assert "<span>0.8</span>" in page


@pytest.mark.parametrize(
    "angles",
    [
        pytest.param((0.0, 0.8), id="two texts"),
        pytest.param((0.5, 0.5, 0.5), id="equal texts"),
        pytest.param((0.0, 0.001, 0.002), id="nearly equal texts"),
    ],
)
def test_the_range_of_few_numbers_is_that_of_the_cosine(angles):
    assert 'aria-label="Colours from -1 to 1"' in visual.render(on_a_circle(*angles))


@pytest.mark.parametrize(
    ("low", "high", "values", "steps"),
    [
        (-1, 1, [-1, -0.5, 0, 0.24, 1], [-20, -10, 0, 5, 20]),
        (-0.2, 0.8, [-0.2, 0, 0.4, 0.8, 1], [-5, 0, 10, 20, 20]),
        (0.6, 1, [-1, 0.6, 0.8, 1], [0, 0, 10, 20]),
    ],
)
def test_steps_of_colours(low, high, values, steps):
    assert [ColourScale(low, high).step(value) for value in values] == steps


def test_groups_stand_together():
    angles = (0.0, 2.0, 0.1, 2.1, 0.2)
    place = [0, 2, 4, 1, 3]
    docs = on_a_circle(*angles)
    page = visual.render(docs)
    assert heads(page, "row") == heads(page, "col") == place
    assert "Similar texts stand side by side" in page
    expected = numpy.cos(numpy.subtract.outer(angles, angles))[numpy.ix_(place, place)]
    numpy.testing.assert_allclose(cells(page)[1], expected.ravel(), atol=5.1e-5)
    shown = re.findall(r'<th scope="row".*?<b>(\d+)</b>\s*<span dir="auto" title="(.*?)">', page)
    assert shown == [
        ("1", "Text 0.0."),
        ("3", "Text 0.1."),
        ("5", "Text 0.2."),
        ("2", "Text 2.0."),
        ("4", "Text 2.1."),
    ]
    assert cells(page)[2][1]["aria-label"] == f"{numpy.cos(0.1):.4f}, texts 1 and 3"
    texts = ["".join(text["tokens"]) for text in data_of(page)["rows"]]
    # The script finds them by their place among those given
    assert texts == [doc.text for doc in docs]
    page = visual.render(docs, options={"order": "given"})
    assert heads(page, "row") == heads(page, "col") == [0, 1, 2, 3, 4]
    assert "side by side" not in page


def test_sentences_of_one_doc_stay_in_order():
    doc = spacy.blank("xx")("Zero. Two. One.")
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


def test_order_is_among_the_best_of_the_dendrogram():
    """SciPy's search for the best one misses it at times."""
    rows = unit_length(numpy.random.default_rng(0).normal(size=(8, 3)))
    cosines = rows @ rows.T
    orders = allowed(hierarchy.linkage(1 - cosines[numpy.triu_indices(8, 1)], "average"), 8)

    def length(order):
        return (1 - cosines[order[:-1], order[1:]]).sum()

    order = _similarity_order(cosines)
    assert order in orders
    assert order.index(0) < order.index(7)
    assert length(order) <= numpy.quantile([length(other) for other in orders], 0.1)
    assert _similarity_order(numpy.ones((1, 1))) == [0]
    assert _similarity_order(numpy.eye(2)) == [
        0,
        1,
    ]
    for equal in (numpy.ones((4, 4)) + 1e-15, numpy.zeros((4, 4))):
        assert sorted(_similarity_order(equal)) == [0, 1, 2, 3]


def with_vectors(words, vectors):
    """A Doc whose words have these vectors of the vocab."""
    vocab = spacy.blank("xx").vocab
    vocab.reset_vectors(width=len(vectors[0]))
    for word, vector in zip(words, vectors, strict=True):
        vocab.set_vector(word, numpy.asarray(vector, dtype="float32"))
    return Doc(vocab, words=words)


def test_tokens_of_two_texts(docs):
    page = visual.render(docs[:2], "tokens")
    _, exact, attributes = cells(page)
    numpy.testing.assert_allclose(exact, cosines_of(*docs[:2]), atol=5.1e-5)
    assert (heads(page, "col"), heads(page, "row")) == (
        [*range(len(docs[1]))],
        [*range(len(docs[0]))],
    )
    assert attributes[1]["aria-label"] == f"{exact[1]:.4f}, tokens A and is"
    assert f"that of the texts is {docs[0].similarity(docs[1]):.4f}" in page
    first = with_vectors(["up", "aside"], [[0, 1], [1, 0]])
    second = with_vectors(["high", "down", "east"], [[0.1, 1], [0, -1], [2, 0]])
    _, exact, attributes = cells(visual.render([first, second], "tokens"))
    assert exact == [0.995, -1.0, 0.0, 0.0995, 0.0, 1.0]
    assert ["best" in one["class"].split() for one in attributes] == [
        True,
        False,
        False,
        False,
        False,
        True,
    ]


def many(count):
    return [made(f"Text {number}.", numpy.eye(2)[number % 2]) for number in range(count)]


def words(count):
    return with_vectors([f"word{number}" for number in range(count)], numpy.ones((count, 2)))


@pytest.mark.parametrize(
    ("style", "docs", "options", "message"),
    [
        (
            "heatmap",
            many(1),
            {},
            "1 texts: expected at least 2. Give more; for the sentences of one Doc give the Doc",
        ),
        ("heatmap", many(2), {"columns": []}, "Cannot draw 0 texts: expected at least 1"),
        ("heatmap", many(65), {}, "Cannot draw 65 texts: expected at most 64"),
        (
            "heatmap",
            [made("a " * 4000, [1.0, 0.0])] * 20,
            {},
            'have 1600000 similarities.*"tokens": False',
        ),
        (
            "heatmap",
            [doc_of(["One"]), doc_of(["Two"])],
            {},
            r"Number 0 \(from 0\) .*, 'One ', has no vector",
        ),
        ("heatmap", [made("One.", [1, 0]), made("Two.", [1, 0, 0])], {}, "unequal width: 2 and 3"),
        (
            "heatmap",
            [made("One.", [1, 0]), made("Two.", [numpy.nan, 0])],
            {},
            "Row 1 of the vectors is not finite",
        ),
        (
            "heatmap",
            NLP("One. Two."),
            {},
            "sentences of 'One. Two.': the Doc has no sentence boundaries",
        ),
        ("heatmap", many(2), {"low": 0.5, "high": 0.5}, "similarities from 0.5 to 0.5"),
        (
            "heatmap",
            many(2),
            {"labels": ["a", "b"]},
            "'heatmap' has no option 'labels': expected some of columns, tok",
        ),
        ("tokens", [words(2)], {}, "Cannot draw the tokens of 1 texts: expected two Docs or Spans"),
        ("tokens", [words(2)] * 5, {}, "Cannot draw the tokens of 3 or more texts.*--limit 2"),
        (
            "tokens",
            [words(2), made("One.", [1, 0])],
            {},
            r"Number 1 \(from 0\).*'One.', has no vectors of tokens",
        ),
        (
            "tokens",
            [words(2), words(_MAX_TOKENS + 1)],
            {},
            f"1 .* has {_MAX_TOKENS + 1} tokens: expected at most",
        ),
        ("tokens", [words(2), with_vectors(["one"], [[1, 2, 3]])], {}, "unequal width: 2 and 3"),
        ("tokens", [words(2), with_vectors(["one"], [[1, numpy.nan]])], {}, "not finite"),
        (
            "tokens",
            [words(2), words(2)],
            {"low": -1.0, "high": 0.0},
            "similarities from -1.0 to 0.0",
        ),
    ],
)
def test_refused(style, docs, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        visual.render(docs, style, options=options)
