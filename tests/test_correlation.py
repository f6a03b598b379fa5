"""The correlations are SciPy's, and undefined where they are."""

import numpy
import pytest
from scipy import stats

from spacy_sbert.similarity import pearson, spearman

RNG = numpy.random.default_rng(0)
CASES = [
    (RNG.normal(size=500), RNG.normal(size=500)),
    (RNG.integers(6, size=500) / 5, RNG.integers(6, size=500) / 5),  # many ties
    (numpy.array([1.0, 2.0]), numpy.array([4.0, 3.0])),
]


@pytest.mark.parametrize(("predicted", "gold"), CASES)
def test_equal_to_scipy(predicted, gold):
    assert spearman(predicted, gold) == pytest.approx(stats.spearmanr(predicted, gold).statistic, abs=1e-12)
    assert pearson(predicted, gold) == pytest.approx(stats.pearsonr(predicted, gold).statistic, abs=1e-12)


@pytest.mark.parametrize("correlation", [spearman, pearson])
def test_undefined(correlation):
    for predicted, gold in (([0.5] * 3, [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([1.0], [1.0]), ([], [])):
        assert correlation(predicted, gold) is None
    assert correlation([1.0, 1.0 + 4e-16, 1.0 - 2e-16], [1, 2, 3]) is None
    assert correlation([0.0, 0.0, 0.0], [1, 2, 3]) is None
    assert correlation([1.0, 1.0 + 1e-9, 1.0 + 2e-9], [1, 2, 3]) == pytest.approx(1.0, abs=1e-6)
    single = numpy.array([1.0, 1.0 + 1.2e-7, 1.0 - 6e-8], dtype="float32")
    assert correlation(single, [1, 2, 3]) is None
    assert correlation(single.astype("float64"), [1, 2, 3]) == pytest.approx(correlation(1e6 * (single - 1), [1, 2, 3]))


@pytest.mark.parametrize("correlation", [spearman, pearson])
def test_what_is_no_number_is_an_error(correlation):
    with pytest.raises(ValueError, match="predicted value 1 is nan"):
        correlation([0.0, numpy.nan, 1.0], [1, 2, 3])
    with pytest.raises(ValueError, match="gold value 2 is inf"):
        correlation([0.0, 1.0, 2.0], [1, 2, numpy.inf])
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        correlation([0.0, 1.0], [1, 2, 3])
