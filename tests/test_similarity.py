import numpy

from spacy_sbert.similarity import cosine, euclidean, manhattan


def test_cosine_by_hand():
    u = numpy.array([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    v = numpy.array([[1.0, 1.0], [2.0, 2.0], [-1.0, 0.0], [1.0, 0.0]])
    assert numpy.allclose(cosine(u, v), [2**-0.5, 1.0, -1.0, 0.0])


def test_nan_stays_nan():
    assert numpy.isnan(cosine(numpy.array([[numpy.nan, 1.0]]), numpy.ones((1, 2)))).all()


def test_scale_does_not_matter():
    u = numpy.full((1, 3), 0.1, dtype="float32")
    assert numpy.allclose(cosine(u, 3 * u), 1.0, atol=1e-7)


def test_distances_by_hand():
    u, v = numpy.array([[0.0, 0.0], [1.0, 1.0]]), numpy.array([[3.0, -4.0], [1.0, 1.0]])
    assert numpy.allclose(euclidean(u, v), [5.0, 0.0])
    assert numpy.allclose(manhattan(u, v), [7.0, 0.0])


def test_distances_keep_float32():
    u, v = numpy.ones((2, 3), dtype="float32"), numpy.zeros((2, 3), dtype="float32")
    assert cosine(u, v).dtype == euclidean(u, v).dtype == manhattan(u, v).dtype == "float32"
