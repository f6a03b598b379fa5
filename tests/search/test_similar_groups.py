"""Groups of similar vectors: the components over all pairs, whatever the blocks."""

import numpy
import pytest

from spacy_sbert.search import hierarchical_clusters, pairs_above, similar_groups


def by_hand(vectors, least):
    """Merge the groups of each pair."""
    groups = [{i} for i in range(len(vectors))]
    for i, j in pairs_above(vectors, least)[1].tolist():
        one, other = (next(group for group in groups if place in group) for place in (i, j))
        if one is not other:
            groups.remove(other)
            one |= other
    return sorted((sorted(group) for group in groups if len(group) > 1), key=lambda group: (-len(group), group[0]))


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.45, 0.7, 1.0])
@pytest.mark.parametrize("block_bytes", [4, 100, 2**23])
def test_they_are_the_components_over_pairs(least, block_bytes):
    vectors = numpy.random.default_rng(1).normal(size=(40, 6))
    vectors[[3, 30, 31]] = vectors[7]  # duplicates
    vectors[[10, 11]] = 0  # similar to nothing
    found = [group.tolist() for group in similar_groups(vectors, least, block_bytes=block_bytes)]
    assert found == by_hand(vectors, least)
    if least == 1.0:
        assert found == [[3, 7, 30, 31]]


def test_they_are_those_of_single_linkage():
    vectors = numpy.random.default_rng(2).normal(size=(60, 5))
    labels = hierarchical_clusters(vectors, threshold=0.2, linkage="single")
    expected = [numpy.flatnonzero(labels == label).tolist() for label in set(labels.tolist())]
    found = [group.tolist() for group in similar_groups(vectors, 0.8)]
    assert len(found) > 3 and sorted(found) == sorted(group for group in expected if len(group) > 1)


def test_a_chain_is_one_group():
    angles = numpy.arange(9) * 0.1
    vectors = numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1)
    assert [group.tolist() for group in similar_groups(vectors, 0.99)] == [list(range(9))]


def test_more_pairs_than_can_be_kept():
    """3000 equal vectors have 4.5 million pairs, which pairs_above refuses."""
    (group,) = similar_groups(numpy.ones((3000, 2)), 0.9)
    assert group.tolist() == list(range(3000))


def test_what_is_refused():
    with pytest.raises(ValueError, match="min_score = 2"):
        similar_groups(numpy.eye(3), 2)
    assert similar_groups(numpy.eye(3), 0.5) == [] and similar_groups(numpy.ones((1, 2)), 0.5) == []
