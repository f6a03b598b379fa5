"""Docs that were cut (`Span.as_doc`) and joined (`Doc.from_docs`): the vector of what is there, or an error."""

import numpy
import pytest
from pipelines import ENCODERS
from spacy.tokens import Doc, DocBin

from spacy_sbert import restore
from spacy_sbert.hooks.records import PREFIX

FIRST, SECOND, THIRD = "A man is eating food.", "The cat sat on the mat.", "He cannot go."
TEXT = f"{FIRST} {SECOND} {THIRD}"
pytestmark = pytest.mark.filterwarnings("ignore:.*trf_data", "ignore:.*W102", "ignore:.*W109")


@pytest.fixture(params=ENCODERS)
def nlp(make_nlp, request):
    """One row a Doc, and sentence borders for as_doc."""
    nlp = make_nlp(request.param)
    nlp.add_pipe("sentencizer", first=True)
    return nlp


def cut(doc, start, end):
    return doc[start:end].as_doc(copy_user_data=True)


def unprocessed(nlp, text):
    """A Doc without sentence vectors. It has its tensor: spaCy joins no Docs of which only some have one."""
    with nlp.select_pipes(disable=["sbert", "sentencizer"]):
        return nlp(text)


def joined(*docs, **settings):
    return restore(Doc.from_docs(list(docs), **settings))


def assert_same(span, expected):
    """A Span of a joined Doc, and all in it, answers as where it came from."""
    assert span.text == expected.text
    assert numpy.allclose(span.vector, expected.vector, atol=1e-6)
    for ours, theirs in zip(span, expected, strict=True):
        assert numpy.array_equal(ours.vector, theirs.vector)
    assert numpy.allclose(span[1:3].vector, expected[1:3].vector, atol=1e-6)


def test_a_part_cut_on_its_right_does_not_reach_into_the_next(nlp):
    doc, other = nlp(f"{FIRST} {SECOND}"), nlp(THIRD)
    sentence = next(doc.sents)
    given = joined(sentence.as_doc(copy_user_data=True), other)
    assert_same(given[:6], sentence)
    assert_same(given[6:], other[:])
    assert numpy.allclose(given.vector, (sentence.vector + other.vector) / 2, atol=1e-6)


def test_a_part_cut_on_its_left_does_not_reach_into_the_one_before(nlp):
    doc, other = nlp(f"{FIRST} {SECOND}"), nlp(THIRD)
    given = joined(other, cut(doc, 6, 13), other)
    assert_same(given[5:12], doc[6:13])
    for start in (0, 12):
        assert_same(given[start : start + 5], other[:])


def test_a_part_in_the_middle(nlp):
    doc, other = nlp(TEXT), nlp("The dog ran fast.")
    given = joined(other, cut(doc, 8, 11), other)
    assert_same(given[5:8], doc[8:11])


@pytest.mark.parametrize("kept", [(0, 6), (6, 13), (3, 9)])
def test_beside_an_unprocessed_doc_it_is_refused(nlp, kept):
    doc, stray = nlp(f"{FIRST} {SECOND}"), unprocessed(nlp, "Someone ran home.")
    part = cut(doc, *kept)
    for given in (joined(part, stray), joined(stray, part), joined(part, stray, nlp(THIRD), stray)):
        with pytest.raises(ValueError, match=r"joined of several.*nlp\(doc\.text\)"):
            _ = given.vector
        at = [token.text for token in given].index("home")
        for ask in (lambda given=given, at=at: given[at].vector, lambda given=given, at=at: given[at].has_vector):
            with pytest.raises(ValueError, match="Someone ran home"):
                ask()


def test_an_unprocessed_part_is_named_and_the_others_answer(nlp):
    first, second = nlp(FIRST), nlp(THIRD)
    given = joined(first, unprocessed(nlp, "Someone ran home."), second)
    assert_same(given[:6], first[:])
    assert_same(given[10:], second[:])
    for ask in (lambda: given.vector, lambda: given[5:8].vector, lambda: given.similarity(first)):
        with pytest.raises(ValueError, match=r"'Someone ran home\.' carries no sentence vectors of the pipe 'sbert'"):
            ask()


def test_one_that_happens_to_be_as_long_as_what_was_cut_off(nlp):
    doc = nlp("He ran. A cat sat.")
    stray = unprocessed(nlp, "He sat. ")
    given = joined(stray, cut(doc, 3, 7))
    assert len(given.text) == len(doc.text)
    for piece in (given, given[1], given[4:6]):
        with pytest.raises(ValueError, match="joined of several"):
            _ = piece.vector


