"""Groups of similar vectors: the components over all pairs, whatever the blocks."""

import numpy
import pytest

from spacy_sbert.search import hierarchical_clusters, similar_groups


@pytest.mark.parametrize("block_bytes", [4, 100, 2**23])
@pytest.mark.parametrize("least", [0.45, 0.7, 0.8, 0.9])
def test_they_are_those_of_single_linkage(least, block_bytes):
    vectors = numpy.random.default_rng(2).normal(size=(60, 5))
    vectors[[3, 30, 31]] = vectors[7]  # duplicates
    labels = hierarchical_clusters(vectors, threshold=1 - least, linkage="single")
    expected = [numpy.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)]
    found = [group.tolist() for group in similar_groups(vectors, least, block_bytes=block_bytes)]
    assert found == sorted((group for group in expected if len(group) > 1), key=lambda group: (-len(group), group[0]))


def test_more_pairs_than_can_be_kept():
    """3000 equal vectors have 4.5 million pairs, which pairs_above refuses."""
    (group,) = similar_groups(numpy.ones((3000, 2)), 0.9)
    assert group.tolist() == list(range(3000))
