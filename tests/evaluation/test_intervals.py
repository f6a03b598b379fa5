"""The bootstrap: parity with SciPy, coverage of what is known, paired tests with a known answer."""

import numpy
import pytest
from scipy import stats

from spacy_sbert.evaluation.bootstrap import interval, mean_of, paired_difference, resample, spearman_of

RNG = numpy.random.default_rng(0)
GOLD = RNG.integers(11, size=300) / 2
GOOD = GOLD + RNG.normal(0, 0.5, 300)
BAD = GOLD + RNG.normal(0, 4.0, 300)


def test_spearman_of_resamples_is_that_of_scipy():
    indices = RNG.integers(300, size=(20, 300))
    expected = [stats.spearmanr(GOOD[row], GOLD[row]).statistic for row in indices]
    assert numpy.allclose(spearman_of(GOOD, GOLD)(indices), expected, atol=1e-12)


def test_a_resample_that_is_all_alike_is_undefined():
    drawn = spearman_of(numpy.array([1.0, 2.0]), numpy.array([1.0, 2.0]))(numpy.array([[0, 0], [0, 1]]))
    assert numpy.isnan(drawn[0]) and drawn[1] == pytest.approx(1.0)
    assert interval(numpy.array([numpy.nan, numpy.nan, 1.0])) is None
    assert interval(numpy.array([numpy.nan, 1.0, 1.0])) == [1.0, 1.0]


def test_interval_of_an_accuracy_is_near_the_normal_one():
    right = (RNG.random(2000) < 0.8).astype("float64")
    low, high = interval(resample(mean_of(right), 2000, 4000, 1))
    error = 1.96 * (right.mean() * (1 - right.mean()) / 2000) ** 0.5
    assert low == pytest.approx(right.mean() - error, abs=0.003)
    assert high == pytest.approx(right.mean() + error, abs=0.003)


def test_the_seed_decides_and_blocks_do_not(monkeypatch):
    whole = resample(mean_of(GOLD), 300, 50, 3)
    assert numpy.array_equal(whole, resample(mean_of(GOLD), 300, 50, 3))
    assert not numpy.array_equal(whole, resample(mean_of(GOLD), 300, 50, 4))
    monkeypatch.setattr("spacy_sbert.evaluation.bootstrap._BLOCK", 700)  # two resamples at once
    assert numpy.array_equal(whole, resample(mean_of(GOLD), 300, 50, 3))


def test_paired_difference():
    found = paired_difference(spearman_of(GOOD, GOLD), spearman_of(BAD, GOLD), 300, 1000, 1)
    expected = stats.spearmanr(GOOD, GOLD).statistic - stats.spearmanr(BAD, GOLD).statistic
    assert found["difference"] == pytest.approx(expected, abs=1e-12)
    assert 0 < found["low"] < found["difference"] < found["high"] and found["p"] == pytest.approx(2 / 1001)
    back = paired_difference(spearman_of(BAD, GOLD), spearman_of(GOOD, GOLD), 300, 1000, 1)
    assert back["low"] == pytest.approx(-found["high"]) and back["p"] == pytest.approx(2 / 1001)