def test_parts_that_look_alike_where_they_meet(nlp):
    """With "He" from one side and "sat." from the other, a sentence would be made up."""
    first, second = nlp("A man ran. He ran."), nlp("The dog sat. It hid.")
    given = joined(cut(first, 0, 4), unprocessed(nlp, "He sat."), cut(second, 4, 7))
    for piece in (given[4], given[5], given[4:7], given):
        with pytest.raises(ValueError, match="joined of several"):
            _ = piece.vector


def test_sentences_that_are_rows_are_right_wherever_they_stand(make_nlp):
    for unit in ("sent", "doc+sent"):
        nlp = make_nlp(unit=unit)
        doc = nlp(TEXT)
        first, second, third = doc.sents
        assert [unit, len(next(iter(doc.user_data.values()))["rows"])] in (["sent", 3], ["doc+sent", 4])
        other = nlp("The dog ran.")
        given = joined(*(one.as_doc(copy_user_data=True) for one in (third, second, first, third)), other)
        at = 0
        for sentence in (third, second, first, third, other[:]):
            span = given[at : at + len(sentence)]
            at += len(sentence)
            assert numpy.allclose(span.vector, sentence.vector, atol=1e-6), (unit, sentence)
        rows = [one.vector for one in (third, second, first, third, other)]
        assert numpy.allclose(given.vector, numpy.mean(rows, axis=0), atol=1e-6)


def test_sentences_of_one_doc_in_their_order_are_that_doc(nlp):
    doc = nlp(TEXT)
    given = joined(*(sentence.as_doc(copy_user_data=True) for sentence in doc.sents))
    assert given.text == doc.text
    assert_same(given[:], doc[:])


def test_joined_of_joined_and_cut_again(nlp):
    docs = [nlp(text) for text in (FIRST, SECOND, THIRD)]
    given = joined(joined(*docs[:2]), docs[2])
    assert_same(given[13:], docs[2][:])
    again = restore(cut(given, 6, 18))
    assert_same(again[:7], docs[1][:])
    seam = restore(cut(given, 3, 9))
    assert_same(seam[:3], docs[0][3:6])
    assert_same(seam[3:], docs[1][:3])


def test_nothing_between_the_parts(nlp):
    first, second = nlp("A man "), nlp("ran")
    given = joined(first, second, ensure_whitespace=False)
    assert given.text == "A man ran"
    assert numpy.allclose(given[:2].vector, first.vector) and numpy.allclose(given[2:].vector, second.vector)
    given = joined(nlp(""), first, nlp(" "), nlp(""), second)
    assert numpy.allclose(given.vector, (first.vector + second.vector) / 2, atol=1e-6)


def test_docs_of_pipelines_that_differ(make_nlp):
    mean, largest = make_nlp(), make_nlp(model={"pooling": "max"})
    both = Doc.from_docs([mean(FIRST), Doc(mean.vocab).from_bytes(largest(SECOND).to_bytes())])
    assert numpy.array_equal(restore(both)[0:6].vector, mean(FIRST).vector)
    for piece in (both, both[4:8]):
        with pytest.raises(ValueError, match=r"several kinds.*pooling max.*pooling mean"):
            _ = piece.vector


def test_docs_of_pipes_of_other_names(make_nlp):
    nlp = make_nlp()
    first = nlp(FIRST)
    nlp.rename_pipe("sbert", "other")
    nlp.get_pipe("other").name = "other"
    given = joined(first, nlp(SECOND))
    with pytest.raises(ValueError, match=r"'A man is eating food\.' carries no sentence vectors of the pipe 'other'"):
        _ = given.vector
    assert numpy.array_equal(given[6:].vector, nlp(SECOND).vector)


def test_after_docbin_all_is_the_same(nlp):
    doc, other = nlp(f"{FIRST} {SECOND}"), nlp(THIRD)
    given = Doc.from_docs([cut(doc, 0, 6), other])
    given.user_data = {key: value for key, value in given.user_data.items() if key[1].startswith(PREFIX)}
    data = DocBin(docs=[given], store_user_data=True).to_bytes()
    given = restore(next(DocBin().from_bytes(data).get_docs(nlp.vocab)))
    assert_same(given[:6], doc[:6])
    assert_same(given[6:], other[:])


def test_retokenized(nlp):
    doc = nlp(f"{FIRST} {SECOND}")
    expected, tokens = doc[8:10].vector, [doc[0].vector, doc[5].vector]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[8:10])
        retokenizer.split(doc[0], ["A"], heads=[doc[0]])
    assert numpy.allclose(doc[8].vector, expected, atol=1e-6)
    assert numpy.array_equal(doc[0].vector, tokens[0]) and numpy.array_equal(doc[5].vector, tokens[1])
    assert numpy.allclose(cut(doc, 6, 12)[2].vector, expected, atol=1e-6)
