"""Pooling: wordpieces to windows, windows to rows, by hand and by finite differences; empty rows,
half precision.
"""

import numpy
import pytest
import torch
from helpers.gradients import finite_differences, relative_error
from thinc.api import Model, NumpyOps, Ragged, chain
from transformers.file_utils import ModelOutput

from spacy_sbert.models.encoded_docs import EncodeSettings
from spacy_sbert.models.heads import (
    Dense,
    normalization,
    truncation,
    window_average,
    zero_rows,
)
from spacy_sbert.models.pooling import SentencePooling
from spacy_sbert.models.poolings import POOLING, _row_sums, make_pooling, without_leading
from spacy_sbert.models.private_attributes import is_installed
from spacy_sbert.models.sbert_config import SentenceTransformersConfig
from spacy_sbert.models.sentence_encoder import SentenceEncoder
from spacy_sbert.models.span_batch import SpanBatch

if is_installed():
    from spacy_transformers.data_classes import TransformerData

    from spacy_sbert.models.spacy_transformers import _PaddedBatch

OPS = NumpyOps()
RNG = numpy.random.default_rng(0)

STATES = numpy.array([[1.0, -2.0], [3.0, -4.0], [5.0, 6.0], [7.0, 0.0], [-9.0, 1.0]])
LENGTHS = numpy.array([2, 3], dtype="i")
BY_HAND = {
    "mean": [[2.0, -3.0], [1.0, 7 / 3]],
    "max": [[3.0, -2.0], [7.0, 6.0]],
    "cls": [[1.0, -2.0], [5.0, 6.0]],
    "mean_sqrt_len": [[4 / 2**0.5, -6 / 2**0.5], [3 / 3**0.5, 7 / 3**0.5]],
    "weightedmean": [[7 / 3, -10 / 3], [-8 / 6, 9 / 6]],
    "lasttoken": [[3.0, -4.0], [-9.0, 1.0]],
    "cls+mean": [[1.0, -2.0, 2.0, -3.0], [5.0, 6.0, 1.0, 7 / 3]],
    "mean+max": [[2.0, -3.0, 3.0, -2.0], [1.0, 7 / 3, 7.0, 6.0]],
}


@pytest.mark.parametrize("name", {**BY_HAND, **POOLING})
def test_pooling_by_hand(name):
    pooled = make_pooling(name).predict(Ragged(STATES, LENGTHS))
    assert numpy.allclose(pooled, BY_HAND[name])
    assert pooled.dtype == STATES.dtype


@pytest.mark.parametrize("name", BY_HAND)
def test_pooling_gradient(name):
    states = RNG.normal(size=(44, 4))
    upstream = RNG.normal(size=(3, 4 * len(name.split("+"))))
    # Sums are made of stretches of 16
    lengths = numpy.array([3, 40, 1], dtype="i")
    layer = make_pooling(name)
    _, backprop = layer.begin_update(Ragged(states, lengths))
    expected = finite_differences(
        lambda x: float((layer.predict(Ragged(x, lengths)) * upstream).sum()), states
    )
    given = backprop(upstream)
    assert relative_error(given.dataXd, expected) < 1e-6
    assert given.lengths.tolist() == lengths.tolist()
    # Of equal ones the first gets it
    if name == "max":
        _, backprop = layer.begin_update(
            Ragged(numpy.array([[1.0], [2.0], [2.0]]), numpy.array([3], dtype="i"))
        )
        assert backprop(numpy.ones((1, 1))).dataXd.tolist() == [[0.0], [1.0], [0.0]]


def make_rows(lengths):
    rng = numpy.random.default_rng(5)
    return (rng.normal(size=(sum(lengths), 384)) + rng.normal(size=384)).astype("float32")


@pytest.mark.parametrize("lengths", [[5, 16, 1], [17], [3, 40, 0, 16, 32, 33, 0], [130, 7], [256]])
def test_sums_have_the_bits_of_a_padded_batch_of_pytorch(lengths):
    states = make_rows(lengths)
    rows = torch.from_numpy(states).split(lengths)
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    sums = _row_sums(OPS, states, numpy.array(lengths, dtype="int32"))
    assert numpy.array_equal(sums, padded.sum(dim=1).numpy())
    # A row of nothing is zero
    if not all(lengths):
        for name in ("mean", "mean_sqrt_len", "weightedmean"):
            pooled = make_pooling(name).predict(Ragged(states, numpy.array(lengths, dtype="int32")))
            assert numpy.isfinite(pooled).all()
            assert pooled.any(axis=1).tolist() == [n > 0 for n in lengths]


