"""Pairs of similar vectors equal a full sort of all similarities; ties, blocks, too many pairs."""

import numpy
import pytest

from spacy_sbert.search import most_similar_pairs, pairs_above, similar_groups
from spacy_sbert.search import pairs as module
from spacy_sbert.search.exact import least
from spacy_sbert.similarity import cosine

RNG = numpy.random.default_rng(0)
# Many equal, opposite and zero vectors: many ties
SIGNS = RNG.integers(-1, 2, size=(60, 4)).astype("float32")


def assert_equal(found, expected):
    assert [array.dtype for array in found] == ["float32", "int64"]
    assert all(
        numpy.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True)
    )


PAIRED = RNG.standard_normal((60, 16), dtype="float32")
# Similarities 1, up to rounding
ROUNDED = (numpy.ones(384) + RNG.standard_normal((60, 384)) * 1e-4).astype("float32")
COLLECTIONS = {
    "vectors": PAIRED,
    "signs": SIGNS,
    "rounded": ROUNDED,
    "equal": numpy.ones((60, 5), dtype="float32"),
}
ALL = 60 * 59 // 2
BLOCKS = pytest.mark.parametrize(("block_bytes", "n"), [(4, 12), (4 * 7**2, 60), (2**20, 60)])


def sorted_pairs(vectors, k):
    i, j = numpy.triu_indices(len(vectors), 1)
    scores = cosine(vectors[i], vectors[j])
    order = numpy.argsort(-scores, kind="stable")[:k]
    return scores[order], numpy.stack([i, j], axis=1)[order]


@BLOCKS
@pytest.mark.parametrize("name", COLLECTIONS)
def test_pairs_equal_a_full_sort(name, block_bytes, n):
    vectors = COLLECTIONS[name][:n]
    for k in (1, 10, n * (n - 1) // 2):
        assert_equal(
            most_similar_pairs(vectors, k=k, block_bytes=block_bytes), sorted_pairs(vectors, k)
        )


@BLOCKS
@pytest.mark.parametrize("name", COLLECTIONS)
def test_all_above_a_score_against_brute_force(name, block_bytes, n):
    """Each bound is the score of some pair, which is still written; equal vectors reach each."""
    vectors = COLLECTIONS[name][:n]
    scores, pairs = sorted_pairs(vectors, ALL)
    for bound in (-1.0, 0.0, *scores[[0, 10, len(scores) // 2, -1]].clip(-1, 1).tolist(), 1.0):
        kept = scores.astype("float64") >= least(bound)
        assert_equal(
            pairs_above(vectors, bound, block_bytes=block_bytes), (scores[kept], pairs[kept])
        )


def test_too_many_above_a_score_are_refused(monkeypatch):
    """Before they are all kept; groups keep none."""
    monkeypatch.setattr(module, "MAX_PAIRS", ALL - 1)
    with pytest.raises(ValueError, match=r"More than 1769 pairs .* -1 or more"):
        pairs_above(PAIRED, -1.0, block_bytes=4 * 7**2)
    (group,) = similar_groups(numpy.ones((60, 2)), 0.9)
    assert group.tolist() == list(range(60))
    monkeypatch.setattr(module, "MAX_PAIRS", ALL)
    assert len(pairs_above(PAIRED, -1.0)[0]) == ALL
