"""The sigmoid, one for dense layers and rerankers: against SciPy, without a warning, and as PyTorch rounds it."""

import numpy
import pytest
from scipy import special

from spacy_sbert.models import heads as dense
from spacy_sbert.reranker import cross_encoder as activation

EXTREME = [0.0, -0.0, 1e-30, 15.9, 88.0, 88.8, 89.0, 103.0, 709.0, 710.0, 745.0, 1000.0, 1e30, numpy.inf]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(dtype):
    drawn = numpy.random.default_rng(0).normal(size=2000) * 30
    x = numpy.concatenate([EXTREME, numpy.negative(EXTREME), drawn]).astype(dtype)[:, None]
    found = activation.sigmoid(x)
    assert found.dtype == dtype
    expected = special.expit(x.astype("float64"))
    tiny = numpy.finfo(dtype).tiny
    assert numpy.allclose(found, expected, rtol=4 * numpy.finfo(dtype).eps, atol=tiny)


def test_ordinary_values_are_those_of_the_plain_formula():
    x = numpy.random.default_rng(1).normal(size=(500, 8)).astype("float32") * 20
    assert numpy.array_equal(activation.sigmoid(x), 1 / (1 + numpy.exp(-x)))
    assert numpy.array_equal(dense.ACTIVATIONS["sigmoid"][0](x), activation.sigmoid(x))
