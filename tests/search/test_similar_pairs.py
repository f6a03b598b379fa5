"""Most similar pairs: parity with a full sort of all pairs, ties, blocks, memory, and what is refused."""

import tracemalloc

import numpy
import pytest

from spacy_sbert.search import most_similar_pairs, pairs_above
from spacy_sbert.search import paraphrase_mining as similar_pairs
from spacy_sbert.similarity import cosine

RNG = numpy.random.default_rng(0)
VECTORS = RNG.standard_normal((60, 16), dtype="float32")
SIGNS = RNG.integers(-1, 2, size=(60, 4)).astype("float32")  # many equal, opposite and zero vectors: many ties
ROUNDED = (numpy.ones(384) + RNG.standard_normal((60, 384)) * 1e-4).astype("float32")  # similarities 1, up to rounding
COLLECTIONS = {"vectors": VECTORS, "signs": SIGNS, "rounded": ROUNDED, "equal": numpy.ones((60, 5), dtype="float32")}
ALL = 60 * 59 // 2


def by_brute_force(vectors, k):
    i, j = numpy.triu_indices(len(vectors), 1)
    scores = cosine(vectors[i], vectors[j])
    order = numpy.argsort(-scores, kind="stable")[:k]
    return scores[order], numpy.stack([i, j], axis=1)[order]


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("k", [1, 10, ALL])
@pytest.mark.parametrize("block_bytes", [4, 4 * 7**2, 2**20])
def test_parity_with_a_full_sort(name, k, block_bytes):
    scores, pairs = most_similar_pairs(COLLECTIONS[name], k=k, block_bytes=block_bytes)
    expected = by_brute_force(COLLECTIONS[name], k)
    assert scores.dtype == "float32" and pairs.dtype == "int64"
    assert numpy.array_equal(scores, expected[0]) and numpy.array_equal(pairs, expected[1])


def test_by_hand():
    scores, pairs = most_similar_pairs([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [3.0, 3.0]], k=6)
    assert pairs.tolist() == [[0, 3], [2, 3], [0, 1], [0, 2], [1, 2], [1, 3]]
    assert numpy.allclose(scores, [2**-0.5, 2**-0.5, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("vectors", [RNG.standard_normal((3000, 8)), numpy.ones((3000, 8))], ids=["random", "equal"])
def test_memory_is_bounded(vectors):
    """All similarities are 36 MB, the pairs of equal vectors 72 MB."""
    tracemalloc.start()
    try:
        most_similar_pairs(vectors, k=3, block_bytes=2**18)
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**18
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("block_bytes", [4, 4 * 7**2, 2**20])
def test_all_above_a_score_against_brute_force(name, block_bytes):
    """Each bound is the score of some pair, which is still written."""
    all_scores, all_pairs = by_brute_force(COLLECTIONS[name], ALL)
    for bound in (-1.0, 0.0, *(max(-1.0, min(1.0, float(score))) for score in all_scores[[0, 10, ALL // 2, -1]]), 1.0):
        kept = all_scores.astype("float64") >= bound
        scores, pairs = pairs_above(COLLECTIONS[name], bound, block_bytes=block_bytes)
        assert scores.dtype == "float32" and pairs.dtype == "int64"
        assert numpy.array_equal(scores, all_scores[kept]) and numpy.array_equal(pairs, all_pairs[kept])


def test_too_many_above_a_score_are_refused(monkeypatch):
    """Before they are all kept: what memory holds is bounded."""
    monkeypatch.setattr(similar_pairs, "MOST_PAIRS", ALL - 1)
    with pytest.raises(ValueError, match=r"More than 1769 pairs .* -1 or more"):
        pairs_above(VECTORS, -1.0, block_bytes=4 * 7**2)
    monkeypatch.setattr(similar_pairs, "MOST_PAIRS", ALL)
    assert len(pairs_above(VECTORS, -1.0)[0]) == ALL