def test_sums_of_long_rows_are_close_to_exact():
    states = make_rows([512])
    lengths = numpy.array([512], dtype="int32")
    exact = states.astype("float64").sum(axis=0)
    one_by_one = abs(OPS.reduce_sum(states, lengths)[0] - exact).max()
    assert abs(_row_sums(OPS, states, lengths)[0] - exact).max() < 0.5 * one_by_one


def test_leading_wordpieces_are_left_out():
    states = numpy.arange(14.0).reshape(7, 2)
    kept, backprop = without_leading(2).begin_update(Ragged(states, numpy.array([4, 1, 2])))
    assert kept.dataXd.tolist() == [
        states[2].tolist(),
        states[3].tolist(),
        states[4].tolist(),
        states[6].tolist(),
    ]
    # Never none
    assert kept.lengths.tolist() == [2, 1, 1]
    d_states = backprop(Ragged(numpy.ones((4, 2)), kept.lengths))
    assert d_states.dataXd[:, 0].tolist() == [0, 0, 1, 1, 1, 0, 1]
    assert d_states.lengths.tolist() == [4, 1, 2]


# Three windows, one, one, two, one
ROW_OF = numpy.array([0, 0, 0, 1, 2, 3, 3, 4])
# The third row has no text, nor has the last window of the fourth
WEIGHTS = numpy.array([22, 22, 6, 3, 0, 5, 0, 1])


def vectors_of(windows, row_of=ROW_OF, weights=WEIGHTS, normalize=False, is_train=False):
    layers = [normalization()] if normalize else []
    return rows_of_windows(layers, row_of, weights)(windows, is_train)


def rows_of_windows(layers, row_of, weights):
    without_text = numpy.flatnonzero(numpy.bincount(row_of, weights=weights) == 0)
    return chain(window_average(row_of, weights), *layers, zero_rows(without_text))


@pytest.mark.parametrize("normalize", [False, True])
def test_each_row_is_the_average_of_its_windows(normalize):
    windows = RNG.normal(size=(8, 5)).astype("float32")
    given, _ = vectors_of(windows, normalize=normalize)
    assert given.shape == (5, 5)
    assert given.dtype == numpy.float32
    for row in (0, 1, 3, 4):
        own = row == ROW_OF
        expected = numpy.average(windows[own], axis=0, weights=WEIGHTS[own])
        expected = expected / numpy.linalg.norm(expected) if normalize else expected
        assert given[row] == pytest.approx(expected, abs=1e-6)
    assert not given[2].any()


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("n_rows", [8, 5])
def test_gradient_of_windows(n_rows, normalize):
    """With a row for each window, too, which takes another way."""
    row_of = ROW_OF if n_rows == 5 else numpy.arange(8)
    windows = RNG.normal(size=(8, 3))
    upstream = RNG.normal(size=(n_rows, 3))

    def value(x):
        return float((vectors_of(x, row_of, normalize=normalize)[0] * upstream).sum())

    _, backprop = vectors_of(windows, row_of, normalize=normalize, is_train=True)
    given = backprop(upstream)
    assert given.dtype == numpy.float64
    assert relative_error(given, finite_differences(value, windows)) < 1e-6
    assert not given[WEIGHTS == 0].any()
    assert given[WEIGHTS > 0].all()


def test_rows_through_layers():
    """Windows averaged, two dense layers, truncation; a row without text stays zero in spite of the
    bias.
    """
    layers = [chain(Dense(3, 4), Dense(4, 4, activation="identity")), truncation(2)]
    layers[0].initialize()
    for node in layers[0].walk():
        for name in node.param_names:
            node.set_param(name, RNG.normal(size=node.get_param(name).shape))
    windows = RNG.normal(size=(4, 3))
    row_of = numpy.array([0, 0, 1, 2])
    weights = numpy.array([1, 3, 0, 2])
    upstream = RNG.normal(size=(3, 2))

    def vectors(of):
        return rows_of_windows(layers, row_of, weights)(of, True)

    given, backprop = vectors(windows)
    average = (windows[:1] + 3 * windows[1:2]) / 4
    assert numpy.allclose(given[0], layers[0].predict(average)[0, :2])
    assert not given[1].any()
    expected = finite_differences(lambda of: float((vectors(of)[0] * upstream).sum()), windows)
    assert relative_error(backprop(upstream), expected) < 1e-6


