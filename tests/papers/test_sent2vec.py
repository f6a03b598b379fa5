"""Sent2Vec: vectors by hand, gradients, contexts of words, training, and a saved pipeline."""

import numpy
import pytest
import spacy
import torch
from helpers.gradients import finite_differences, relative_error

from spacy_sbert import find_sbert

TEXTS = ["The cat sat on the mat", "the dog", "Rain"]
WIDTH = 4


@pytest.fixture(scope="module")
def sent2vec(load_script):
    return load_script("sent2vec")


@pytest.fixture
def docs():
    return list(map(spacy.blank("en").make_doc, TEXTS))


@pytest.fixture
def layer(sent2vec):
    """In float64, with few rows, so that words share them."""
    rng = numpy.random.default_rng(0)
    model = sent2vec.sent2vec(width=WIDTH, word_rows=5, bigram_rows=7)
    model.set_param("E", rng.normal(size=(5, WIDTH)))
    model.set_param("F", rng.normal(size=(7, WIDTH)))
    return model


def test_sums_by_hand(sent2vec, layer, docs):
    """A token has its own vector and that of the bigram it begins; case does not count."""
    words, bigrams = layer.get_param("E"), layer.get_param("F")
    for doc, states in zip(docs, layer.predict(docs), strict=True):
        word_rows, bigram_rows = sent2vec.rows_of(doc, 5, 7)
        expected = [words[row] for row in word_rows]
        for t, row in enumerate(bigram_rows):
            expected[t] = expected[t] + bigrams[row]
        numpy.testing.assert_allclose(states, numpy.stack(expected), rtol=1e-12)
    rows, _ = sent2vec.rows_of(docs[0], 10**9, 10**9)
    assert rows[0] == rows[4]
    assert len(set(rows.tolist())) == 5


def test_order_decides_bigrams(sent2vec):
    nlp = spacy.blank("en")
    _, one = sent2vec.rows_of(nlp.make_doc("a b"), 10**9, 10**9)
    _, other = sent2vec.rows_of(nlp.make_doc("b a"), 10**9, 10**9)
    assert one != other


@pytest.mark.parametrize("name", ["E", "F"])
def test_gradient(layer, docs, name):
    rng = numpy.random.default_rng(1)
    weights = [rng.normal(size=(len(doc), WIDTH)) for doc in docs]

    def value(_):
        return sum(float((w * y).sum()) for w, y in zip(weights, layer.predict(docs), strict=True))

    _, backprop = layer(docs, True)
    assert backprop(weights) == docs
    expected = finite_differences(value, layer.get_param(name))
    assert relative_error(layer.get_grad(name), expected) < 1e-8


def test_contexts_by_hand(sent2vec):
    """The mean of all n-grams of the own sentence that the word is not in."""
    rng = numpy.random.default_rng(2)
    n_words = [4, 3]
    words = rng.normal(size=(7, WIDTH)).astype("float32")
    bigrams = rng.normal(size=(5, WIDTH)).astype("float32")
    found = sent2vec._contexts(torch.from_numpy(words), torch.from_numpy(bigrams), n_words).numpy()
    expected = []
    for own_words, own_bigrams in ((words[:4], bigrams[:3]), (words[4:], bigrams[3:])):
        for t in range(len(own_words)):
            others = [own_words[i] for i in range(len(own_words)) if i != t]
            others += [own_bigrams[i] for i in range(len(own_bigrams)) if t not in (i, i + 1)]
            expected.append(numpy.mean(others, axis=0))
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_training_learns_what_words_stand_together(sent2vec, tmp_path):
    """Words of the same sentences become similar, twice alike, and are saved with the pipeline."""
    nlp = spacy.blank("en")
    tok2vec = {"@architectures": "sent2vec.v1", "width": 16, "word_rows": 500, "bigram_rows": 500}
    encoder = "spacy-sbert.Tok2VecSentenceEncoder.v1"
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": encoder, "tok2vec": tok2vec}, "loss": None}
    )
    nlp.initialize()
    sbert = find_sbert(nlp)
    (layer,) = (node for node in sbert.model.walk() if node.name == "sent2vec")
    topics = [["cat", "dog", "mouse", "horse"], ["rain", "snow", "wind", "storm"]]
    rng = numpy.random.default_rng(0)
    texts = [" ".join(rng.permutation(topics[i % 2]).tolist()) for i in range(200)]
    start = {name: layer.get_param(name).copy() for name in ("E", "F")}
    settings = {"epochs": 5, "batch_size": 16, "subsample": 1.0, "learn_rate": 0.1}
    learned = []
    for _ in range(2):
        for name, table in start.items():
            layer.set_param(name, table.copy())
        losses = sent2vec.train(layer, map(nlp.make_doc, texts), **settings)
        learned.append((losses, layer.get_param("E").copy()))
    (losses, table), (again, same_table) = learned
    assert losses == again
    assert losses[-1] < 0.9 * losses[0]
    numpy.testing.assert_array_equal(table, same_table)
    cat, mouse, snow = nlp.pipe(["cat dog", "mouse horse", "snow storm"])
    assert cat.similarity(mouse) > cat.similarity(snow) + 0.2
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    numpy.testing.assert_array_equal(loaded("cat dog").vector, cat.vector)
