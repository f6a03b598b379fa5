"""Tokens against tokens: its numbers are the cosines of the vectors of tokens, in their texts."""

import numpy
import pytest
import spacy
from made_pages import data_of, made, read
from spacy.tokens import Doc

from spacy_sbert import visual
from spacy_sbert.similarity import cosine
from spacy_sbert.visual.token_heatmap import MOST

TEXTS = ["A man is eating food.", "The cat sat."]


def cells(page):
    return [values for tag, values in read(page).elements if tag == "td" and "data-cosine" in values]


def cosines_of(first, second):
    pairs = [(a.vector, b.vector) for a in first for b in second]
    return cosine(*(numpy.array(side, dtype="float64") for side in zip(*pairs, strict=True)))


def with_vectors(words, vectors):
    """A Doc whose words have these vectors of the vocab."""
    vocab = spacy.blank("en").vocab
    vocab.reset_vectors(width=len(vectors[0]))
    for word, vector in zip(words, vectors, strict=True):
        vocab.set_vector(word, numpy.asarray(vector, dtype="float32"))
    return Doc(vocab, words=words)


def test_numbers_are_the_cosines(make_nlp):
    docs = list(make_nlp().pipe(TEXTS))
    page = visual.render(docs, "tokens")
    exact = [float(cell["data-cosine"]) for cell in cells(page)]
    numpy.testing.assert_allclose(exact, cosines_of(*docs), atol=5.1e-5)
    heads = [values for tag, values in read(page).elements if tag == "th"]
    assert [int(head["data-place"]) for head in heads] == [*range(len(docs[1])), *range(len(docs[0]))]
    assert cells(page)[1]["aria-label"] == f"{exact[1]:.4f}, tokens A and cat"
    assert f"that of the texts is {docs[0].similarity(docs[1]):.4f}" in page


def test_the_best_of_each_row_is_framed():
    first = with_vectors(["up", "aside"], [[0, 1], [1, 0]])
    second = with_vectors(["high", "down", "east"], [[0.1, 1], [0, -1], [2, 0]])
    page = visual.render([first, second], "tokens")
    assert [float(cell["data-cosine"]) for cell in cells(page)] == [0.995, -1.0, 0.0, 0.0995, 0.0, 1.0]
    assert ["best" in cell["class"].split() for cell in cells(page)] == [True, False, False, False, False, True]


def test_two_sentences_of_a_doc(make_nlp):
    doc = make_nlp(unit="sent")("A man is eating. The cat sat.")
    first, second = doc.sents
    page = visual.render(doc, "tokens")
    exact = [float(cell["data-cosine"]) for cell in cells(page)]
    numpy.testing.assert_allclose(exact, cosines_of(first, second), atol=5.1e-5)
    assert exact == [float(cell["data-cosine"]) for cell in cells(visual.render([first, second], "tokens"))]


def test_tokens_without_vectors_are_left_out(make_nlp):
    docs = list(make_nlp().pipe(["A \n man.", "The cat sat."]))
    page = visual.render(docs, "tokens")
    heads = [int(values["data-place"]) for tag, values in read(page).elements if tag == "th"]
    assert heads == [0, 1, 2, 3, 0, 2, 3] and "1 token without a vector is left out" in page
    (text,) = data_of(page)["rows"]
    assert [found is None for found in text["cosines"]] == [False, True, False, False]
    assert "left out" not in visual.render([docs[1], docs[1]], "tokens")


def many(count):
    words = [f"word{number}" for number in range(count)]
    return with_vectors(words, numpy.ones((count, 2)))


@pytest.mark.parametrize(
    ("docs", "options", "message"),
    [
        ([many(2)], {}, "Cannot draw the tokens of 1 texts: expected two Docs or Spans"),
        ([many(2)] * 5, {}, "Cannot draw the tokens of 3 or more texts.*--limit 2"),
        ([many(2), made("One.", [1, 0])], {}, r"Number 1 \(from 0\).*'One.', has no vectors of tokens"),
        ([many(2), many(MOST + 1)], {}, f"Number 1 .* has {MOST + 1} tokens: expected at most {MOST}. Give a Span"),
        ([many(2), with_vectors(["one"], [[1, 2, 3]])], {}, "unequal width: 2 and 3"),
        ([many(2), with_vectors(["one"], [[1, numpy.nan]])], {}, "not finite"),
        ([many(2), many(2)], {"low": 1.0, "high": 0.5}, "similarities from 1.0 to 0.5"),
        ([many(2), many(2)], {"order": "given"}, "The style 'tokens' has no option 'order'"),
    ],
)
def test_refused(docs, options, message):
    with pytest.raises(ValueError, match=message):
        visual.render(docs, "tokens", options=options)
