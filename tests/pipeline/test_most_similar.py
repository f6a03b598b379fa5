"""`_.sbert_most_similar`: parity with similarity, who encodes a str, survival, and what is
refused.
"""

import gc

import numpy
import pytest
import spacy
from helpers.pipelines import EVERY_ENCODER, SHARING, blank, reloaded
from spacy.tokens import DocBin
from thinc.api import Adam

from spacy_sbert.pipeline.most_similar import with_vectors
from spacy_sbert.search import SpanSearch, collect_spans

TEXT = "A man is eating food. The cat sat on the mat. \n He cannot go. The dog ran fast."


@pytest.fixture
def nlp(make_nlp):
    return make_nlp(unit="doc+sent")


def by_similarity(doc, query, k):
    sents = [sent for sent in doc.sents if sent.has_vector]
    return sorted(((sent.text, query.similarity(sent)) for sent in sents), key=lambda one: -one[1])[
        :k
    ]


def assert_found(found, expected):
    assert [one.span.text for one in found] == [text for text, _ in expected]
    assert [one.score for one in found] == pytest.approx([score for _, score in expected], abs=1e-6)


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_parity_with_similarity(make_nlp, encoder):
    nlp = make_nlp(encoder, unit="doc+sent")
    doc = nlp(TEXT)
    query = nlp("the dog")
    for k in (1, 3, 100):
        expected = by_similarity(doc, query, k)
        for given in ("the dog", query, query[:]):
            assert_found(doc._.sbert_most_similar(given, k=k), expected)
    sents = list(doc.sents)
    found = doc[sents[0].start : sents[1].end]._.sbert_most_similar("the dog")
    assert {one.span for one in found} == set(sents[:2])
    cut = {"component_cfg": {"sbert": {"truncate_dim": 8}}}
    doc = nlp(TEXT, **cut)
    assert_found(doc._.sbert_most_similar("the dog"), by_similarity(doc, nlp("the dog", **cut), 3))


def test_rows_where_there_are_no_sentences(make_nlp, examples):
    nlp = make_nlp()
    doc = nlp("A man is eating food.")
    ((span, score),) = doc._.sbert_most_similar("A man is eating food.")
    assert span == doc[:]
    assert score == pytest.approx(1)
    pair = nlp.get_pipe("sbert")(examples(nlp)[0].predicted)
    first, second = pair.spans["sbert"]
    found = pair._.sbert_most_similar(second.text)
    assert [one.span for one in found] == [second, first]
    assert found[0].score == pytest.approx(1)
    assert [one.span for one in second._.sbert_most_similar("food")] == [second]


def test_docs_from_disk_find_their_pipeline(nlp):
    data = DocBin(docs=[nlp(TEXT)], store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    with pytest.raises(ValueError, match=r"does not know a pipe.*'sbert', encoder .*nlp=nlp"):
        doc._.sbert_most_similar("the dog")
    assert_found(
        doc._.sbert_most_similar("the dog", nlp=nlp), by_similarity(nlp(TEXT), nlp("the dog"), 3)
    )
    found = SpanSearch(collect_spans(doc)).search("the dog", k=3, nlp=nlp)
    assert_found(found, by_similarity(nlp(TEXT), nlp("the dog"), 3))
    nlp.rename_pipe("sbert", "renamed")
    assert_found(
        doc._.sbert_most_similar("the dog", nlp=nlp), by_similarity(nlp(TEXT), nlp("the dog"), 3)
    )
    (alone,) = DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab)
    # The pipe with the same encoder, whatever the vocab
    for query in ("the dog", nlp("the dog")):
        assert_found(
            alone._.sbert_most_similar(query, nlp=nlp), by_similarity(nlp(TEXT), nlp("the dog"), 3)
        )


def other_pooling(nlp, pooling="cls"):
    return {"model": {**nlp.config["components"]["sbert"]["model"], "pooling": pooling}}


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_a_sourced_pipe(make_nlp, other_bert, encoder, tmp_path):
    nlp = make_nlp(encoder, unit="doc+sent")
    other = blank()
    for name in nlp.pipe_names:
        other.add_pipe(name, name="mine" if name == "sbert" else name, source=nlp)
    doc = other(TEXT)
    assert numpy.array_equal(doc.vector, nlp(TEXT).vector)
    assert numpy.array_equal(doc._.mine_vector, doc.vector)
    assert_found(doc._.sbert_most_similar("the dog"), by_similarity(doc, other("the dog"), 3))
    assert numpy.array_equal(reloaded(other, tmp_path)(TEXT).vector, doc.vector)
    other.rename_pipe("mine", "renamed")
    assert other(TEXT).has_vector
    # Its own pipeline's transformer did not make the vectors
    if encoder == "shared":
        other = make_nlp("shared", name=other_bert, unit="doc+sent")
        other.remove_pipe("sbert")
        other.add_pipe("sbert", source=nlp)
        with pytest.raises(ValueError, match="does not know a pipe"):
            other(TEXT)._.sbert_most_similar("the dog")


