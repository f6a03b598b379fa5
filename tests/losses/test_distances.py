import numpy
import pytest
from gradients import finite_differences, relative_error

from spacy_sbert.losses._common import DISTANCES, paired_cosine
from spacy_sbert.losses.triplet import _PAIRWISE
from spacy_sbert.similarity import euclidean, manhattan

RNG = numpy.random.default_rng(12)
U, V, D = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4)), RNG.normal(size=5)


@pytest.mark.parametrize("measure", [*DISTANCES.values(), paired_cosine])
def test_derivatives(measure):
    members = [U.copy(), V.copy()]
    given = measure(*members)[1](D)
    for member, d_member in zip(members, given, strict=True):
        expected = finite_differences(lambda _: float(D @ measure(*members)[0]), member)
        assert relative_error(d_member, expected) < 1e-6


@pytest.mark.parametrize("measure", [*DISTANCES.values(), paired_cosine])
def test_no_derivative_where_there_is_none(measure):
    zeros = numpy.zeros((2, 3))
    assert not any(d.any() for d in measure(zeros, zeros)[1](numpy.ones(2)))


def test_euclidean_and_manhattan_are_the_shared_ones():
    assert (DISTANCES["euclidean"](U, V)[0] == euclidean(U, V)).all()
    assert (DISTANCES["manhattan"](U, V)[0] == manhattan(U, V)).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_farness_orders_as_the_distance(distance):
    far = _PAIRWISE[distance](U)
    rows, columns = numpy.indices(far.shape)
    distances = DISTANCES[distance](U[rows.ravel()], U[columns.ravel()])[0].reshape(far.shape)
    off_diagonal = ~numpy.eye(5, dtype=bool)
    order = [numpy.argsort(matrix[off_diagonal].reshape(5, 4), axis=1) for matrix in (far, distances)]
    assert (order[0] == order[1]).all()
