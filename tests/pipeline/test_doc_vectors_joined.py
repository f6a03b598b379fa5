"""Docs that were cut (`Span.as_doc`) and joined (`Doc.from_docs`): a text that is there whole
answers, or an error.
"""

import re

import numpy
import pytest
from helpers.pipelines import OTHERS, slow
from spacy.tokens import Doc

from spacy_sbert import restore
from spacy_sbert.pipeline.doc_vectors import find

FIRST = "A man is eating food."
SECOND = "The cat sat on the mat."
THIRD = "He cannot go."
TEXT = f"{FIRST} {SECOND} {THIRD}"
pytestmark = pytest.mark.filterwarnings("ignore:.*trf_data", "ignore:.*W102", "ignore:.*W109")


@pytest.fixture(scope="module", params=["own", *slow("shared", *OTHERS)])
def nlp(make_nlp, request):
    """One row a Doc, and sentence borders for as_doc."""
    nlp = make_nlp(request.param)
    nlp.add_pipe("sentencizer", first=True)
    return nlp


def cut(doc, start, end):
    return doc[start:end].as_doc(copy_user_data=True)


def joined(*docs, **settings):
    return restore(Doc.from_docs(list(docs), **settings))


def assert_refused(*pieces):
    for piece in pieces:
        for name in ("vector", "has_vector"):
            with pytest.raises(ValueError, match=r"pipe 'sbert'.*nlp\(doc\.text\)"):
                getattr(piece, name)


def assert_same(span, expected):
    """A Span of a joined Doc, and all in it, answers as where it came from."""
    assert span.text.rstrip() == expected.text
    assert numpy.allclose(span.vector, expected.vector, atol=1e-6)
    for ours, theirs in zip(span, expected, strict=True):
        assert numpy.array_equal(ours.vector, theirs.vector)
    assert numpy.allclose(span[1:3].vector, expected[1:3].vector, atol=1e-6)


def test_whole_docs_answer(nlp):
    first = nlp(FIRST)
    second = nlp(THIRD)
    given = joined(first, second)
    assert_same(given[:6], first[:])
    assert_same(given[6:], second[:])
    assert numpy.allclose(given.vector, (first.vector + second.vector) / 2, atol=1e-6)
    assert given.similarity(first) == pytest.approx(given.similarity(first.copy()))
    # Of both
    assert_refused(given[4:8])
    whole = nlp(TEXT)
    assert_same(
        joined(*(sentence.as_doc(copy_user_data=True) for sentence in whole.sents))[:], whole[:]
    )


@pytest.mark.parametrize("unit", ["sent", "doc+sent"])
def test_rows_of_a_doc_that_was_cut(make_nlp, unit):
    """It is one text: the rows that it consists of, if they were rows, or else itself."""
    nlp = make_nlp(unit=unit)
    doc = nlp(TEXT)
    for sentence in doc.sents:
        part = sentence.as_doc(copy_user_data=True)
        assert numpy.array_equal(part.vector, sentence.vector)
        assert [tuple(row) for row in find(part).rows()[0].tolist()] == [(0, len(sentence.text))]
    part = cut(doc, 3, 9)
    assert numpy.array_equal(part.vector, doc[3:9].vector)
    assert [tuple(row) for row in find(part).rows()[0].tolist()] == [(0, len(part.text.rstrip()))]


def test_an_unprocessed_part_is_named_and_the_others_answer(nlp):
    first = nlp(FIRST)
    second = nlp(THIRD)
    # Its tensor stays: spaCy joins all with one, or none
    with nlp.select_pipes(disable=["sbert", "sentencizer"]):
        unprocessed = nlp("Someone ran home.")
    given = joined(first, unprocessed, second)
    assert_same(given[:6], first[:])
    assert_same(given[10:], second[:])
    for ask in (lambda: given.vector, lambda: given.similarity(first)):
        with pytest.raises(ValueError, match=r"joined from others, and 'Someone ran home\.'"):
            ask()
    assert_refused(given[5:8])


def test_joined_of_joined_and_cut_again(nlp):
    docs = [nlp(text) for text in (FIRST, SECOND, THIRD)]
    given = joined(joined(*docs[:2]), docs[2])
    assert_same(given[13:], docs[2][:])
    again = restore(cut(given, 6, 13))
    assert_same(again[:7], docs[1][:])
    inside = restore(cut(given, 8, 11))
    assert inside.text == docs[1][2:5].text_with_ws
    assert_same(inside[:], docs[1][2:5])
    # spaCy asks for the vector of the Span
    with pytest.raises(
        ValueError,
        match="joined from others",
    ):
        cut(given, 3, 9)


def test_nothing_between_the_parts(nlp):
    first = nlp("A man ")
    second = nlp("ran")
    given = joined(first, second, ensure_whitespace=False)
    assert given.text == "A man ran"
    assert numpy.allclose(given[:2].vector, first.vector)
    assert numpy.allclose(given[2:].vector, second.vector)
    given = joined(nlp(""), first, nlp(" "), nlp(""), second)
    assert numpy.allclose(given.vector, (first.vector + second.vector) / 2, atol=1e-6)


@pytest.mark.parametrize("pooling", ["max", "cls+mean"])
def test_docs_of_pipelines_that_differ(make_nlp, pooling):
    nlp = make_nlp()
    other = make_nlp(model={"pooling": pooling})
    both = joined(nlp(FIRST), Doc(nlp.vocab).from_bytes(other(SECOND).to_bytes()))
    assert numpy.array_equal(both[0:6].vector, nlp(FIRST).vector)
    with pytest.raises(
        ValueError,
        match=rf"several kinds \(pooling {re.escape(pooling)}, .*; pooling mean.* 16 numbers",
    ):
        _ = both.vector
    assert_refused(both[4:8])


def test_docs_of_pipes_of_other_names(make_nlp):
    nlp = make_nlp()
    first = nlp(FIRST)
    nlp.rename_pipe("sbert", "other")
    nlp.get_pipe("other").name = "other"
    given = joined(first, nlp(SECOND))
    with pytest.raises(ValueError, match=r"'A man is eating food\.' .* 'other'"):
        _ = given.vector
    assert numpy.array_equal(given[6:].vector, nlp(SECOND).vector)
