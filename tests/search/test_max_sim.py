"""MaxSim of Docs: their wordpieces, the order of texts, and what has none."""

import numpy
import pytest
import torch
from helpers.pipelines import through_docbin
from spacy.tokens import Doc
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.pipeline.doc_vectors import wordpiece_vectors
from spacy_sbert.reranker.pair_scoring import Ranked
from spacy_sbert.search import rank_by_max_sim
from spacy_sbert.similarity import max_sim

TEXTS = ["The cat sat on the mat.", "the dog ran", "A man is eating food.", "the dog ran"]


@pytest.fixture(scope="module", params=["own", "shared"])
def nlp(make_nlp, request):
    return make_nlp(request.param, unit="doc+sent")


def test_texts_are_ordered(nlp):
    docs = list(nlp.pipe(TEXTS))
    query = nlp("A dog runs")
    scores = max_sim(wordpiece_vectors(query), list(map(wordpiece_vectors, docs)))
    ranked = rank_by_max_sim(query, iter(docs))
    order = sorted(range(4), key=lambda i: (-scores[i], i))
    assert ranked == [Ranked(docs[i], float(scores[i]), i) for i in order]
    assert [one.index for one in ranked].index(1) + 1 == [one.index for one in ranked].index(3)
    assert rank_by_max_sim(query, docs, k=2) == ranked[:2]
    assert rank_by_max_sim(query, docs, k=9) == ranked
    (best,) = rank_by_max_sim(docs[2], docs, k=1)
    assert best.index == 2
    assert best.score == pytest.approx(len(wordpiece_vectors(docs[2])), abs=1e-5)


@pytest.mark.parametrize("unit", ["doc", "doc+sent"])
def test_wordpieces_have_the_last_layer_of_the_encoder(make_nlp, tiny_bert, unit):
    """Without special tokens, in the context of the Doc, as Hugging Face's model gives it."""
    text = "The dog ran. He cannot go."
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    with torch.no_grad():
        states = AutoModel.from_pretrained(tiny_bert)(**tokenizer(text, return_tensors="pt"))[0][0]
    vectors = wordpiece_vectors(make_nlp(unit=unit)(text))
    assert vectors.dtype == "float32"
    assert numpy.allclose(vectors, states[1:-1].numpy(), atol=1e-5)


def test_spans_have_those_of_their_characters(nlp):
    doc = nlp("The dog ran. The cat sat on the mat.")
    first, second = doc[:4], doc[4:]
    joined = numpy.concatenate([wordpiece_vectors(first), wordpiece_vectors(second)])
    assert numpy.array_equal(joined, wordpiece_vectors(doc))
    # A token of one wordpiece has its vector
    assert numpy.allclose(wordpiece_vectors(doc[1])[0], doc[1].vector, atol=1e-6)
    assert rank_by_max_sim(second, [first, second], k=1)[0].text == second


def test_stored_docs_are_ranked(nlp):
    docs = list(nlp.pipe(TEXTS))
    stored = through_docbin(docs, nlp.vocab)
    expected = [(one.index, one.score) for one in rank_by_max_sim(docs[0], docs)]
    assert [(one.index, one.score) for one in rank_by_max_sim(stored[0], stored)] == expected


def test_what_has_no_vectors_of_wordpieces_is_refused(make_nlp):
    nlp = make_nlp()
    doc = nlp("The dog ran.")
    for texts in ([nlp("")], [doc, nlp(" ")]):
        with pytest.raises(ValueError, match=rf"docs\[{len(texts) - 1}\] of shape \(0, 16\)"):
            rank_by_max_sim(doc, texts)
    with pytest.raises(ValueError, match=r"query of shape \(0, 16\)"):
        rank_by_max_sim(nlp(""), [doc])
    with pytest.raises(ValueError, match="carries no sentence vectors"):
        rank_by_max_sim(doc, [Doc(nlp.vocab, words=["dog"])])
    lean = make_nlp(token_vectors=False)
    with pytest.raises(ValueError, match="Set token_vectors = true"):
        rank_by_max_sim(doc, [lean("The dog ran.")])
    with pytest.raises(ValueError, match="Cannot use k = 0"):
        rank_by_max_sim(doc, [doc], k=0)
    with pytest.raises(TypeError, match="There is no vector of 'dog'"):
        rank_by_max_sim("dog", [doc])