def test_a_query_is_encoded_by_the_encoder_of_the_doc(make_nlp, tiny_bert, nlp):
    """Not by another pipe of the same name and vocab, whenever that was made or at work."""
    doc = nlp(TEXT)
    expected = by_similarity(nlp(TEXT), nlp("the dog"), 3)
    other = spacy.blank("xx", vocab=nlp.vocab)
    other.add_pipe("sentencizer")
    other.add_pipe("sbert", config=other_pooling(nlp))
    # Not loaded yet
    assert_found(doc._.sbert_most_similar("the dog"), expected)
    theirs = other(TEXT)
    assert_found(doc._.sbert_most_similar("the dog"), expected)
    assert_found(SpanSearch(collect_spans(doc)).search("the dog", k=3), expected)
    assert_found(theirs._.sbert_most_similar("the dog"), by_similarity(theirs, other("the dog"), 3))
    nlp.rename_pipe("sbert", "renamed")
    assert_found(nlp(TEXT)._.sbert_most_similar("the dog"), expected)


def test_after_a_pipe_was_replaced(make_nlp):
    quiet = make_nlp(unit="doc+sent", set_hooks=False)
    doc = quiet(TEXT)
    with pytest.raises(ValueError, match="does not know a pipe"):
        doc._.sbert_most_similar("the dog")
    found = doc._.sbert_most_similar("the dog", nlp=quiet)
    assert [one.span for one in found] == [
        one.span for one in doc._.sbert_most_similar(quiet("the dog"))
    ]
    nlp = make_nlp(unit="doc+sent", model={"pooling": "cls+mean"})
    doc = nlp(TEXT)
    expected = by_similarity(nlp(TEXT), nlp("the dog"), 3)
    replaced = nlp.get_pipe("sbert")
    nlp.replace_pipe("sbert", "sbert", config=other_pooling(nlp, "mean+cls"))
    nlp("a dog")
    # The pipe is still there
    assert_found(doc._.sbert_most_similar("the dog"), expected)
    # Which no Doc keeps
    del replaced
    gc.collect()
    with pytest.raises(ValueError, match="does not know a pipe"):
        doc._.sbert_most_similar("the dog")


@pytest.mark.parametrize("encoder", SHARING)
def test_after_a_shared_transformer_was_replaced(make_nlp, other_bert, encoder):
    nlp = make_nlp(encoder, unit="doc+sent")
    before = nlp(TEXT)
    config = {
        "model": {**nlp.config["components"]["transformer"]["model"], "name": str(other_bert)}
    }
    nlp.replace_pipe("transformer", SHARING[encoder][0], config=config)
    doc = nlp(TEXT)
    assert_found(doc._.sbert_most_similar("the dog"), by_similarity(doc, nlp("the dog"), 3))
    assert numpy.allclose(nlp.get_pipe("sbert").encode([TEXT])[0], doc.vector, atol=1e-5)
    assert not numpy.allclose(before.vector, doc.vector, atol=1e-3)


def test_after_training_the_query_is_refused(make_nlp, examples):
    nlp = make_nlp(unit="doc+sent", model={"pooling": "lasttoken"})
    before = nlp(TEXT)
    pairs = examples(nlp)
    nlp.initialize(lambda: pairs)
    nlp.update(pairs, sgd=Adam(0.01))
    with pytest.raises(ValueError, match=r"trained since.*nlp\(doc.text\)"):
        before._.sbert_most_similar("the dog")
    after = nlp(TEXT)
    assert_found(after._.sbert_most_similar("the dog"), by_similarity(after, nlp("the dog"), 3))


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        pytest.param(None, TypeError, "None: expected a str, a Doc, a Span", id="None"),
        pytest.param("", ValueError, "it has no text", id="no text"),
        pytest.param(
            spacy.blank("xx")("a"), ValueError, "carries no sentence vectors", id="a plain Doc"
        ),
    ],
)
def test_queries_that_cannot_be(nlp, query, error, message):
    with pytest.raises(error, match=message):
        nlp(TEXT)._.sbert_most_similar(query)


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_k_is_a_positive_whole_number(nlp, k):
    with pytest.raises(ValueError, match=f"k = {k}: expected "):
        nlp(TEXT)._.sbert_most_similar("a", k=k)


def test_docs_without_vectors(nlp):
    with pytest.raises(ValueError, match="This Doc carries no sentence vectors"):
        spacy.blank("xx")("a b")._.sbert_most_similar("a")
    assert nlp(" ")._.sbert_most_similar("a") == []


def test_spans_behind_the_limit_are_left_out_with_a_warning(make_nlp):
    doc = make_nlp("own")("the dog " * 300)
    with pytest.warns(UserWarning, match=r"\[sbert-spans-left-out\] 1 of 2"):
        spans, _ = with_vectors([doc[0:2], doc[590:592]])
    assert spans == [doc[0:2]]


@pytest.mark.parametrize("given", ["a text", None, 3, ["a", "b"]])
def test_a_pipe_takes_docs(make_nlp, given):
    with pytest.raises(TypeError, match="'sbert' takes Docs"):
        make_nlp("own").get_pipe("sbert")(given)
