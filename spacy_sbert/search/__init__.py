"""Search among sentence vectors by cosine similarity: exact in bounded memory, or through a saved index; clusters."""

from .clustering import communities, hierarchical_clusters, kmeans_clusters, similar_groups
from .exact import most_similar_pairs, nearest, pairs_above, recall
from .index import VectorIndex
from .ivfpq import build_ivfpq
from .memory_mapped import EncoderIdentity, StoredVectors, identify, nearest_stored
from .quantization import BinaryVectors, Int8Vectors
from .spans import SpanSearch, collect_spans

__all__ = [
    "BinaryVectors",
    "EncoderIdentity",
    "Int8Vectors",
    "SpanSearch",
    "StoredVectors",
    "VectorIndex",
    "build_ivfpq",
    "collect_spans",
    "communities",
    "hierarchical_clusters",
    "identify",
    "kmeans_clusters",
    "most_similar_pairs",
    "nearest",
    "nearest_stored",
    "pairs_above",
    "recall",
    "similar_groups",
]
