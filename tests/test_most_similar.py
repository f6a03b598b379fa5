"""`_.most_similar`: parity with similarity, who encodes a str, survival, and what is refused."""

import gc

import pytest
import spacy
from pipelines import ENCODERS
from spacy.tokens import Doc, DocBin
from srsly import cloudpickle

from spacy_sbert.hooks import pipes

TEXT = "A man is eating food. The cat sat on the mat. \n He cannot go. The dog ran fast."


@pytest.fixture
def nlp(make_nlp):
    return make_nlp(unit="doc+sent")


def by_similarity(doc, query, k):
    sents = [sent for sent in doc.sents if sent.has_vector]
    return sorted(((sent.text, query.similarity(sent)) for sent in sents), key=lambda one: -one[1])[:k]


def assert_found(found, expected):
    assert [one.span.text for one in found] == [text for text, _ in expected]
    assert [one.score for one in found] == pytest.approx([score for _, score in expected], abs=1e-6)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("unit", ["doc+sent", "sent"])
@pytest.mark.parametrize("k", [1, 3, 100])
def test_parity_with_similarity(make_nlp, encoder, unit, k):
    nlp = make_nlp(encoder, unit=unit)
    doc, query = nlp(TEXT), nlp("the dog")
    expected = by_similarity(doc, query, k)
    for given in ("the dog", query, query[:]):
        assert_found(doc._.most_similar(given, k=k), expected)


def test_a_span_has_sentences_of_its_own(nlp):
    doc = nlp(TEXT)
    sents = list(doc.sents)
    found = doc[sents[0].start : sents[1].end]._.most_similar("the dog")
    assert {one.span for one in found} == set(sents[:2])


def test_rows_where_there_are_no_sentences(make_nlp, examples):
    nlp = make_nlp()
    doc = nlp("A man is eating food.")
    ((span, score),) = doc._.most_similar("A man is eating food.")
    assert span == doc[:] and score == pytest.approx(1)
    pair = nlp.get_pipe("sbert")(examples(nlp)[0].predicted)
    first, second = pair.spans["sbert"]
    found = pair._.most_similar(second.text)
    assert [one.span for one in found] == [second, first] and found[0].score == pytest.approx(1)
    assert [one.span for one in second._.most_similar("food")] == [second]


def test_the_pipe_of_the_vocab_and_the_name_encodes(make_nlp, nlp):
    other = make_nlp(unit="doc+sent", model={"pooling": "max"})
    for one in (nlp, other, nlp):
        doc = one(TEXT)
        assert_found(doc._.most_similar("the dog"), by_similarity(doc, one("the dog"), 3))


def test_of_pipes_that_replaced_one_another_the_last(make_nlp, nlp):
    first = nlp.get_pipe("sbert")
    nlp.replace_pipe(
        "sbert", "sbert", config={"model": {**nlp.config["components"]["sbert"]["model"], "pooling": "cls"}}
    )
    doc = nlp(TEXT)
    assert nlp.get_pipe("sbert") is not first
    assert_found(doc._.most_similar("the dog"), by_similarity(doc, nlp("the dog"), 3))


def test_a_copied_pipeline(nlp):
    copied = cloudpickle.loads(cloudpickle.dumps(nlp))
    doc = copied(TEXT)
    assert_found(doc._.most_similar("the dog"), by_similarity(doc, copied("the dog"), 3))


def test_docs_from_disk_find_their_pipeline(nlp):
    data = DocBin(docs=[nlp(TEXT)], store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    assert_found(doc._.most_similar("the dog"), by_similarity(nlp(TEXT), nlp("the dog"), 3))
    (alone,) = DocBin().from_bytes(data).get_docs(spacy.blank("en").vocab)
    with pytest.raises(ValueError, match="no living 'sbert' pipe named 'sbert' shares the vocab"):
        alone._.most_similar("the dog")
    assert_found(alone._.most_similar(nlp("the dog")), by_similarity(nlp(TEXT), nlp("the dog"), 3))


def test_rows_are_enough(make_nlp):
    nlp = make_nlp(unit="doc+sent", token_vectors=False)
    doc = nlp(TEXT)
    assert_found(doc._.most_similar("the dog"), by_similarity(doc, nlp("the dog"), 3))


def test_pipes_are_let_go(make_nlp):
    nlp = make_nlp()
    vocab = nlp.vocab
    assert pipes.find_pipe(vocab, "sbert") is nlp.get_pipe("sbert")
    assert pipes.find_pipe(vocab, "other") is None
    del nlp
    gc.collect()
    assert pipes.find_pipe(vocab, "sbert") is None


def test_refused(make_nlp, nlp):
    doc = nlp(TEXT)
    for query, error, message in [
        (None, TypeError, "Cannot search for None: expected a str, a Doc, a Span"),
        ("", ValueError, "it has no text"),
        (spacy.blank("en")("a"), ValueError, "carries no sentence vectors"),
    ]:
        with pytest.raises(error, match=message):
            doc._.most_similar(query)
    for k in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"k = {k}: expected 1 or more"):
            doc._.most_similar("a", k=k)
    with pytest.raises(ValueError, match="This Doc carries no sentence vectors"):
        spacy.blank("en")("a b")._.most_similar("a")
    assert nlp(" ")._.most_similar("a") == []


def test_an_attribute_of_others_is_left_alone(nlp):
    from spacy_sbert.hooks.most_similar import install, most_similar

    Doc.set_extension("most_similar", method=len, force=True)
    try:
        install()
        assert nlp("a b")._.most_similar() == 2
    finally:
        Doc.set_extension("most_similar", method=most_similar, force=True)