MASK = numpy.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0]], dtype="float32")
ROWS = SpanBatch(
    spans=numpy.array([[0, 3], [3, 5], [5, 6]]),
    # The first Span has two windows
    row_of=numpy.array([0, 0, 1, 2]),
    # The last row has special tokens alone
    window_weights=numpy.array([2, 1, 1, 0]),
    n_cut=numpy.zeros(3, dtype="int64"),
    settings=SentenceTransformersConfig("x"),
    characters=numpy.zeros((3, 2), dtype="int64"),
)


def data(states):
    n, width, _ = states.shape
    ids = numpy.zeros((n, width), dtype="i")
    characters = numpy.zeros((n, width, 2), dtype="int32")
    batch = _PaddedBatch([["x"] * width] * n, ids, MASK, [], None, rows=ROWS, characters=characters)
    align = Ragged(numpy.array([1, 5, 9], dtype="i"), numpy.array([1, 1, 0, 1, 0, 0], dtype="i"))
    return TransformerData(batch, ModelOutput(last_hidden_state=states), align)


def listening(pooling, normalize):
    """An encoder that gets TransformerData in place of Docs."""
    source = Model("given", lambda model, datas, is_train: (datas, lambda d_datas: d_datas))
    return SentenceEncoder(source, SentencePooling(pooling, normalize))


@pytest.mark.spacy_transformers
@pytest.mark.parametrize(("pooling", "normalize"), [("cls", False), ("max", False), ("mean", True)])
def test_gradient_of_states(pooling, normalize):
    states = RNG.normal(size=(4, 4, 3))
    upstream = RNG.normal(size=(3, 3))
    layer = listening(pooling, normalize)
    (encoded, empty), backprop = layer.begin_update([data(states), TransformerData.empty()])
    assert encoded.vectors.shape == (3, 3)
    assert empty.vectors.shape == (0, 3)

    def value(x):
        return float((layer.begin_update([data(x)])[0][0].vectors * upstream).sum())

    # None for the empty Doc
    (given,) = backprop([upstream, numpy.zeros((0, 3))])
    gradient = given.model_output["last_hidden_state"]
    assert relative_error(gradient, finite_differences(value, states)) < 1e-6
    assert not gradient[3].any(), "a row without text learns nothing"
    assert not gradient[MASK == 0].any(), "nor does padding"


@pytest.mark.spacy_transformers
def test_padding_on_the_left():
    states = numpy.arange(12, dtype="float32").reshape(1, 4, 3)
    given = data(numpy.zeros((4, 4, 3)))
    given.wordpieces = given.wordpieces[3:]
    given.wordpieces.attention_mask = numpy.array([[0, 0, 1, 1]], dtype="float32")
    given.wordpieces.rows.window_weights = numpy.array([1])
    given.model_output["last_hidden_state"] = states
    given.align = Ragged(numpy.array([2, 3], dtype="i"), numpy.array([1, 1], dtype="i"))
    (encoded,) = listening("cls", False).encode([given], EncodeSettings(token_vectors=False))
    assert encoded.vectors.tolist() == [[6.0, 7.0, 8.0]]


@pytest.mark.spacy_transformers
def test_half_precision_states():
    half = RNG.normal(size=(4, 4, 3)).astype("float16")
    layer = listening("+".join(POOLING), True)
    (expected,) = layer.encode([data(half.astype("float32"))], EncodeSettings(token_vectors=False))
    (encoded,), backprop = layer.begin_update([data(half)])
    assert encoded.vectors.dtype == numpy.float32
    assert numpy.array_equal(encoded.vectors, expected.vectors)
    (given,) = backprop([encoded.vectors])
    assert given.model_output["last_hidden_state"].dtype == numpy.float16, (
        "PyTorch wants the dtype of its output"
    )
