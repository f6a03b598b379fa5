"""Layers on strict arrays, there and back: the values are those of NumPy, and nothing waits for the
device.
"""

from functools import partial

import numpy
import pytest
import torch
from gpu_rehearsal.both_ways import both_ways, check_same, looks_of
from gpu_rehearsal.strict_ops import strict_device
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Ragged, get_current_ops
from thinc.util import to_numpy

from spacy_sbert.models.heads import ACTIVATIONS, Dense, normalization, truncation
from spacy_sbert.models.poolings import POOLING, make_pooling, without_leading
from spacy_sbert.models.span_batch import in_places
from spacy_sbert.models.word_layers import bilstm_encoder, ngram_hash_embed, word_vectors
from spacy_sbert.similarity import cosine, euclidean, manhattan

RNG = numpy.random.default_rng(3)
ROWS, D_ROWS = (RNG.normal(size=(4, 6)).astype("float32") for _ in range(2))
# Whose squares overflow, or vanish
ODD = ROWS * numpy.array([[1e30], [1e-30], [0], [1]], dtype="float32")
# Sums are made of stretches of 16
LENGTHS = numpy.array([3, 40, 1, 17])
STATES = RNG.normal(size=(61, 6)).astype("float32")
NAMES = [*POOLING, "cls+mean", "mean+max+weightedmean"]


def put(array):
    """An array of the host, a copy of it on the current device."""
    return get_current_ops().asarray(array.copy())


def there_and_back(layer, given, d_output):
    found, backprop = layer.begin_update(given)
    return found, backprop(put(d_output))


@pytest.mark.parametrize("name", NAMES)
def test_poolings(name):
    d_pooled = RNG.normal(size=(4, 6 * len(name.split("+")))).astype("float32")

    def work(lengths=LENGTHS):
        pooled, d_states = there_and_back(
            make_pooling(name), Ragged(put(STATES), lengths), d_pooled
        )
        return pooled, d_states.dataXd

    def of_lengths_on_the_device():
        return work(get_current_ops().asarray1i(LENGTHS))

    expected, found = both_ways(work)
    check_same(expected, found)
    check_same(expected, both_ways(of_lengths_on_the_device)[1])
    with strict_device():
        assert looks_of(work) == []


def dense(activation):
    numpy.random.seed(0)
    layer = Dense(6, 6, activation)
    layer.initialize()
    found = there_and_back(layer, put(ROWS), D_ROWS)
    return [*found, *(layer.get_grad(name) for name in ("W", "b"))]


def leading_wordpieces():
    layer = without_leading(2)
    kept, backprop = layer.begin_update(Ragged(put(STATES), LENGTHS))
    d_states = backprop(Ragged(kept.dataXd * 2, kept.lengths))
    return kept.dataXd, kept.lengths, d_states.dataXd


def repeated_states():
    found, backprop = in_places(put(STATES), numpy.array([5, 5, 60]))
    return found, backprop(found * 2)


def bilstm():
    torch.manual_seed(0)
    found, backprop = bilstm_encoder(6).begin_update([put(ROWS), put(ROWS[:0]), put(ROWS[:3])])
    return found, backprop([put(D_ROWS), put(D_ROWS[:0]), put(D_ROWS[:3])])


def unit_rows(rows):
    return there_and_back(normalization(), put(rows), D_ROWS[: len(rows)])


WORK = {
    **{
        f"unit length {len(rows)} {rows.max(initial=0) > 1e9}": partial(unit_rows, rows)
        for rows in (ROWS, ODD, ROWS[:0])
    },
    **{
        each.__name__: lambda each=each: each(put(ROWS), put(ODD))
        for each in (cosine, euclidean, manhattan)
    },
    **{f"dense {activation}": partial(dense, activation) for activation in ACTIVATIONS},
    "truncation": lambda: there_and_back(truncation(4), put(ROWS), D_ROWS[:, :4]),
    "leading wordpieces": leading_wordpieces,
    "repeated states": repeated_states,
    "bilstm": bilstm,
}


@pytest.mark.parametrize("name", WORK)
def test_layers(name):
    check_same(*both_ways(WORK[name]))
    if name.startswith(("unit", "cosine", "euclidean", "manhattan")):
        with strict_device():
            assert looks_of(WORK[name]) == []


@pytest.mark.parametrize("trainable", [False, True])
def test_word_vectors(trainable):
    vocab = Vocab()
    for number, word in enumerate(["a", "dog", "ran"]):
        vocab.set_vector(word, numpy.arange(6, dtype="float32") + number)
    docs = [Doc(vocab, words=words) for words in (["a", "dog", "cat"], [], ["ran", "a", "a"])]

    def work():
        vocab.vectors.to_ops(get_current_ops())
        layer = word_vectors(trainable=trainable)
        layer.initialize(X=docs)
        found, backprop = layer.begin_update(docs)
        backprop([put(D_ROWS[:3]), put(D_ROWS[:0]), put(D_ROWS[:3])])
        return found, layer.get_grad("E") if trainable else None

    check_same(*both_ways(work))


def test_words_and_n_grams():
    docs = [Doc(Vocab(), words=words) for words in (["a", "dog", "cat"], [], ["ran"])]

    def work():
        numpy.random.seed(0)
        layer = ngram_hash_embed(width=6, rows=20)
        layer.initialize()
        found, backprop = layer.begin_update(docs)
        backprop([put(D_ROWS[:3]), put(D_ROWS[:0]), put(D_ROWS[:1])])
        return found, [to_numpy(embed.get_grad("E")) for embed in layer.layers]

    check_same(*both_ways(work))
