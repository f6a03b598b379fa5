"""Search among sentence vectors by cosine similarity, exact or through an index; clusters."""

from .clustering import hierarchical_clusters, kmeans_clusters
from .exact import nearest, nearest_stored, recall
from .identity import EncoderIdentity, identify
from .index import VectorIndex
from .ivfpq import build_ivfpq
from .pairs import communities, most_similar_pairs, pairs_above, similar_groups
from .quantization import BinaryVectors, Int8Vectors
from .spans import SpanSearch, collect_spans

__all__ = [
    "BinaryVectors",
    "EncoderIdentity",
    "Int8Vectors",
    "SpanSearch",
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
