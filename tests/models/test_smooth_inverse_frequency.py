"""Tokens weighted by how rare they are."""

import numpy
import pytest
import spacy
from gradients import finite_differences, relative_error

from spacy_sbert.models.word_layers import ngram_hash_embed, smooth_inverse_frequency

NLP = spacy.blank("en")


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.txt"
    path.write_text("the 700\ncat 200\nsat 100\n", encoding="utf8")
    return path


def initialized(counts, **settings):
    model = smooth_inverse_frequency(ngram_hash_embed(width=4, rows=50), counts, **settings)
    model.initialize(X=[NLP("The cat")])
    return model


def test_weights_by_hand(counts):
    model = initialized(counts, a=0.1)
    doc = NLP("The cat hid")
    (given,), (states,) = model.predict([doc]), model.layers[0].predict([doc])
    weights = numpy.array([0.1 / (0.1 + 0.7), 0.1 / (0.1 + 0.2), 1.0])
    assert numpy.allclose(given, states * weights[:, None], atol=1e-6)
    assert model.get_dim("nO") == 4 and model.predict([NLP("")])[0].shape == (0, 4)


def test_gradient(counts):
    model = initialized(counts)
    docs = [NLP("the cat sat"), NLP(""), NLP("hid")]
    states, backprop = model.begin_update(docs)
    rng = numpy.random.default_rng(0)
    upstream = [rng.normal(size=rows.shape).astype("float32") for rows in states]
    backprop(upstream)
    layer = model.layers[0].layers[0]
    table = layer.get_param("E").astype("float64")

    def value(x):
        layer.set_param("E", x.astype("float32"))
        return sum(float((a.astype("float64") * b).sum()) for a, b in zip(model.predict(docs), upstream, strict=True))

    given = layer.get_grad("E").copy()
    assert relative_error(given, finite_differences(value, table, step=0.25)) < 1e-5


def test_weights_are_saved_and_the_file_is_not_needed_again(counts):
    model = initialized(counts)
    other = smooth_inverse_frequency(ngram_hash_embed(width=4, rows=50), counts.with_name("gone.txt"))
    other.from_bytes(model.to_bytes())
    assert numpy.array_equal(other.predict([NLP("the cat")])[0], model.predict([NLP("the cat")])[0])


def test_errors(counts):
    embed = ngram_hash_embed(width=4, rows=50)
    embed.initialize()
    with pytest.raises(ValueError, match=r"needs counts of words: set counts to a file"):
        smooth_inverse_frequency(embed).initialize(X=[NLP("cat")])
    with pytest.raises(ValueError, match=r"has no weights of words yet: call nlp\.initialize\(\)"):
        smooth_inverse_frequency(embed, counts).predict([NLP("cat")])
    with pytest.raises(ValueError, match=r"counts\.txt' of .* counts none of the words.*'der Hund'.*another language"):
        smooth_inverse_frequency(embed, counts).initialize(X=[NLP("der Hund")])
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        smooth_inverse_frequency(embed, counts.with_name("gone.txt")).initialize(X=[NLP("cat")])
