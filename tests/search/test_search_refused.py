"""Values that functions of search refuse."""

import sys

import numpy
import pytest

from spacy_sbert.search import (
    BinaryVectors,
    EncoderIdentity,
    Int8Vectors,
    SpanSearch,
    VectorIndex,
    communities,
    hierarchical_clusters,
    kmeans_clusters,
    most_similar_pairs,
    nearest,
    pairs_above,
    recall,
)
from spacy_sbert.visual import render

VECTORS = numpy.random.default_rng(0).standard_normal((30, 8), dtype="float32")
QUERIES = VECTORS[:4] + 1
INT8 = Int8Vectors.fit(VECTORS).apply(VECTORS)
BINARY = BinaryVectors.of(VECTORS)
NAN = numpy.where(numpy.arange(30)[:, None] == 9, numpy.nan, VECTORS)
ENCODER = EncoderIdentity("model-a", 8, "a" * 64)
# Functions of vectors
USES = {
    "nearest": lambda vectors: nearest(QUERIES, vectors, k=1),
    "most_similar_pairs": most_similar_pairs,
    "hierarchical_clusters": lambda vectors: hierarchical_clusters(vectors, n_clusters=1),
    "kmeans_clusters": lambda vectors: kmeans_clusters(vectors, n_clusters=2),
    "communities": communities,
    "VectorIndex": VectorIndex.build,
    "BinaryVectors": BinaryVectors.of,
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        pytest.param(VECTORS[0], r"of shape \(8,\)", id="one vector"),
        pytest.param(VECTORS[:0], "of shape", id="none"),
        pytest.param(NAN, "Row 9 of the vectors", id="NaN"),
    ],
)
def test_vectors(name, vectors, message):
    with pytest.raises(ValueError, match=message):
        USES[name](vectors)


WRONG = [
    (lambda: nearest(QUERIES, VECTORS, k=0), "Cannot find 0 nearest of 30 vectors"),
    (lambda: nearest(QUERIES, VECTORS, k=31), "Cannot find 31 nearest of 30 vectors"),
    (lambda: nearest(QUERIES, VECTORS, k=1.5), r"k = 1\.5"),
    (lambda: nearest(QUERIES, VECTORS[:, :3], k=1), "unequal width: 8 and 3"),
    (lambda: nearest(NAN, VECTORS, k=1), "Row 9 of the queries"),
    (lambda: nearest(QUERIES, VECTORS, k=1, block_bytes=3), "block_bytes = 3"),
    (lambda: most_similar_pairs(VECTORS, k=0), "Cannot find 0 most similar pairs of 30 vectors"),
    (lambda: pairs_above(VECTORS, 1.5), "min_score"),
    (lambda: pairs_above(VECTORS, float("nan")), "min_score"),
    (lambda: hierarchical_clusters(VECTORS), "n_clusters = None and threshold = None"),
    (lambda: hierarchical_clusters(VECTORS, n_clusters=2, threshold=0.5), "expected exactly one"),
    (
        lambda: hierarchical_clusters(VECTORS, n_clusters=31),
        "Cannot find 31 clusters of 30 vectors",
    ),
    (lambda: hierarchical_clusters(VECTORS, threshold=-0.1), "threshold = -0.1"),
    (lambda: hierarchical_clusters(VECTORS, n_clusters=2, linkage="ward"), "linkage = 'ward'"),
    (lambda: kmeans_clusters(VECTORS, n_clusters=0), "Cannot find 0 clusters of 30 vectors"),
    (lambda: kmeans_clusters(VECTORS, n_clusters=2, n_init=0), "n_init = 0"),
    (lambda: communities(VECTORS, threshold=1.5), "threshold 1.5"),
    (lambda: communities(VECTORS, min_size=0), "min_size = 0"),
    (lambda: VectorIndex.build(VECTORS, kind="lsh"), "kind = 'lsh'"),
    (lambda: VectorIndex.build(iter([])), "of shape"),
    (lambda: VectorIndex.build(iter([VECTORS, VECTORS[:, :3]])), "unequal width: 8 and 3"),
    (lambda: VectorIndex.build(iter([VECTORS, NAN])), "Row 9 of the vectors from row 30 on"),
    (lambda: VectorIndex.build(VECTORS, texts=["a"]), "Given 1 texts or ids for 30 vectors"),
    (lambda: VectorIndex.build(VECTORS[:, :3], encoder=ENCODER), "unequal width: 3 and 8"),
    (lambda: VectorIndex.build(VECTORS).search(QUERIES, k=31), "Cannot find 31 nearest of 30"),
    (
        lambda: Int8Vectors.fit([[1.0, 2.0], [0.0, 0.0]]),
        "Cannot quantise row 1 of the sample: it is zero",
    ),
    (lambda: INT8.apply(VECTORS * [[0]]), "Cannot quantise row 0 of the vectors: it is zero"),
    (lambda: INT8.apply(VECTORS[:, :3]), "unequal width: 3 and 8"),
    (lambda: BINARY.search(QUERIES, k=1, rescore=-1), "rescore = -1"),
    (
        lambda: BINARY.search(QUERIES, k=1, vectors=VECTORS[1:]),
        r"of shape \(29, 8\): expected \(30, 8\)",
    ),
    (lambda: recall(QUERIES, QUERIES[:1]), "expected both of one shape"),
    (lambda: recall(QUERIES[:0], QUERIES[:0]), "expected both"),
]


@pytest.mark.parametrize(("use", "message"), WRONG)
def test_refused(use, message):
    with pytest.raises(ValueError, match=message):
        use()


def unread():
    raise AssertionError("something was encoded")
    yield


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("faiss", "search", lambda: VectorIndex.build(unread())),
        ("faiss", "search", lambda: SpanSearch(unread(), kind="flat")),
        ("sklearn.cluster", "search", lambda: kmeans_clusters(VECTORS, n_clusters=2)),
        (
            "sklearn.manifold",
            "visual",
            lambda: render(unread(), "map", options={"projection": "tsne"}),
        ),
    ],
)
def test_packages_that_are_not_installed(monkeypatch, package, extra, use):
    """It is said before anything is encoded."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'spacy-sbert\[{extra}\]"):
        use()
