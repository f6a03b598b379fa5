"""Embeddings of words and of the n-grams in them."""

import numpy
import pytest
import spacy
from gradients import finite_differences, relative_error

from spacy_sbert.models.word_layers import _ngram_keys, ngram_hash_embed

NLP = spacy.blank("en")


def initialized(**settings):
    model = ngram_hash_embed(width=4, rows=50, **settings)
    model.initialize()
    return model


def test_ngrams_of_a_word_between_blanks():
    def keys(*ngrams):
        return [NLP.vocab.strings.add(ngram) for ngram in ngrams]

    assert _ngram_keys("cats", 3).tolist() == keys(" ca", "cat", "ats", "ts ")
    assert _ngram_keys("a", 3).tolist() == keys(" a ") and _ngram_keys("a", 5).tolist() == keys(" a ")


@pytest.mark.parametrize("settings", [{}, {"words": False}, {"ngram_size": 0}])
def test_states_are_sums_by_hand(settings):
    model = initialized(**settings)
    docs = [NLP("The CATS"), NLP(""), NLP("cats")]
    first, empty, last = model.predict(docs)
    assert first.shape == (2, 4) and empty.shape == (0, 4)
    assert numpy.allclose(first[1], last[0]), "case does not count"
    expected = numpy.zeros(4)
    if settings.get("words", True):
        expected = model.layers[0].predict(numpy.array([NLP.vocab.strings["cats"]], dtype="uint64"))[0]
    if settings.get("ngram_size", 3):
        expected = expected + model.layers[-1].predict(_ngram_keys("cats", 3)).mean(axis=0)
    assert numpy.allclose(last[0], expected, atol=1e-6)
    assert len(model.layers) == (1 if settings else 2)


@pytest.mark.parametrize("settings", [{}, {"words": False}, {"ngram_size": 0}])
def test_gradients(settings):
    model = initialized(**settings)
    docs = [NLP("the cats sat"), NLP(""), NLP("cats")]
    rng = numpy.random.default_rng(0)
    for layer in model.layers:
        layer.set_param("E", rng.normal(size=(50, 4)).astype("float32"))
    states, backprop = model.begin_update(docs)
    upstream = [rng.normal(size=rows.shape).astype("float32") for rows in states]
    assert backprop(upstream) == docs
    for layer in model.layers:
        table = layer.get_param("E").astype("float64")

        def value(x, layer=layer):
            layer.set_param("E", x.astype("float32"))
            found = model.predict(docs)
            return sum(float((a.astype("float64") * b).sum()) for a, b in zip(found, upstream, strict=True))

        expected = finite_differences(value, table.copy(), step=0.25)  # linear in E: a large step loses nothing
        layer.set_param("E", table.astype("float32"))
        assert relative_error(layer.get_grad("E"), expected) < 1e-5


def test_nothing_to_embed():
    model = initialized()
    states, backprop = model.begin_update([NLP(""), NLP("")])
    assert [rows.shape for rows in states] == [(0, 4), (0, 4)]
    backprop(states)
    other = initialized(seed=3).from_bytes(model.to_bytes())
    assert numpy.array_equal(model.predict([NLP("a cat")])[0], other.predict([NLP("a cat")])[0])
    with pytest.raises(ValueError, match="words = false and ngram_size = 0 embeds nothing"):
        ngram_hash_embed(words=False, ngram_size=0)
