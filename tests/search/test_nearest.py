"""Nearest vectors: parity with a full sort of all similarities, ties, blocks and memory."""

import tracemalloc

import numpy
import pytest

from spacy_sbert.search import nearest
from spacy_sbert.similarity import cosine

RNG = numpy.random.default_rng(0)
QUERIES = RNG.standard_normal((23, 16), dtype="float32")
VECTORS = RNG.standard_normal((57, 16), dtype="float32")
SIGNS = RNG.integers(-1, 2, size=(60, 4)).astype("float32")  # many equal, opposite and zero vectors: many ties


def by_brute_force(queries, vectors, k):
    scores = numpy.stack([cosine(numpy.repeat(query[None], len(vectors), axis=0), vectors) for query in queries])
    indices = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
    return numpy.take_along_axis(scores, indices, axis=1), indices


def assert_equal(found, expected):
    assert [array.dtype for array in found] == ["float32", "int64"]
    assert all(numpy.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


@pytest.mark.parametrize("k", [1, 7, 57])
@pytest.mark.parametrize("block_bytes", [4, 4 * 7**2, 2**20])
@pytest.mark.parametrize(("queries", "vectors"), [(QUERIES, VECTORS), (SIGNS, SIGNS)], ids=["random", "ties"])
def test_parity_with_a_full_sort(queries, vectors, k, block_bytes):
    """Of equal similarities the lower index comes first."""
    expected = by_brute_force(queries, vectors, k)
    for other in (vectors, numpy.asfortranarray(vectors.astype("float64"))):
        assert_equal(nearest(queries.astype(other.dtype), other, k=k, block_bytes=block_bytes), expected)


def test_equal_vectors_far_apart_are_equally_similar():
    vectors = RNG.standard_normal((700, 384), dtype="float32")
    vectors[[3, 350, 699]] = vectors[5]
    scores, indices = nearest(vectors[5:6], vectors, k=4)
    assert indices.tolist() == [[3, 5, 350, 699]] and len(set(scores[0].tolist())) == 1


def test_lengths_do_not_matter(tmp_path):
    """Near to each other but in length, so that rounding decides; too long and too short to be squared; zero."""
    vectors = (numpy.ones((4000, 300)) + 3e-4 * RNG.standard_normal((4000, 300))).astype("float32")
    vectors *= RNG.uniform(0.1, 9, (4000, 1)).astype("float32")
    vectors[1500::7] = vectors[20:23].repeat(120, axis=0)[: len(vectors[1500::7])]
    vectors[::50] *= numpy.float32(1e30)
    vectors[25::50] *= numpy.float32(1e-30)
    vectors[3990] = 0
    numpy.save(tmp_path / "vectors.npy", vectors)
    for queries in (vectors[20:21], vectors[:8] * numpy.float32(1e-3), -vectors[:3]):
        expected = by_brute_force(queries, vectors, 400)
        assert_equal(nearest(queries, vectors, k=400), expected)
        assert_equal(nearest(queries, numpy.load(tmp_path / "vectors.npy", mmap_mode="r"), k=400), expected)


def test_by_hand():
    scores, indices = nearest([[2.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [3.0, 3.0], [5.0, 0.0]], k=3)
    assert indices.tolist() == [[2, 1, 0], [0, 1, 2]]
    assert numpy.allclose(scores, [[1.0, 2**-0.5, -1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("vectors", [RNG.standard_normal((3000, 8)), numpy.ones((3000, 8))], ids=["random", "equal"])
def test_memory_is_bounded(vectors):
    """All similarities are 36 MB, the pairs of equal vectors 144 MB."""
    tracemalloc.start()
    try:
        nearest(vectors, vectors, k=3, block_bytes=2**18)
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**18
    finally:
        tracemalloc.stop()


def test_no_copy_of_the_vectors():
    vectors = RNG.standard_normal((20_000, 384), dtype="float32")  # 31 MB
    tracemalloc.start()
    try:
        nearest(vectors[:1], vectors, k=3)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_the_row_that_is_not_finite_among_many():
    vectors = numpy.ones((4000, 384), dtype="float32")
    vectors[[3456, 3999], [1, 2]] = numpy.nan, numpy.inf
    with pytest.raises(ValueError, match="Row 3456 of the vectors is not finite"):
        nearest(vectors[:1], vectors, k=1)
