"""Token-to-vector layers: static vectors, hashed n-grams, BiLSTM and SIF, their values by hand and
their gradients.
"""

import numpy
import pytest
import spacy
import torch
from helpers.gradients import finite_differences, relative_error
from spacy.vectors import Vectors
from thinc.api import Adam

from spacy_sbert.models.word_layers import (
    _ngram_keys,
    bilstm_encoder,
    ngram_hash_embed,
    smooth_inverse_frequency_tok2vec,
    word_vectors,
)

NLP = spacy.blank("en")
RNG = numpy.random.default_rng(0)


def value_of(model, docs, upstream):
    """The sum of all states, weighted: its gradient of the states is upstream."""
    return sum(
        float((rows.astype("f8") * d).sum())
        for rows, d in zip(model.predict(docs), upstream, strict=True)
    )


def check_table(model, layer, docs, table, step):
    """The gradient of a layer's table by finite differences; states are linear in it: a large step
    loses nothing.
    """
    layer.set_param("E", table)
    states, backprop = model.begin_update(docs)
    upstream = [RNG.normal(size=rows.shape).astype("float32") for rows in states]
    layer.set_grad("E", numpy.zeros_like(table))
    backprop(upstream)
    gradient = layer.get_grad("E").copy()

    def value(x):
        layer.set_param("E", x.astype(table.dtype))
        return value_of(model, docs, upstream)

    assert (
        relative_error(gradient, finite_differences(value, table.astype("float64"), step=step))
        < 1e-5
    )
    layer.set_param("E", table)
    return gradient


WORDS = ["cat", "dog", "sat", "."]
TABLE = numpy.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def with_vectors(table=TABLE):
    nlp = spacy.blank("xx")
    keys = [nlp.vocab.strings.add(word) for word in WORDS]
    nlp.vocab.vectors = Vectors(data=table, keys=keys, strings=nlp.vocab.strings)
    return nlp


def of_vocab(nlp, **settings):
    model = word_vectors(**settings)
    model.initialize(X=[nlp("cat")])
    return model


@pytest.mark.parametrize("trainable", [False, True])
def test_rows_of_the_table_and_zeros_for_unknown_words(trainable):
    nlp = with_vectors()
    model = of_vocab(nlp, trainable=trainable)
    first, empty, last = model.predict([nlp("cat sat."), nlp(""), nlp("unknown dog")])
    assert numpy.array_equal(first, TABLE[[0, 2, 3]])
    assert empty.shape == (0, 3)
    assert numpy.array_equal(last, numpy.stack([numpy.zeros(3), TABLE[1]]))
    assert numpy.array_equal(nlp.vocab.vectors.data, TABLE), "zeros are not written into the table"
    assert model.get_dim("nO") == 3


def test_a_table_that_learned_is_loaded_and_leaves_the_vocab_alone():
    nlp = with_vectors(TABLE.copy())
    model = of_vocab(nlp, trainable=True)
    fixed = of_vocab(nlp)
    other = word_vectors(trainable=True)
    states, backprop = model.begin_update([nlp("cat sat")])
    backprop(states)
    model.finish_update(Adam(0.1))
    assert not numpy.array_equal(model.get_param("E")[[0, 2]], TABLE[[0, 2]])
    assert numpy.array_equal(nlp.vocab.vectors.data, TABLE), (
        "it is what other pipes, and the saved vocab, have"
    )
    assert numpy.array_equal(fixed.predict([nlp("cat sat")])[0], TABLE[[0, 2]])
    other.from_bytes(model.to_bytes())
    other.initialize(X=[nlp("cat")])
    assert numpy.array_equal(other.get_param("E"), model.get_param("E"))
    given = check_table(
        model, model, [nlp("cat cat unknown sat"), nlp("cat")], TABLE.astype("float64"), 1e-4
    )
    assert not given[1].any() and not given[3].any(), "words that do not occur learn nothing"


def test_floret_vectors():
    nlp = spacy.blank("xx")
    table = RNG.normal(size=(50, 5)).astype("float32")
    settings = {
        "mode": "floret",
        "data": table,
        "minn": 3,
        "maxn": 4,
        "hash_count": 2,
        "bow": "<",
        "eow": ">",
    }
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, **settings)
    doc = nlp("cat unknown")
    (states,) = of_vocab(nlp).predict([doc])
    assert numpy.allclose(states, [token.vector for token in doc], atol=1e-6)
    assert states.any(axis=1).all()
    with pytest.raises(ValueError, match="Set trainable = false"):
        of_vocab(nlp, trainable=True)


def test_errors_of_static_vectors():
    with pytest.raises(ValueError, match=r"spacy-sbert\.WordVectors\.v1 .*Set vectors of"):
        of_vocab(NLP)
    model = of_vocab(with_vectors())
    with pytest.raises(ValueError, match=r"static vectors of no numbers, .* of 3"):
        model.predict([NLP("cat")])
    with pytest.raises(ValueError, match="has static vectors of 2 numbers"):
        model.predict([with_vectors(TABLE[:, :2])("cat")])


SETTINGS = [{}, {"words": False}, {"ngram_size": 0}]


def embedding(**settings):
    model = ngram_hash_embed(width=4, rows=50, **settings)
    model.initialize()
    return model


def test_ngrams_of_a_word_between_blanks():
    def keys(*ngrams):
        return [NLP.vocab.strings.add(ngram) for ngram in ngrams]

    assert _ngram_keys("cats", 3).tolist() == keys(" ca", "cat", "ats", "ts ")
    assert _ngram_keys("a", 3).tolist() == keys(" a ")
    assert _ngram_keys("a", 5).tolist() == keys(" a ")


