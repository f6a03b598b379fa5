"""Sums over wordpieces: what PyTorch gives of a padded batch, and close to exact for long rows."""

import numpy
import pytest
import torch
from thinc.api import NumpyOps, Ragged

from spacy_sbert.models.pooling import _row_sums, make_pooling

OPS = NumpyOps()


def make_rows(lengths, width=384, seed=5):
    rng = numpy.random.default_rng(seed)
    return (rng.normal(size=(sum(lengths), width)) + rng.normal(size=width)).astype("float32")


def sums(states, lengths):
    return _row_sums(OPS, states, numpy.array(lengths, dtype="int32"))


@pytest.mark.parametrize("lengths", [[5, 16, 1], [17], [3, 40, 0, 16, 32, 33, 0], [130, 7], [256]])
def test_the_bits_of_a_padded_batch(lengths):
    states = make_rows(lengths)
    rows = torch.from_numpy(states).split(lengths)
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    assert numpy.array_equal(sums(states, lengths), padded.sum(dim=1).numpy())


def test_long_rows():
    states, lengths = make_rows([512]), numpy.array([512], dtype="int32")
    exact = states.astype("float64").sum(axis=0)
    one_by_one = abs(OPS.reduce_sum(states, lengths)[0] - exact).max()
    assert abs(sums(states, [512])[0] - exact).max() < 0.5 * one_by_one


@pytest.mark.parametrize("name", ["mean", "mean_sqrt_len", "weightedmean"])
def test_a_row_of_nothing_is_zero(name):
    states, lengths = make_rows([20, 0, 3], width=4), numpy.array([20, 0, 3], dtype="int32")
    pooled = make_pooling(name).predict(Ragged(states, lengths))
    assert not pooled[1].any() and numpy.isfinite(pooled).all() and pooled[[0, 2]].any()
