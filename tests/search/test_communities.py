"""Communities: parity with sentence-transformers, by hand, blocks, memory, and what is refused."""

import tracemalloc

import numpy
import pytest
import sentence_transformers
from packaging.version import Version
from sentence_transformers.util import community_detection

from spacy_sbert.search import communities

RNG = numpy.random.default_rng(0)
VECTORS = (RNG.standard_normal((30, 16))[RNG.integers(30, size=500)] + 0.6 * RNG.standard_normal((500, 16))).astype(
    "f4"
)


def reference(vectors, threshold, min_size):
    """The definition, over all similarities at once."""
    units = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, taken, groups = units @ units.T, set(), []
    for centre in numpy.argsort(-(cosines >= threshold).sum(axis=1), kind="stable").tolist():
        near = [j for j in numpy.argsort(-cosines[centre], kind="stable").tolist() if cosines[centre, j] >= threshold]
        group = [centre, *(j for j in near if j != centre and j not in taken)]
        if centre not in taken and len(group) >= min_size:
            taken.update(group)
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.75])
@pytest.mark.parametrize("min_size", [1, 5, 20])
def test_parity_with_sentence_transformers(threshold, min_size):
    expected = reference(VECTORS, threshold, min_size)
    if Version(sentence_transformers.__version__).major >= 6:  # before, groups could lack their centres
        assert expected == community_detection(VECTORS, threshold=threshold, min_community_size=min_size)
    found = communities(VECTORS, threshold=threshold, min_size=min_size)
    assert [group.tolist() for group in found] == expected and len(found) > 1
    assert all(group.dtype == "int64" for group in found)


@pytest.mark.parametrize("block_bytes", [4, 4 * 7**2, 4 * 301])
def test_blocks_do_not_matter(block_bytes):
    whole = communities(VECTORS[:100], threshold=0.6, min_size=3)
    parts = communities(VECTORS[:100], threshold=0.6, min_size=3, block_bytes=block_bytes)
    assert len(whole) > 1
    assert [group.tolist() for group in whole] == [group.tolist() for group in parts]


def test_by_hand():
    angles = numpy.radians([0, 20, 40, 60, 200, 210])  # neighbours are up to 25 degrees apart
    vectors = numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1) * [[1], [2], [3], [4], [5], [6]]
    found = communities(vectors, threshold=float(numpy.cos(numpy.radians(25))), min_size=2)
    assert [group.tolist() for group in found] == [[1, 0, 2], [4, 5]]  # 3 is near to 2 alone, which is taken
    found = communities(vectors, threshold=float(numpy.cos(numpy.radians(25))), min_size=1)
    assert [group.tolist() for group in found] == [[1, 0, 2], [4, 5], [3]]


def test_equal_vectors_at_the_threshold():
    vectors = numpy.repeat(RNG.standard_normal((2, 384)), 20, axis=0)
    found = communities(vectors, threshold=1 - 1e-6, min_size=20)
    assert [group.tolist() for group in found] == [list(range(20)), list(range(20, 40))]


@pytest.mark.parametrize("vectors", [RNG.standard_normal((3000, 8)), numpy.ones((3000, 8))], ids=["random", "equal"])
def test_memory_is_bounded(vectors):
    """All similarities are 36 MB, the members of all neighbourhoods of equal vectors 72 MB."""
    tracemalloc.start()
    try:
        communities(vectors, threshold=0.9, min_size=3, block_bytes=2**18)
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**18
    finally:
        tracemalloc.stop()