@pytest.mark.parametrize("settings", SETTINGS)
def test_states_are_sums_by_hand(settings):
    model = embedding(**settings)
    first, empty, last = model.predict([NLP("The CATS"), NLP(""), NLP("cats")])
    assert first.shape == (2, 4)
    assert empty.shape == (0, 4)
    assert numpy.allclose(first[1], last[0]), "case does not count"
    expected = numpy.zeros(4)
    if settings.get("words", True):
        expected = model.layers[0].predict(
            numpy.array([NLP.vocab.strings["cats"]], dtype="uint64")
        )[0]
    if settings.get("ngram_size", 3):
        expected = expected + model.layers[-1].predict(_ngram_keys("cats", 3)).mean(axis=0)
    assert numpy.allclose(last[0], expected, atol=1e-6)
    assert len(model.layers) == (1 if settings else 2)
    for layer in model.layers:
        table = RNG.normal(size=(50, 4)).astype("float32")
        check_table(model, layer, [NLP("the cats sat"), NLP(""), NLP("cats")], table, 0.25)


def test_nothing_to_embed():
    model = embedding()
    states, backprop = model.begin_update([NLP(""), NLP("")])
    assert [rows.shape for rows in states] == [(0, 4), (0, 4)]
    backprop(states)
    other = embedding(seed=3).from_bytes(model.to_bytes())
    assert numpy.array_equal(model.predict([NLP("a cat")])[0], other.predict([NLP("a cat")])[0])
    with pytest.raises(ValueError, match="words = false and ngram_size = 0 embeds nothing"):
        ngram_hash_embed(words=False, ngram_size=0)


every_depth = pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])


@pytest.fixture
def bilstm(depth):
    """A layer in float64, and its LSTM."""
    torch.manual_seed(0)
    model = bilstm_encoder(4, depth)
    return model, model.shims[0]._model.double()


@every_depth
def test_states_of_a_bilstm_are_those_of_each_doc_alone(bilstm, depth):
    model, lstm = bilstm
    plain = torch.nn.LSTM(4, 2, depth, bidirectional=True).double()
    plain.load_state_dict(lstm.state_dict())
    given = [RNG.normal(size=(length, 4)) for length in (3, 0, 7, 1)]
    states, _ = model.begin_update(given)
    for found, own in zip(states, given, strict=True):
        assert found.shape == own.shape
        if len(own):
            expected, _ = plain(torch.tensor(own))
            assert numpy.allclose(found, expected.detach().numpy(), atol=1e-12)


@every_depth
def test_gradients_of_a_bilstm(bilstm):
    model, lstm = bilstm
    given, upstream = ([RNG.normal(size=(length, 4)) for length in (3, 0, 7, 1)] for _ in range(2))

    def value(_):
        return value_of(model, given, upstream)

    _, backprop = model.begin_update(given)
    for own, d_own in zip(given, backprop(upstream), strict=True):
        assert d_own.shape == own.shape
        if len(own):
            assert relative_error(d_own, finite_differences(value, own)) < 1e-6
    for name, parameter in lstm.named_parameters():
        expected = finite_differences(value, parameter.detach().numpy())
        assert relative_error(parameter.grad.numpy(), expected) < 1e-6, name


@every_depth
def test_a_bilstm_of_docs_without_tokens(bilstm):
    model, _ = bilstm
    states, backprop = model.begin_update([numpy.zeros((0, 4))] * 2)
    assert [len(rows) for rows in states] == [0, 0]
    assert [len(rows) for rows in backprop(states)] == [0, 0]


def test_the_width_of_a_bilstm_is_even():
    with pytest.raises(ValueError, match=r"width = 5.*an even number"):
        bilstm_encoder(5, 1)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.txt"
    path.write_text("the 700\ncat 200\nsat 100\n", encoding="utf8")
    return path


def sif(counts, **settings):
    model = smooth_inverse_frequency_tok2vec(ngram_hash_embed(width=4, rows=50), counts, **settings)
    model.initialize(X=[NLP("The cat")])
    return model


def test_weights_by_hand(counts):
    model = sif(counts, a=0.1)
    doc = NLP("The cat hid")
    (given,), (states,) = model.predict([doc]), model.layers[0].predict([doc])
    weights = numpy.array([0.1 / (0.1 + 0.7), 0.1 / (0.1 + 0.2), 1.0])
    assert numpy.allclose(given, states * weights[:, None], atol=1e-6)
    assert model.get_dim("nO") == 4
    assert model.predict([NLP("")])[0].shape == (0, 4)
    other = smooth_inverse_frequency_tok2vec(
        ngram_hash_embed(width=4, rows=50), counts.with_name("gone.txt")
    )
    assert numpy.array_equal(other.from_bytes(model.to_bytes()).predict([doc])[0], given), (
        "the file is not read again"
    )
    layer = model.layers[0].layers[0]
    check_table(model, layer, [NLP("the cat sat"), NLP(""), NLP("hid")], layer.get_param("E"), 0.25)


def test_errors_of_sif(counts):
    embed = embedding()
    with pytest.raises(ValueError, match=r"needs counts of words: set counts to a file"):
        smooth_inverse_frequency_tok2vec(embed).initialize(X=[NLP("cat")])
    with pytest.raises(ValueError, match=r"no weights of words yet"):
        smooth_inverse_frequency_tok2vec(embed, counts).predict([NLP("cat")])
    with pytest.raises(
        ValueError,
        match=r"counts\.txt' .*'der Hund'.*another language",
    ):
        smooth_inverse_frequency_tok2vec(embed, counts).initialize(X=[NLP("der Hund")])
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        smooth_inverse_frequency_tok2vec(embed, counts.with_name("gone.txt")).initialize(
            X=[NLP("cat")]
        )
