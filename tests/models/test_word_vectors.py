"""Static vectors as states: as they are, or learning; and what there is to say where there are none."""

import numpy
import pytest
import spacy
from gradients import finite_differences, relative_error
from spacy.vectors import Vectors
from thinc.api import Adam

from spacy_sbert.models.word_layers import word_vectors

WORDS = ["cat", "dog", "sat", "."]
TABLE = numpy.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def with_vectors(table=TABLE):
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors(
        data=table, keys=[nlp.vocab.strings.add(word) for word in WORDS], strings=nlp.vocab.strings
    )
    return nlp


def initialized(nlp, **settings):
    model = word_vectors(**settings)
    model.initialize(X=[nlp("cat")])
    return model


@pytest.mark.parametrize("trainable", [False, True])
def test_rows_of_the_table_and_zeros_for_unknown_words(trainable):
    nlp = with_vectors()
    model = initialized(nlp, trainable=trainable)
    docs = [nlp("cat sat."), nlp(""), nlp("unknown dog")]
    first, empty, last = model.predict(docs)
    assert numpy.array_equal(first, TABLE[[0, 2, 3]]) and empty.shape == (0, 3)
    assert numpy.array_equal(last, numpy.stack([numpy.zeros(3), TABLE[1]]))
    assert numpy.array_equal(nlp.vocab.vectors.data, TABLE), "zeros are not written into the table"
    assert model.get_dim("nO") == 3


def test_gradient_of_the_table():
    nlp = with_vectors()
    model = initialized(nlp, trainable=True)
    model.set_param("E", TABLE.astype("float64"))
    docs = [nlp("cat cat unknown sat"), nlp("cat")]
    rng = numpy.random.default_rng(1)
    states, backprop = model.begin_update(docs)
    upstream = [rng.normal(size=rows.shape) for rows in states]
    assert backprop(upstream) == docs

    def value(table):
        model.set_param("E", table)
        return sum(float((rows * d).sum()) for rows, d in zip(model.predict(docs), upstream, strict=True))

    given = model.get_grad("E").copy()
    assert relative_error(given, finite_differences(value, TABLE.astype("float64"))) < 1e-6
    assert not given[1].any() and not given[3].any(), "words that do not occur learn nothing"


def test_a_table_that_learned_is_loaded_and_not_made_anew():
    nlp = with_vectors()
    model = initialized(nlp, trainable=True)
    model.set_param("E", TABLE * 2)
    other = word_vectors(trainable=True)
    other.from_bytes(model.to_bytes())
    other.initialize(X=[nlp("cat")])
    assert numpy.array_equal(other.predict([nlp("cat")])[0], TABLE[:1] * 2)


def test_a_table_that_learns_leaves_the_vocab_alone():
    nlp = with_vectors(TABLE.copy())
    model, fixed = initialized(nlp, trainable=True), initialized(nlp)
    states, backprop = model.begin_update([nlp("cat sat")])
    backprop(states)
    model.finish_update(Adam(0.1))
    assert not numpy.array_equal(model.get_param("E")[[0, 2]], TABLE[[0, 2]])
    assert numpy.array_equal(nlp.vocab.vectors.data, TABLE), "it is what other pipes, and the saved vocab, have"
    assert numpy.array_equal(fixed.predict([nlp("cat sat")])[0], TABLE[[0, 2]])


def test_floret_vectors():
    nlp = spacy.blank("en")
    rng = numpy.random.default_rng(0)
    table = rng.normal(size=(50, 5)).astype("float32")
    nlp.vocab.vectors = Vectors(
        strings=nlp.vocab.strings, mode="floret", data=table, minn=3, maxn=4, hash_count=2, bow="<", eow=">"
    )
    doc = nlp("cat unknown")
    (states,) = initialized(nlp).predict([doc])
    assert numpy.allclose(states, [token.vector for token in doc], atol=1e-6) and states.any(axis=1).all()
    with pytest.raises(ValueError, match="Set trainable = false"):
        initialized(nlp, trainable=True)


def test_errors():
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match=r"spacy-sbert\.WordVectors\.v1 looks up static vectors.*Set vectors of"):
        initialized(nlp)
    model = initialized(with_vectors())
    with pytest.raises(ValueError, match=r"has static vectors of no numbers, and the encoder was made with.* of 3"):
        model.predict([nlp("cat")])
    with pytest.raises(ValueError, match="has static vectors of 2 numbers"):
        model.predict([with_vectors(TABLE[:, :2])("cat")])
