"""Exact search: nearest vectors equal a full sort of all similarities; ties, blocks, memory."""

import tracemalloc

import numpy
import pytest

from spacy_sbert.search import (
    communities,
    most_similar_pairs,
    nearest,
    recall,
)
from spacy_sbert.similarity import cosine

RNG = numpy.random.default_rng(0)
QUERIES = RNG.standard_normal((23, 16), dtype="float32")
VECTORS = RNG.standard_normal((57, 16), dtype="float32")
# Many equal, opposite and zero vectors: many ties
SIGNS = RNG.integers(-1, 2, size=(60, 4)).astype("float32")


def sorted_nearest(queries, vectors, k):
    scores = numpy.stack(
        [cosine(numpy.repeat(query[None], len(vectors), axis=0), vectors) for query in queries]
    )
    indices = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
    return numpy.take_along_axis(scores, indices, axis=1), indices


def assert_equal(found, expected):
    assert [array.dtype for array in found] == ["float32", "int64"]
    assert all(
        numpy.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(("block_bytes", "n"), [(4, 12), (4 * 7**2, 57), (2**20, 57)])
@pytest.mark.parametrize(
    ("queries", "vectors"), [(QUERIES, VECTORS), (SIGNS, SIGNS)], ids=["random", "ties"]
)
def test_parity_with_a_full_sort(queries, vectors, block_bytes, n):
    """Of equal similarities the lower index comes first."""
    queries = queries[:n]
    vectors = vectors[:n]
    for k in (1, 7, n):
        expected = sorted_nearest(queries, vectors, k)
        for other in (vectors, numpy.asfortranarray(vectors.astype("float64"))):
            assert_equal(
                nearest(queries.astype(other.dtype), other, k=k, block_bytes=block_bytes), expected
            )


def test_lengths_do_not_matter(tmp_path):
    """Near to each other but in length, so that rounding decides; too long and too short to be
    squared; zero.
    """
    vectors = (numpy.ones((4000, 300)) + 3e-4 * RNG.standard_normal((4000, 300))).astype("float32")
    vectors *= RNG.uniform(0.1, 9, (4000, 1)).astype("float32")
    vectors[1500::7] = vectors[20:23].repeat(120, axis=0)[: len(vectors[1500::7])]
    vectors[::50] *= numpy.float32(1e30)
    vectors[25::50] *= numpy.float32(1e-30)
    vectors[3990] = 0
    numpy.save(tmp_path / "vectors.npy", vectors)
    for queries in (vectors[20:21], vectors[:8] * numpy.float32(1e-3), -vectors[:3]):
        expected = sorted_nearest(queries, vectors, 400)
        assert_equal(nearest(queries, vectors, k=400), expected)
        assert_equal(
            nearest(queries, numpy.load(tmp_path / "vectors.npy", mmap_mode="r"), k=400), expected
        )


def test_by_hand():
    exact = numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    found = numpy.array([[4, 3, 2, 9], [8, 7, 1, 2]])
    assert recall(found, exact) == (3 / 4 + 2 / 4) / 2
    assert recall(exact[:, ::-1], exact) == 1.0
    scores, indices = nearest([[2.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [3.0, 3.0], [5.0, 0.0]], k=3)
    assert indices.tolist() == [[2, 1, 0], [0, 1, 2]]
    assert numpy.allclose(scores, [[1.0, 2**-0.5, -1.0], [0.0, 0.0, 0.0]])
    scores, pairs = most_similar_pairs([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [3.0, 3.0]], k=6)
    assert pairs.tolist() == [[0, 3], [2, 3], [0, 1], [0, 2], [1, 2], [1, 3]]
    assert numpy.allclose(scores, [2**-0.5, 2**-0.5, 0.0, 0.0, 0.0, 0.0])


def peak_memory(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "vectors", [RNG.standard_normal((2000, 8)), numpy.ones((2000, 8))], ids=["random", "equal"]
)
def test_memory_is_bounded(vectors):
    """All similarities are 16 MB, the pairs of equal vectors 32 MB and 64 MB."""
    assert peak_memory(lambda: nearest(vectors, vectors, k=3, block_bytes=2**17)) < 24 * 2**17
    assert peak_memory(lambda: most_similar_pairs(vectors, k=3, block_bytes=2**17)) < 24 * 2**17
    assert (
        peak_memory(lambda: communities(vectors, threshold=0.9, min_size=3, block_bytes=2**17))
        < 24 * 2**17
    )


def test_no_copy_of_the_vectors():
    # 31 MB
    vectors = RNG.standard_normal((20_000, 384), dtype="float32")
    assert peak_memory(lambda: nearest(vectors[:1], vectors, k=3)) < 2**22
    vectors[[13456, 13999], [1, 2]] = numpy.nan, numpy.inf
    with pytest.raises(ValueError, match="Row 13456 of the vectors is not finite"):
        nearest(vectors[:1], vectors, k=1)
